// The requests that ask backends whether viewers may read, or publish a message. They are dispatched as fetches are, and
// each kind apart from them: with a cap, a queue and a breaker of its own, so that a flood of viewers stops no fetch, and
// slow fetches keep no viewer out.
import { ANONYMOUS_VIEWER, readViewerKey } from '@keycast/backbone'
import {
  ANSWER_GRACE_MS,
  accountsOf,
  createStock,
  type Holder,
  NO_LANE,
  type Payer,
  type Stock,
  type World,
} from '@keycast/service'
import type { Result } from '../../worker-messages.ts'
import type { FailureLog } from '../failure-log.ts'
import type { Verdict } from '../origins/breaker.ts'
import { createDispatcher, type Dispatcher, type Request } from '../origins/dispatcher.ts'
import { createSources, type Source } from '../origins/origins.ts'
import type { InTurns } from '../timing/in-turns.ts'
import type { Leaseholder, Pool } from '../workers/leases.ts'

export type Questions = ReturnType<typeof createQuestions>

/**
 * How the backend answered. `sentAt`: when it was asked. Without a status there was none. `isCrowded`: it was not asked,
 * because so many wait for that. `body`: of a POST's response.
 */
export interface Reply {
  status: number | undefined
  message: string
  sentAt: number
  retryAfterMs: number | undefined
  isCrowded?: boolean
  body?: Buffer
}

/** One request, from being queued to its end. `headers` are secret. `holder`: of its place in the queue. */
export interface Ask extends Request<Source<Ask>> {
  /** The viewer key, or the room: names it, and with it the worker that makes it. */
  key: string
  url: string
  method: 'HEAD' | 'GET' | 'POST'
  /** What the backend is to know, and nothing of the namespace that the viewer may not use. */
  headers: Record<string, string>
  /** Of a POST. */
  body: Buffer | undefined
  /** Of the response's body. */
  bytesMax: number
  timeoutMs: number
  /** How much of the queue it takes, while `isQueued`. */
  weight: number
  isQueued: boolean
  holder: Holder | undefined
  done: (reply: Reply) => void
}

interface Place {
  queued: number
  stock: Stock
}

/** What questions of a kind are about, and how their answers are read. */
export interface Kind {
  namespaces: { readonly names: string[] }
  /** Where a namespace's are sent, if it has any. */
  originOf: (namespace: string) => string | undefined
  refuses: (status: number) => boolean
  /** A clause for errors. */
  what: string
  /**
   * By their weight, of all namespaces together. Every namespace has an equal share, or one slow backend would have the
   * questions to all others refused. Of that, an account may have its share.
   */
  queuedMax: number
}

/** For metrics. */
export interface QuestionLevels {
  queued: () => number
  inFlight: () => number
  /** 1 or 0 for each namespace. */
  openBreakers: () => { labels: { origin: string; namespace: string }; value: number }[]
}

/** When to ask again where the queue is full. */
const FULL_RETRY_MS = 1_000

/** A longer Retry-After is cut to this: the backend says it again, at the cost of one request. */
const PATIENCE_MS_MAX = 60_000

interface Deps {
  kind: Kind
  pool: Pool
  /** Requests in flight to each origin. */
  cap: number
  inTurns: InTurns
  metrics: { asked: (origin: string, verdict: string, tookMs: number) => void }
  failureLog: FailureLog
  now: () => number
  after: World['after']
}

export function createQuestions({ kind, pool, cap, inTurns, metrics, failureLog, now, after }: Deps) {
  const { namespaces, originOf, refuses, what } = kind
  const sources = createSources<Ask>({
    inFlightMax: cap,
    newLimit: () => ({ inForce: () => cap, started() {}, ended() {} }),
    now,
  })
  /** Whose backends know no HEAD: they are asked by GET from then on. */
  const byGet = new Set<Source<Ask>>()
  const queuedPerSourceMax = () => Math.ceil(kind.queuedMax / sources.named().size)
  /** What is taken of each queue, and by whom. */
  const places = new Map<Source<Ask>, Place>()

  /** As keycast.yaml says now. */
  function renew() {
    sources.take(
      namespaces.names.flatMap(name => {
        const origin = originOf(name)
        return origin === undefined ? [] : [[name, origin]]
      }),
    )
    // Another backend may know HEAD.
    byGet.clear()
    for (const source of sources.values()) {
      if (places.has(source)) continue
      const place: Place = { queued: 0, stock: createStock({ free: () => queuedPerSourceMax() - place.queued }) }
      places.set(source, place)
    }
  }
  renew()

  const dispatcher: Dispatcher<Ask> = createDispatcher<Ask>({
    origins: sources.origins,
    hasCredit: pool.hasCredit,
    inTurns,
    steps: {
      isOver: ({ queuedAt, timeoutMs }) => now() - queuedAt > timeoutMs + ANSWER_GRACE_MS,
      lease,
      refused: refuse,
      isWanted: () => true,
      judge: ({ key }, result) => ({ verdict: verdictOf(result), sign: 'void', who: whoIn(key) }),
      ended,
    },
    now,
    after,
  })

  /** @param wanted `done` is called once */
  function add({
    namespace,
    payer,
    ...wanted
  }: Pick<Ask, 'key' | 'url' | 'method' | 'headers' | 'body' | 'bytesMax' | 'timeoutMs' | 'weight' | 'done'> & {
    namespace: string
    payer: Payer | undefined
  }) {
    const source = sources.get(namespace) as Source<Ask>
    const ask: Ask = {
      ...wanted,
      source,
      isQueued: false,
      holder: undefined,
      lane: 'cold',
      path: payer === undefined ? NO_LANE : accountsOf(payer),
      queuedAt: now(),
      sentAt: undefined,
      attempt: 1,
      probe: false,
    }
    if (!source.breaker.admits()) return refuse(ask)
    const { weight } = ask
    const place = placeOf(ask)
    const hasRoom = place.queued + weight <= queuedPerSourceMax() && place.stock.hasRoom(payer, weight)
    // One may always wait: where many namespaces have a part each, the share of a user may be less than a question.
    if (place.queued > 0 && !hasRoom) {
      return fail(ask, `too many wait for the backend to be asked ${what}`, FULL_RETRY_MS, true)
    }
    place.queued += weight
    ask.isQueued = true
    ask.holder = place.stock.charge(payer, weight)
    dispatcher.add(ask)
  }

  const placeOf = ({ source }: Ask) => places.get(source) as Place

  /** It waits no more. */
  function leaveQueue(ask: Ask) {
    if (!ask.isQueued) return
    const place = placeOf(ask)
    place.queued -= ask.weight
    if (ask.holder) place.stock.change(ask.holder, -ask.weight)
    ask.isQueued = false
    ask.holder = undefined
  }

  /** @param ask that is late, or whose namespace's breaker is open */
  function refuse(ask: Ask) {
    leaveQueue(ask)
    const { breaker } = ask.source
    if (breaker.admits()) {
      return fail(ask, `the backend answers too slowly to be asked ${what}, so many wait`, undefined, true)
    }
    const message = `the backend failed too often to say ${what}: its circuit breaker is open`
    fail(ask, message, Math.max(0, breaker.retryAt() - now()))
  }

  /** @param ask that is not sent */
  function fail({ done }: Ask, message: string, retryAfterMs?: number, isCrowded = false) {
    done({ status: undefined, message, sentAt: now(), retryAfterMs, isCrowded })
  }

  function lease(ask: Ask) {
    leaveQueue(ask)
    const { source, key, url, headers, timeoutMs, bytesMax, body } = ask
    if (byGet.has(source)) ask.method = 'GET'
    pool.lease(holder, ask, { key, url, headers, timeoutMs, bytesMax, delta: false, statusOf: ask.method }, body)
  }

  function ended(ask: Ask, result: Result, body: Buffer | undefined) {
    const { source, sentAt = now(), done } = ask
    if (ask.method === 'HEAD' && result.kind === 'status' && knowsNoHead.has(result.status)) {
      byGet.add(source)
      ask.sentAt = undefined
      ask.probe = false
      return dispatcher.add(ask)
    }
    const reply = replyOf(result, sentAt, body)
    const label = labelOf(reply)
    metrics.asked(source.origin.name, label, now() - sentAt)
    const about = { name: source.namespace, origin: source.origin.name }
    if (label !== 'failed') failureLog.succeeded(about)
    else failureLog.failed(about, result.kind === 'failed' ? result : { code: 'backend_error', ...reply })
    done(reply)
  }

  function replyOf(result: Result, sentAt: number, body: Buffer | undefined): Reply {
    if (result.kind === 'status') {
      const message = `the backend answered ${result.status} when asked ${what}`
      const { status, retryAfterMs } = result
      return { status, message, sentAt, retryAfterMs: retryAfterMs && Math.min(retryAfterMs, PATIENCE_MS_MAX), body }
    }
    const message = result.kind === 'failed' ? result.message : ''
    return { status: undefined, message, sentAt, retryAfterMs: undefined }
  }

  function labelOf({ status }: Reply) {
    if (status !== undefined && admits(status)) return 'admitted'
    return status !== undefined && refuses(status) ? 'refused' : 'failed'
  }

  /** The news that a result brings about whether the backend works. */
  function verdictOf(result: Result): Verdict {
    if (result.kind === 'failed') return result.code === 'fetcher_timeout' ? 'void' : 'bad'
    const status = result.kind === 'status' ? result.status : 0
    if (admits(status) || refuses(status)) return 'good'
    return status >= 500 && status !== 501 ? 'bad' : 'neutral'
  }

  const sum = (count: (source: Source<Ask>) => number) => [...sources.values()].reduce((all, of) => all + count(of), 0)

  const levels: QuestionLevels = {
    queued: () => sum(({ queue }) => queue.queuedIn('cold')),
    inFlight: () => sum(({ queue }) => queue.inFlight()),
    openBreakers: () =>
      [...sources.named()].map(({ origin, namespace, breaker }) => ({
        labels: { origin: origin.name, namespace },
        value: Number(breaker.isOpen()),
      })),
  }

  const { startAll, ended: take, lost } = dispatcher
  const holder: Leaseholder<Ask> = { ended: take, lost }
  return { add, startAll, renew, levels, ...holder }
}

/** Not allowed, not implemented (RFC 9110 sections 15.5.6, 15.6.2). */
const knowsNoHead = new Set([405, 501])

/** All viewers without a token are one, and tell nothing apart. */
function whoIn(key: string) {
  const viewer = readViewerKey(key)?.viewer
  return viewer === ANONYMOUS_VIEWER ? undefined : viewer
}

export const admits = (status: number) => status >= 200 && status < 300
