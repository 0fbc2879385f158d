// A session's connection, as sessions and delivery use it. They know only this interface: websocket.ts and
// event-stream.ts implement it.
import type { World } from '@keycast/service'
import type { Session } from '../sessions/session.ts'

/**
 * A part of what is written: bytes that are framed already (a whole frame, or part of one), or the text of a control
 * message, which the transport frames as it writes it.
 */
export type Piece = Buffer | string

/**
 * The reports of a connection, each with its session. One object serves all connections: tens of thousands of them need
 * no closures of their own.
 */
export interface TransportEvents {
  onMessage: (session: Session, data: Buffer, isBinary: boolean) => void
  /** The client's own ping, to be answered with a pong frame. */
  onPing: (session: Session, payload: Buffer) => void
  onPong: (session: Session) => void
  /** Whether it may report what else came in the same read. If not, it pauses itself, and waits for `readOn`. */
  mayReadOn: (session: Session, bytes: number) => boolean
  /** Memory that a message takes of which the rest is still to come; 0 once it is whole. */
  onUnfinished: (session: Session, bytes: number) => void
  /** What left is gone, after `isStalled` was true (and at other times): it may go on. */
  onDrain: (session: Session) => void
  after: World['after']
  /** The connection is gone; `code` as in RFC 6455 section 7.4. */
  onClose: (session: Session, code: number) => void
}

export interface Transport {
  /** As negotiated; empty where the client offered none. */
  subprotocol: string
  /** Whether the client takes compressed messages (RFC 7692). */
  isCompressed: boolean
  /** Ties the connection to its session. To be called once, before anything is read. */
  serve: (session: Session, events: TransportEvents) => void
  /** Writes all of them, in order. A frame's pieces must come in one call. With none it goes on with those before. */
  write: (pieces: Piece[]) => void
  /** Whether anything may still be written. */
  isOpen: () => boolean
  /** Whether the client does not take the written bytes; true only if `onDrain` follows. */
  isStalled: () => boolean
  /** The number of written bytes that have left: each time it grows, the client has read. */
  takenBytes: () => number
  /** Memory of its own that a written piece takes until it is sent; 0 where the piece itself is kept. */
  copiedBytes: (piece: Piece) => number
  /** Whether a living client answers pings. If not, it is gone once TCP says so: pings are bytes to be acknowledged. */
  answersPings: boolean
  /** A piece that shows the client, and all on the way to it, that the connection lives. */
  pingFrame: Buffer
  pongFrame: (payload: Buffer) => Buffer
  pause: () => void
  /** Goes on with what it did not report, at once. */
  readOn: () => void
  /** Tells the client why and waits for its answer. */
  close: (code: number, reason: string) => void
  terminate: () => void
}
