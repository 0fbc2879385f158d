// Everything a client can ask, each request in a file of its own.
import type { IncomingMessage } from 'node:http'
import { type ClientMessage, excerpt } from '@keycast/protocol'
import type { AllNamespaces, Containment, World } from '@keycast/service'
import type { Access } from '../access/index.ts'
import type { Counts } from '../counts.ts'
import type { Outbox } from '../delivery/outbox.ts'
import type { GatePart } from '../gate/index.ts'
import type { Links } from '../links.ts'
import type { SessionsPart } from '../sessions/index.ts'
import type { DeferredGet, Session } from '../sessions/session.ts'
import type { TopicsPart } from '../topics/index.ts'
import type { EventStream } from '../transport/event-stream.ts'
import { createAuth } from './auth.ts'
import { createGet } from './get.ts'
import { createHistory } from './history.ts'
import { createAuthenticate } from './http/authenticate.ts'
import { createPing } from './ping.ts'
import { createPublishes } from './publish.ts'
import { createPublishRulings } from './publish-rulings.ts'
import { createTickets } from './stream/tickets.ts'
import { createSubscribe } from './subscribe.ts'
import { createUnsubscribe } from './unsubscribe.ts'
import { createWaitedKeys } from './wait/waited-keys.ts'

interface Deps extends World {
  settings: { getsWaitingMax: number; publishMs: number; publishesPendingBytesMax: number; messageBytesMax: number }
  namespaces: Pick<AllNamespaces, 'journal'>
  links: Pick<Links, 'rooms' | 'values'>
  access: Pick<Access, 'identify' | 'revocations' | 'viewers' | 'anonymous'>
  gate: GatePart
  topics: TopicsPart
  sessions: SessionsPart
  outbox: Outbox
  containment: Pick<Containment, 'guard'>
  counts: Counts
}

export function assembleDoors(deps: Deps) {
  const { settings, namespaces, links, access, sessions, outbox, containment, counts, now } = deps
  const { topics, joins } = deps.topics
  const parts = { ...deps, ...settings, ...access, ...sessions, ...deps.topics }
  const auth = createAuth(parts)
  const get = createGet(parts)
  const history = createHistory({ ...parts, resume: resumeGets })
  const subscribe = createSubscribe(parts)
  const unsubscribe = createUnsubscribe(parts)
  const ping = createPing(parts)
  const publishes = createPublishes({
    ...parts,
    namespaces: namespaces.journal,
    backbone: links.rooms,
    ruleOn: createPublishRulings({ backbone: links.values, counts }),
  })
  const waitedKeys = createWaitedKeys({
    topics,
    rateLimit: sessions.rateLimit,
    payerChanged: deps.topics.payerChanged,
    anonymous: access.anonymous,
    world: deps,
  })

  const authenticate = createAuthenticate(parts)

  const streams = new Map<string, EventStream>()

  /** @returns a promise where some of the work is still to be done */
  function handle(session: Session, message: ClientMessage): unknown {
    counts.received[message.type]++
    if (sessions.rateLimit.chargeEarly(session, message.type) === Number.POSITIVE_INFINITY) return
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

  /** The client reads again, or a part of a history was read for it: answers what waited for that. */
  function resumeGets(session: Session) {
    const deferred = session.deferredGets
    session.deferredGets = []
    // Some may have to wait again: for the fetcher, for the part before, or because the first answers filled the socket.
    for (const { get: message, asOfMs } of deferred) answerNow(session, message, asOfMs)
  }

  /** No caller is there to see its errors. */
  const answerNow = containment.guard(
    'session',
    (session: Session, message: DeferredGet['get'], asOfMs: number) =>
      message.type === 'get' ? get(session, message, asOfMs) : history(session, message),
    session => outbox.close(session, 'internalError'),
  )

  return {
    handle,
    resumeGets,
    publishes,

    /** For the requests that wait for a change: wait/. */
    waits: {
      peek: deps.topics.peek,
      waitedKeys,
      anonymous: access.anonymous,
      payingOf: (request: IncomingMessage) => sessions.accounts.of(undefined, access.identify.peerOf(request)),
      now,
      wallNow: deps.wallNow,
    },
    /** For sessions over server-sent events: stream/. */
    streams: {
      admission: sessions.admission,
      authenticate,
      tickets: createTickets(deps),
      streams,
      open: sessions.open,
      messageBytesMax: deps.settings.messageBytesMax,
      world: deps,
    },

    drain: waitedKeys.drain,
    stats: () => ({ ...waitedKeys.stats(), streams: streams.size }),

    /** The user and rights of an HTTP request. */
    authenticate,
  }
}

/** @param message that is read although it has no door: fails the type check */
function unknownMessage(message: never) {
  return new Error(`no door for ${excerpt((message as { type: unknown }).type)}`)
}
