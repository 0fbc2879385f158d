// Everything a client can ask, each request in a file of its own.
import { type ClientMessage, excerpt } from '@keycast/protocol'
import type { Containment, Namespaces, World } from '@keycast/service'
import type { Access } from '../access/index.ts'
import type { Counts } from '../counts.ts'
import type { Outbox } from '../delivery/outbox.ts'
import type { Gate } from '../gate/gate.ts'
import type { SessionsPart } from '../sessions/index.ts'
import type { DeferredGet, Session } from '../sessions/session.ts'
import type { TopicsPart } from '../topics/index.ts'
import { createAuth } from './auth.ts'
import { createGet } from './get.ts'
import { createHistory } from './history.ts'
import { createAuthenticate } from './http/authenticate.ts'
import { createPing } from './ping.ts'
import { createSubscribe } from './subscribe.ts'
import { createUnsubscribe } from './unsubscribe.ts'
import { createWaitedKeys } from './wait/waited-keys.ts'

interface Deps extends Pick<World, 'now' | 'wallNow' | 'after' | 'turn'> {
  settings: { getsWaitingMax: number }
  namespaces: Pick<Namespaces, 'get'>
  access: Pick<Access, 'identify' | 'revocations' | 'viewers' | 'anonymous'>
  gate: Pick<Gate, 'enter' | 'recheck' | 'check' | 'grants'>
  topics: Pick<TopicsPart, 'topics' | 'values' | 'peek' | 'singleFlight' | 'publishes' | 'histories' | 'joins'>
  sessions: Pick<SessionsPart, 'accounts' | 'credentials' | 'rateLimit'>
  outbox: Outbox
  containment: Pick<Containment, 'guard'>
  counts: Counts
}

export function assembleDoors(deps: Deps) {
  const { access, gate, sessions, outbox, containment, counts, now } = deps
  const { getsWaitingMax } = deps.settings
  const { topics, values, singleFlight, publishes, histories, joins } = deps.topics
  const auth = createAuth({ ...access, ...sessions, outbox })
  const get = createGet({ gate, values, singleFlight, outbox, getsWaitingMax, counts, now })
  const history = createHistory({ gate, histories, outbox, getsWaitingMax, containment, counts, now })
  const subscribe = createSubscribe({ gate, topics, outbox, rateLimit: sessions.rateLimit })
  const unsubscribe = createUnsubscribe({ topics, outbox })
  const ping = createPing({ outbox })
  const waitedKeys = createWaitedKeys({ topics, anonymous: access.anonymous, world: deps })

  /** @returns a promise where some of the work is still to be done */
  function handle(session: Session, message: ClientMessage): unknown {
    counts.received[message.type]++
    switch (message.type) {
      case 'auth':
        return auth(session, message)
      case 'get':
        return get(session, message, now())
      case 'subscribe':
        return subscribe(session, message)
      case 'unsubscribe':
        return unsubscribe(session, message)
      case 'ping':
        return ping(session, message)
      case 'publish':
        return publishes.fromSession(session, message)
      case 'history':
        return history(session, message)
      case 'join':
        return joins.join(session, message)
      case 'leave':
        return joins.leave(session, message)
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

  const answerNow = containment.guard(
    'session',
    (session: Session, message: DeferredGet['get'], asOfMs: number) =>
      message.type === 'get' ? get(session, message, asOfMs) : history(session, message),
    session => outbox.close(session, 'internalError'),
  )

  return {
    handle,
    resumeGets,

    /** For the requests that wait for a change: wait/. */
    waits: {
      namespaces: deps.namespaces,
      peek: deps.topics.peek,
      waitedKeys,
      anonymous: access.anonymous,
      now,
      wallNow: deps.wallNow,
    },
    drain: waitedKeys.drain,
    stats: waitedKeys.stats,

    /** The user and rights of an HTTP request. */
    authenticate: createAuthenticate({ ...access, accounts: sessions.accounts }),
  }
}

/** @param message that is read although it has no door: fails the type check */
function unknownMessage(message: never) {
  return new Error(`no door for ${excerpt((message as { type: unknown }).type)}`)
}
