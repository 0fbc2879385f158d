// Turns a connection into a session: gives it a record, an encoding and a welcome.
import type { ControlMessage } from '@keycast/protocol'
import type { Containment, World } from '@keycast/service'
import type { Peer } from '../access/client-address.ts'
import type { Rights } from '../access/rights.ts'
import type { Verified } from '../access/tokens/tokens.ts'
import type { CloseCode } from '../delivery/outbox.ts'
import type { Encoding } from '../encodings/encoding.ts'
import type { Transport, TransportEvents } from '../transport/transport.ts'
import type { Bucket } from './rate-limit.ts'
import { createSession, type Session } from './session.ts'

/** Names a session in the log and to its client: 128 bits, so that no id is guessed or used twice. */
const ID_BYTES = 16

interface Deps {
  sessions: {
    add(session: Session): void
    end(session: Session, name: CloseCode): void
    closed(session: Session, code: number): void
  }
  encodings: { forTransport(transport: Transport): Encoding }
  receive: {
    message(session: Session, data: Buffer, isBinary: boolean): unknown
    ping(session: Session, payload: Buffer): void
    pong(session: Session): void
  }
  readingTurns: { mayReadOn(session: Session, bytes: number): boolean }
  unfinished: { report(session: Session, bytes: number): Session | undefined }
  outbox: { send(session: Session, message: ControlMessage): void; drained(session: Session): void }
  credentials: {
    begin(session: Session, verified: Verified | undefined): { user: string; expiresInMs: number } | undefined
  }
  anonymous: Rights
  rateLimit: { allowances(): { requestAllowance: Bucket; keyAllowance: Bucket } }
  containment: Pick<Containment, 'guard'>
  welcome: Omit<Extract<ControlMessage, { type: 'welcome' }>, 'type' | 'session' | 'user' | 'expiresInMs'>
  after: World['after']
  randomBytes: World['randomBytes']
}

export function createOpen({
  sessions,
  encodings,
  receive,
  readingTurns,
  unfinished,
  outbox,
  credentials,
  anonymous,
  rateLimit,
  containment,
  randomBytes,
  after,
  welcome,
}: Deps) {
  /** An error that no code foresaw ends the session that it came with. */
  const guarded = <Of extends unknown[]>(handle: (session: Session, ...of: Of) => unknown) =>
    containment.guard('session', handle, (session, ..._) => sessions.end(session, 'internalError'))

  const events: TransportEvents = {
    onMessage: guarded(receive.message),
    onPing: guarded(receive.ping),
    onPong: guarded(receive.pong),
    mayReadOn: readingTurns.mayReadOn,
    onUnfinished: guarded((session: Session, bytes: number) => {
      const largest = unfinished.report(session, bytes)
      if (largest) sessions.end(largest, 'unfinished')
    }),
    onDrain: guarded(outbox.drained),
    onClose: guarded(sessions.closed),
    after,
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
    const id = randomBytes(ID_BYTES).toString('base64url')
    const start = { id, ...rateLimit.allowances(), peer, rights: anonymous }
    const session = createSession(transport, encodings.forTransport(transport), start)
    sessions.add(session)
    // From here on the end of the connection is the end of the session, also where one of the next lines fails.
    transport.serve(session, events)
    begin(session, verified)
  }
}
