// Sends the requests to backends: each from being queued to its end, whether it fetches a key or asks if a viewer may
// read. Backends take turns, and so do the namespaces of one; another worker takes over from a lost one; an open breaker
// refuses.
import type { LanePath, World } from '@keycast/service'
import type { Result } from '../../worker-messages.ts'
import type { Lane } from '../fetching/fetch-queue.ts'
import type { InTurns } from '../timing/in-turns.ts'
import type { Verdict } from './breaker.ts'
import type { Sign } from './fetch-limit.ts'
import type { Origin, Source } from './origins.ts'

/** Without `sentAt` it is queued, in its account's turn (`path`). `attempt`: which worker this is. `probe`: it tests a backend that failed. */
export interface Request<S = unknown> {
  /** Of its namespace. */
  source: S
  lane: Lane
  path: LanePath
  queuedAt: number
  sentAt: number | undefined
  attempt: 1 | 2
  probe: boolean
  /** The backend that it is counted at, once it was in flight: its namespace may have another by the time it ends. */
  origin?: { inFlight: number }
}

/** News that a result brings. `who`: the viewer it is about, where backends may answer each in another way. */
interface Judgement {
  verdict: Verdict
  sign: Sign
  who?: string
}

/** What requests of a kind do in a way of their own. */
interface Steps<R> {
  /** Whether one that is queued is of no use any more. */
  isOver: (request: R) => boolean
  /** Hands it to a worker; there is credit. */
  lease: (request: R) => void
  /** It will not be sent: it is over, or the breaker is open. */
  refused: (request: R) => void
  /** Its worker was lost. Returns whether another is to be asked. */
  isWanted: (request: R) => boolean
  judge: (request: R, result: Result) => Judgement
  /** `closed`: it closed the breaker. */
  ended: (request: R, result: Result, body: Buffer | undefined, delta: Buffer | undefined, closed: boolean) => void
}

/**
 * A namespace may have this many times as many requests in flight as its backend has room left for: so the others always
 * find room, whatever one does (dynamic thresholds; Choudhury and Hahne, 1998).
 */
const SHARE_OF_FREE = 3

/** While other requests of a namespace are under way, a key waits this long for others to go with it. */
const COMPANY_MS = 5

interface Deps<R extends Request<Source<R>>> {
  /** In the order in which they are first next time; more may come. */
  origins: Origin<R>[]
  hasCredit: () => boolean
  inTurns: InTurns
  steps: Steps<R>
  now: () => number
  after: World['after']
}

export type Dispatcher<R extends Request<Source<R>>> = ReturnType<typeof createDispatcher<R>>

export function createDispatcher<R extends Request<Source<R>>>({
  origins,
  hasCredit,
  inTurns,
  steps,
  now,
  after,
}: Deps<R>) {
  function add(request: R) {
    const { source } = request
    source.queue.add(request)
    if (source.batchMax > 1) gather(source)
    startNext(source.origin)
  }

  /** The first in an empty queue waits for company: where nothing is under way, only for what came in with it. */
  function gather(source: Source<R>) {
    if (source.isGathering || source.queue.queued() > 1) return
    source.isGathering = true
    after(source.queue.inFlight() === 0 ? 0 : COMPANY_MS, () => {
      source.isGathering = false
      startNext(source.origin)
    })
  }

  /** Starts the requests that may start. Backends take turns to be first, in case credit is short. */
  function startAll() {
    if (origins.length > 1) origins.push(origins.shift() as Origin<R>)
    for (const origin of origins) startNext(origin)
  }

  function startNext(origin: Origin<R>) {
    while (hasCredit()) {
      const request = take(origin)
      if (!request) return
      if (mustRefuse(request)) {
        release(request)
        steps.refused(request)
        refuseQueued(request.source)
      } else send(request)
    }
  }

  /** @returns the next one, which is in flight until {@link release}; namespaces take turns */
  function take(origin: Origin<R>): R | undefined {
    const { sources } = origin
    for (let i = 0; i < sources.length; i++) {
      const at = (origin.turn + i) % sources.length
      const request = hasRoom(sources[at]) ? sources[at].queue.next() : undefined
      if (!request) continue
      origin.turn = at + 1
      origin.inFlight++
      request.origin = origin
      return request
    }
    return undefined
  }

  function hasRoom(source: Source<R>) {
    const { isRefusing, isGathering, batchMax, queue, origin } = source
    const { inFlightMax, inFlight, sources } = origin
    if (isGathering && queue.queued() < batchMax) return false
    const free = inFlightMax - inFlight
    return !isRefusing && free > 0 && (sources.length === 1 || queue.inFlight() < SHARE_OF_FREE * free)
  }

  function release(request: R) {
    request.source.queue.ended(request)
    if (request.origin) request.origin.inFlight--
  }

  const mustRefuse = (request: R) => !request.source.breaker.admits() || steps.isOver(request)

  /** Refuses what is queued as far as it must be, and goes on with the rest. */
  function refuseQueued(source: Source<R>) {
    if (source.isRefusing) return
    source.isRefusing = true
    // Whoever called goes on by itself: from here it would be once more for each one that is refused, and too deep.
    let isLater = false
    inTurns(() => {
      const request = source.queue.withdraw()
      if (request && mustRefuse(request)) {
        steps.refused(request)
        return true
      }
      if (request) source.queue.putBack(request)
      source.isRefusing = false
      if (isLater) startNext(source.origin)
      return false
    })
    isLater = true
  }

  function send(request: R) {
    const { limit, breaker, queue } = request.source
    request.sentAt = now()
    limit.started(queue.inFlight())
    request.probe = breaker.start()
    steps.lease(request)
  }

  /** A request under a lease in force ended. */
  function ended(request: R, result: Result, body?: Buffer, delta?: Buffer) {
    const { source } = request
    const { verdict, sign, who } = steps.judge(request, result)
    release(request)
    // Else a backend that a namespace has left, because it failed, would have the next one's breaker open.
    const isOfSource = request.origin === source.origin
    if (isOfSource) source.limit.ended({ sentAt: request.sentAt as number, sign })
    const change = isOfSource ? source.breaker.end(verdict, request.probe, who) : undefined
    steps.ended(request, result, body, delta, change === 'closed')
    if (change === 'opened') refuseQueued(source)
    startAll()
  }

  /** The worker that had a request will not answer. Another one is asked, once. */
  function lost(request: R) {
    if (request.attempt === 2) return ended(request, twiceLost)
    const { breaker, queue, origin } = request.source
    release(request)
    // Without this line no other probe would ever be let through.
    if (request.probe && request.origin === origin) breaker.end('void', true)
    request.attempt = 2
    request.sentAt = undefined
    request.probe = false
    if (steps.isWanted(request)) queue.putBack(request)
  }

  return { add, startAll, ended, lost }
}

const twiceLost: Result = {
  kind: 'failed',
  code: 'fetcher_timeout',
  message: 'two workers in a row ended or fell silent over this',
}
