// The requests that ask backends whether viewers may read. They are dispatched as fetches are, and apart from them: with
// a cap, a queue and a breaker of their own, so that a flood of viewers stops no fetch, and slow fetches keep no viewer
// out.
import { ANONYMOUS_VIEWER, readViewerKey } from '@keycast/backbone'
import {
  ANSWER_GRACE_MS,
  accountsOf,
  createStock,
  type Deciding,
  type Holder,
  NO_LANE,
  type Payer,
  type Stock,
  type World,
} from '@keycast/service'
import type { Lease, Result } from '../../work/messages.ts'
import type { Verdict } from '../origins/breaker.ts'
import { createDispatcher, type Dispatcher, type Request } from '../origins/dispatcher.ts'
import { createSources, type Source } from '../origins/origins.ts'
import type { InTurns } from '../timing/in-turns.ts'

export type Asks = ReturnType<typeof createAsks>

/** How the backend answered. `sentAt`: when it was asked. Without a status there was none. */
export interface Reply {
  status: number | undefined
  message: string
  sentAt: number
  retryAfterMs: number | undefined
}

/** One request, from being queued to its end. `authorization` is secret. `holder`: of its place in the queue. */
export interface Ask extends Request {
  /** Tells it from a fetch. */
  kind: 'ask'
  /** The viewer key: names it, and with it the worker that makes it. */
  key: string
  url: string
  method: 'HEAD' | 'GET'
  authorization: string | undefined
  /** Of the key. */
  headers: Record<string, string> | undefined
  timeoutMs: number
  source: Source<Ask>
  holder: Holder | undefined
  done: (reply: Reply) => void
}

/** What asks need of the workers. `lease` must only be called while there is credit. */
interface Pool {
  hasCredit: () => boolean
  lease: (ask: Ask, message: Omit<Lease, 'type' | 'lease'>) => void
}

/**
 * Of all namespaces together: each holds a token, mostly 1 KB and at most 8. Every namespace has an equal share, or one
 * slow backend would have the questions to all others refused. Of that, an account may have its share.
 */
const QUEUED_MAX = 10_000

/** When to ask again where the queue is full. */
const FULL_RETRY_MS = 1_000

interface Deps {
  namespaces: { get: (name: string) => Deciding | undefined; names: string[] }
  pool: Pool
  /** Requests in flight to each origin. */
  cap: number
  inTurns: InTurns
  metrics: { asked: (origin: string, verdict: string, tookMs: number) => void }
  now: () => number
  after: World['after']
  queuedMax?: number
}

export function createAsks({ namespaces, pool, cap, inTurns, metrics, now, after, queuedMax = QUEUED_MAX }: Deps) {
  const sources = createSources<Ask>({
    inFlightMax: cap,
    newLimit: () => ({ inForce: () => cap, started() {}, ended() {} }),
    now,
  })
  /** Whose backends know no HEAD: they are asked by GET from then on. */
  const byGet = new Set<Source<Ask>>()
  const queuedPerSourceMax = () => Math.ceil(queuedMax / sources.size)
  /** Places in each queue, by who takes them. */
  const places = new Map<Source<Ask>, Stock>()

  /** As keycast.yaml says now. */
  function renew() {
    sources.take(
      namespaces.names.flatMap(name => {
        const origin = namespaces.get(name)?.authorize?.origin
        return origin === undefined ? [] : [[name, origin]]
      }),
    )
    // Another backend may know HEAD.
    byGet.clear()
    for (const source of sources.values()) {
      if (places.has(source)) continue
      places.set(source, createStock({ free: () => queuedPerSourceMax() - source.queue.queuedIn('cold') }))
    }
  }
  renew()

  const dispatcher: Dispatcher<Ask> = createDispatcher<Ask>({
    origins: sources.origins,
    hasCredit: pool.hasCredit,
    inTurns,
    steps: {
      sourceOf: ({ source }) => source,
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
  }: Pick<Ask, 'key' | 'url' | 'method' | 'authorization' | 'headers' | 'timeoutMs' | 'done'> & {
    namespace: string
    payer: Payer | undefined
  }) {
    const source = sources.get(namespace) as Source<Ask>
    const ask: Ask = {
      kind: 'ask',
      ...wanted,
      source,
      holder: undefined,
      lane: 'cold',
      path: payer === undefined ? NO_LANE : accountsOf(payer),
      queuedAt: now(),
      sentAt: undefined,
      attempt: 1,
      probe: false,
    }
    if (!source.breaker.admits()) return refuse(ask)
    const stock = places.get(source) as Stock
    if (source.queue.queuedIn('cold') >= queuedPerSourceMax() || !stock.hasRoom(payer, 1)) {
      return fail(ask, 'too many viewers wait for the backend to be asked', FULL_RETRY_MS)
    }
    ask.holder = stock.charge(payer, 1)
    dispatcher.add(ask)
  }

  /** It waits no more. */
  function leaveQueue(ask: Ask) {
    if (ask.holder) places.get(ask.source)?.change(ask.holder, -1)
    ask.holder = undefined
  }

  /** @param ask that is late, or whose namespace's breaker is open */
  function refuse(ask: Ask) {
    leaveQueue(ask)
    const { breaker } = ask.source
    if (breaker.admits()) {
      return fail(ask, 'the backend answers too slowly to be asked who may read, so many viewers wait')
    }
    const message = 'the backend failed too often to say who may read: its circuit breaker is open'
    fail(ask, message, Math.max(0, breaker.retryAt() - now()))
  }

  /** @param ask that is not sent */
  function fail({ done }: Ask, message: string, retryAfterMs?: number) {
    done({ status: undefined, message, sentAt: now(), retryAfterMs })
  }

  function lease(ask: Ask) {
    leaveQueue(ask)
    const { source, key, url, authorization, headers: ofKey, timeoutMs } = ask
    if (byGet.has(source)) ask.method = 'GET'
    // The viewer's own right to it, and nothing of the namespace's: its headers could open what the viewer may not see.
    const headers = { ...ofKey, ...(authorization !== undefined && { authorization }) }
    pool.lease(ask, { key, url, headers, timeoutMs, bytesMax: 0, delta: false, statusOf: ask.method })
  }

  function ended(ask: Ask, result: Result) {
    const { source, sentAt = now(), done } = ask
    if (ask.method === 'HEAD' && result.kind === 'status' && knowsNoHead.has(result.status)) {
      byGet.add(source)
      ask.sentAt = undefined
      ask.probe = false
      return dispatcher.add(ask)
    }
    const reply = replyOf(result, sentAt)
    metrics.asked(source.origin.name, labelOf(reply), now() - sentAt)
    done(reply)
  }

  const sum = (count: (source: Source<Ask>) => number) => [...sources.values()].reduce((all, of) => all + count(of), 0)

  const { startAll, ended: take, lost } = dispatcher
  return {
    add,
    startAll,
    ended: take,
    lost,
    renew,
    stats: () => ({
      queued: sum(({ queue }) => queue.queuedIn('cold')),
      inFlight: sum(({ queue }) => queue.inFlight()),
    }),
    sources: () => [...sources.values()],
  }
}

/** Not allowed, not implemented (RFC 9110 sections 15.5.6, 15.6.2). */
const knowsNoHead = new Set([405, 501])

/** All viewers without a token are one, and tell nothing apart. */
function whoIn(key: string) {
  const viewer = readViewerKey(key)?.viewer
  return viewer === ANONYMOUS_VIEWER ? undefined : viewer
}

export const admits = (status: number) => status >= 200 && status < 300

export const refuses = (status: number) => status === 401 || status === 403 || status === 404

function replyOf(result: Result, sentAt: number): Reply {
  if (result.kind === 'status') {
    const message = `the backend answered ${result.status} when asked whether this may be read`
    return { status: result.status, message, sentAt, retryAfterMs: result.retryAfterMs }
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
