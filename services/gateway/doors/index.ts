// Everything a client can ask, each request in a file of its own.
import { type ClientMessage, excerpt } from '@keycast/protocol'
import type { Containment } from '@keycast/service'
import type { Identify } from '../access/identify.ts'
import type { Revocations } from '../access/revocations/revocations.ts'
import type { Counts } from '../counts.ts'
import type { Outbox } from '../delivery/outbox.ts'
import type { Gate } from '../gate/gate.ts'
import type { Accounts } from '../sessions/accounts.ts'
import type { Credentials } from '../sessions/credentials.ts'
import type { RateLimit } from '../sessions/rate-limit.ts'
import type { DeferredGet, Session } from '../sessions/session.ts'
import type { Histories } from '../topics/rooms/histories.ts'
import type { Joins } from '../topics/rooms/presence/joins.ts'
import type { Publishes } from '../topics/rooms/publishes.ts'
import type { Rooms } from '../topics/rooms/rooms.ts'
import type { Topics } from '../topics/topics.ts'
import type { SingleFlight } from '../topics/values/single-flight.ts'
import type { Subscriptions } from '../topics/values/subscriptions.ts'
import type { Values } from '../topics/values/values.ts'
import { createAuth } from './auth.ts'
import { createGet } from './get.ts'
import { createHistory } from './history.ts'
import { createJoin } from './join.ts'
import { createLeave } from './leave.ts'
import { createPing } from './ping.ts'
import { createPublish } from './publish.ts'
import { createSubscribe } from './subscribe.ts'
import { createUnsubscribe } from './unsubscribe.ts'

export type { ClientMessage } from '@keycast/protocol'

export type { Session } from '../sessions/session.ts'

export interface HandlerDeps {
  gate: Pick<Gate, 'enter' | 'recheck' | 'check'>
  identify: Pick<Identify, 'verify'>
  revocations: Pick<Revocations, 'isRevoked'>
  accounts: Pick<Accounts, 'of' | 'hasRoom'>
  credentials: Pick<Credentials, 'renew'>
  values: Pick<Values, 'fresh'>
  singleFlight: Pick<SingleFlight, 'want'>
  topics: Topics
  subscriptions: Subscriptions
  rooms: Pick<Rooms, 'isRoom' | 'stats'>
  publishes: Pick<Publishes, 'fromSession'>
  histories: Pick<Histories, 'read'>
  joins: Pick<Joins, 'join' | 'leave'>
  outbox: Outbox
  rateLimit: Pick<RateLimit, 'charge' | 'keysWaitMs' | 'chargeKeys'>
  /** Of one session. */
  getsWaitingMax: number
  containment: Pick<Containment, 'guard'>
  counts: Counts
  /** Monotonic, in milliseconds. */
  now: () => number
}

export function createHandlers(deps: HandlerDeps) {
  const auth = createAuth(deps)
  const get = createGet(deps)
  const subscribe = createSubscribe(deps)
  const unsubscribe = createUnsubscribe(deps)
  const ping = createPing(deps)
  const publish = createPublish(deps)
  const history = createHistory(deps)
  const join = createJoin(deps)
  const leave = createLeave(deps)

  /** @returns a promise where some of the work is still to be done */
  function handle(session: Session, message: ClientMessage): unknown {
    deps.counts.received[message.type]++
    switch (message.type) {
      case 'auth':
        return auth(session, message)
      case 'get':
        return get(session, message, deps.now())
      case 'subscribe':
        return subscribe(session, message)
      case 'unsubscribe':
        return unsubscribe(session, message)
      case 'ping':
        return ping(session, message)
      case 'publish':
        return publish(session, message)
      case 'history':
        return history(session, message)
      case 'join':
        return join(session, message)
      case 'leave':
        return leave(session, message)
      default:
        throw unknownMessage(message)
    }
  }

  /** The client reads again: answers what waited for that. */
  function resumeGets(session: Session) {
    const deferred = session.deferredGets
    session.deferredGets = []
    // Some may have to wait again: for the fetcher, or because the first answers filled the socket.
    for (const { get: message, asOfMs } of deferred) answerNow(session, message, asOfMs)
  }

  const answerNow = deps.containment.guard(
    'session',
    (session: Session, message: DeferredGet['get'], asOfMs: number) =>
      message.type === 'get' ? get(session, message, asOfMs) : history(session, message),
    session => deps.outbox.close(session, 'internalError'),
  )

  return { handle, resumeGets }
}

/** @param message that is read although it has no handler: fails the type check */
function unknownMessage(message: never) {
  return new Error(`no handler for ${excerpt((message as { type: unknown }).type)}`)
}
