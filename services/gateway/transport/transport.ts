// A session's connection, as sessions and delivery use it. They know only this interface, of which websocket.ts is the
// one implementation. A stream over HTTP could carry a session as well.

/**
 * @typedef {import('../sessions/session.ts').Session} Session
 *
 * A part of what is written: bytes that are framed already (a whole frame, or part of one), or the text of a control
 * message, which the transport frames as it writes it.
 * @typedef {Buffer | string} Piece
 *
 * The reports of a connection, each with its session. One object serves all connections: tens of thousands of them
 * need no closures of their own.
 * @typedef {object} TransportEvents
 * @property {(session: Session, data: Buffer, isBinary: boolean) => void} onMessage
 * @property {(session: Session, payload: Buffer) => void} onPing the client's own ping, to be answered with a pong
 *   frame
 * @property {(session: Session) => void} onPong the client answered a ping
 * @property {(session: Session, bytes: number) => void} onUnfinished memory that a message takes of which the rest is
 *   still to come; 0 once it is whole
 * @property {(session: Session) => void} onDrain all that was written is gone, after `isStalled` was true (and at other
 *   times)
 * @property {(session: Session, code: number) => void} onClose the connection is gone; `code` as in RFC 6455 section
 *   7.4
 *
 * @typedef {object} Transport
 * @property {string} subprotocol as negotiated; empty where the client offered none
 * @property {boolean} isCompressed whether the client takes compressed messages (RFC 7692)
 * @property {(session: Session, events: TransportEvents) => void} serve ties the connection to its session. To be
 *   called once, before anything is read
 * @property {(pieces: Piece[]) => void} write writes all of them, in order, at once. A frame's pieces must come in one
 *   call
 * @property {() => boolean} isOpen whether anything may still be written
 * @property {() => boolean} isStalled whether the client does not take the written bytes; true only if `onDrain`
 *   follows
 * @property {() => number} takenBytes the number of written bytes that have left: each time it grows, the client has
 *   read
 * @property {(piece: Piece) => number} copiedBytes memory of its own that a written piece takes until it is sent; 0
 *   where the piece itself is kept
 * @property {Buffer} pingFrame a piece that makes the client answer
 * @property {(payload: Buffer) => Buffer} pongFrame the piece that answers the client's ping
 * @property {() => void} pause reads nothing more
 * @property {(code: number, reason: string) => void} close tells the client why and waits for its answer
 * @property {() => void} terminate cuts the connection
 */

export {}
