// Turns a connection into a session: gives it a record, an encoding and a welcome.
import type { ControlMessage } from '@keycast/protocol'
import type { Containment } from '@keycast/service'
import type { Peer } from '../access/identify.ts'
import type { Rights } from '../access/rights.ts'
import type { Verified } from '../access/tokens/tokens.ts'
import type { Outbox } from '../delivery/outbox.ts'
import type { Encodings } from '../encodings/index.ts'
import type { Transport, TransportEvents } from '../transport/transport.ts'
import type { Credentials } from './credentials.ts'
import type { RateLimit } from './rate-limit.ts'
import type { Receive } from './receive.ts'
import { createSession, type Session } from './session.ts'
import type { Sessions } from './sessions.ts'
import type { Unfinished } from './unfinished.ts'

interface Deps {
  sessions: Pick<Sessions, 'add' | 'end' | 'closed'>
  encodings: Pick<Encodings, 'forTransport'>
  receive: Pick<Receive, 'message' | 'ping' | 'pong'>
  unfinished: Pick<Unfinished, 'report'>
  outbox: Pick<Outbox, 'send' | 'drained'>
  credentials: Pick<Credentials, 'begin'>
  anonymous: Rights
  rateLimit: Pick<RateLimit, 'allowances'>
  containment: Pick<Containment, 'guard'>
  welcome: Omit<Extract<ControlMessage, { type: 'welcome' }>, 'type' | 'session' | 'user' | 'expiresInMs'>
}

export function createOpen({
  sessions,
  encodings,
  receive,
  unfinished,
  outbox,
  credentials,
  anonymous,
  rateLimit,
  containment,
  welcome,
}: Deps) {
  /** An error that no code foresaw ends the session that it came with. */
  const guarded = (handle: (session: Session, ...of: any[]) => unknown) =>
    containment.guard('session', handle, (session, ..._) => sessions.end(session, 'internalError'))

  const events: TransportEvents = {
    onMessage: guarded(receive.message),
    onPing: guarded(receive.ping),
    onPong: guarded(receive.pong),
    onUnfinished: guarded((session: Session, bytes: number) => {
      const largest = unfinished.report(session, bytes)
      if (largest) sessions.end(largest, 'unfinished')
    }),
    onDrain: guarded(outbox.drained),
    onClose: guarded(sessions.closed),
  }

  const begin = guarded((session: Session, verified: Verified | undefined) => {
    const holder = credentials.begin(session, verified)
    outbox.send(session, { type: 'welcome', session: session.id, ...welcome, ...holder })
  })

  /**
   * Makes a session of a connection.
   *
   * @param transport open, and nothing read from it yet
   */
  return function open(transport: Transport, { peer, verified }: { peer: Peer; verified?: Verified }) {
    const start = { ...rateLimit.allowances(), peer, rights: anonymous }
    const session = createSession(transport, encodings.forTransport(transport), start)
    sessions.add(session)
    // From here on the end of the connection is the end of the session, also where one of the next lines fails.
    transport.serve(session, events)
    begin(session, verified)
  }
}
