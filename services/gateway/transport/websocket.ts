// A session's connection over WebSocket. All private knowledge of ws 8.23.0 and of Node's sockets beneath it is here,
// but for how ws inflates, which is in inflate.ts. websocket.test.ts pins that version.
//
// Why not ws.send(): it frames the same value again for every session and writes every frame on its own, and one write
// a delivery is what limits a gateway. Here a frame is built once, and what a session is due leaves in one write.
//
// This relies on, and any release of ws may change:
// - `_socket` is the net.Socket, and frames written to it stay whole: while nobody sends compressed messages or Blobs
//   through ws it buffers nothing, and writes its own frames (the answers to a close or to a protocol error) in one
//   piece as well;
// - `new WebSocketServer({ WebSocket })` constructs that class, `autoPong: false` leaves pings to us;
// - when the client shuts down its side, `readyState` is CLOSING and the socket's `end()` was called; ws does so in the
//   last listener of the socket's `end`, one function for all sockets;
// - a paused socket is read from until its readable side holds `highWaterMark` bytes;
// - Node keeps the address of the other end in the socket's `_peername` once it was asked for, and asks again without;
// - `_receiver._bufferedBytes` are bytes of a frame that is not whole, and `_fragmented` is not 0 while fragments of a
//   message are held; while a message is reported, they are those that came behind it, in `_buffers`, which may be taken
//   out: ws is then done with its read; what comes after a frame of `_opcode` 8 is ignored;
// - no method or field of ws has a name that the class below gives its own.
import type { Socket } from 'node:net'
import { type RawData, WebSocket } from 'ws'
import type { Session } from '../sessions/session.ts'
import { HEADER_BYTES_MAX, pingFrame, pongFrame, TEXT, writeHeader } from './frames.ts'
import { isCompressed } from './inflate.ts'
import { takenBytes } from './taken-bytes.ts'
import type { Piece, TransportEvents } from './transport.ts'

/** Up to this size copying bytes together costs less than one more entry in a gathered write. */
const COPY_BYTES_MAX = 4 * 1024

/** The cost of a read beside its bytes while it is held: a Buffer, its memory's own fixed part, a place in a list. */
const CHUNK_BYTES = 256

/** Behind a message that came too late the answer to a close may stand, within so many bytes. */
const LATE_BYTES_MAX = 1_024

const CLOSE_OPCODE = 8

/** Under it a socket holds its transport: so one function serves all sockets. */
const TRANSPORT = Symbol('transport')

/** A client that shut down its side has this long to read the bytes written to it. */
const HALF_CLOSED_MS = 5_000

/**
 * The class that the WebSocket server makes connections of. A subclass, not a wrapper: another object for each
 * connection would be memory that idle sessions never use.
 *
 * @implements {Transport}
 */
export class WebSocketTransport extends WebSocket {
  session: Session | undefined = undefined

  events: TransportEvents | undefined = undefined

  /** ws's own listener for a client that shuts down its side. */
  wsOnEnd: () => void = ignore

  /** Memory that a message takes of which the rest is still to come. */
  unfinishedBytes = 0

  get subprotocol() {
    return this.protocol
  }

  get isCompressed() {
    return isCompressed(this)
  }

  get answersPings() {
    return true
  }

  get pingFrame() {
    return pingFrame
  }

  /** @param payload ws lets none over 125 bytes through */
  pongFrame(payload: Buffer) {
    return pongFrame(payload)
  }

  serve(session: Session, events: TransportEvents) {
    this.session = session
    this.events = events
    this.on('message', onMessage)
    this.on('ping', onPing)
    this.on('pong', onPong)
    this.on('close', onClose)
    // ws answers what a client gets wrong at this level with a close, and `close` follows. Unheard, an error ends the
    // process.
    this.on('error', ignore)
    const socket = Object.assign(socketOf(this), { [TRANSPORT]: this })
    // While it is paused one read comes at most. Thousands of small ones would all be gone through when it is read on.
    readableOf(socket).highWaterMark = 1
    // Runs after ws's own listener, when its reading of the bytes is known.
    socket.on('data', onData)
    socket.on('drain', onDrain)
    // Replaces ws's listener and calls it: with a third listener Node would keep a list with room for nineteen.
    this.wsOnEnd = socket.listeners('end').at(-1) as () => void
    socket.off('end', this.wsOnEnd)
    socket.on('end', onEnd)
    // Asked for at the handshake, and kept for as long as the socket lives.
    Object.assign(socket, { _peername: undefined })
  }

  isOpen() {
    return this.readyState === this.OPEN
  }

  isStalled() {
    const socket = socketOf(this)
    // A large write that the kernel took at once also "needs drain" until the next tick: nothing is left of it, though.
    return socket.writableNeedDrain && socket.writableLength > 0
  }

  /** Not in a tick to come, as after `resume` alone: whoever calls this looks at the time that it took. */
  readOn() {
    this.resume()
    socketOf(this).read()
  }

  takenBytes() {
    return takenBytes(socketOf(this))
  }

  copiedBytes(piece: Piece) {
    if (typeof piece === 'string') return HEADER_BYTES_MAX + Buffer.byteLength(piece)
    return piece.length <= COPY_BYTES_MAX ? piece.length : 0
  }

  /** Copies small pieces together and passes large ones on as they are, in one gathered write. */
  write(pieces: Piece[]) {
    const socket = socketOf(this)
    if (pieces.length === 1 && typeof pieces[0] !== 'string') {
      socket.write(pieces[0])
      return
    }
    let corked = false
    let first = 0
    let bytes = 0
    for (let index = 0; index < pieces.length; index++) {
      const piece = pieces[index]
      if (typeof piece === 'string') {
        bytes += textBytesMax(piece)
      } else if (piece.length <= COPY_BYTES_MAX) {
        bytes += piece.length
      } else {
        if (!corked) socket.cork()
        corked = true
        if (index > first) socket.write(together(pieces, first, index, bytes))
        socket.write(piece)
        first = index + 1
        bytes = 0
      }
    }
    if (pieces.length > first) socket.write(together(pieces, first, pieces.length, bytes))
    if (corked) socket.uncork()
  }
}

// These serve all connections: `this` is the one concerned.

function onMessage(this: WebSocket, data: RawData, isBinary: boolean) {
  const { session, events, unfinishedBytes } = this as WebSocketTransport
  if (unfinishedBytes > 0) reportUnfinished(this as WebSocketTransport, 0)
  // A Buffer: a connection's binaryType makes nothing else of it unless it is set.
  if (!session) return
  events?.onMessage(session, data as Buffer, isBinary)
  lookBehind(this as WebSocketTransport)
}

function onPing(this: WebSocket, payload: Buffer) {
  const { session, events } = this as WebSocketTransport
  if (!session) return
  events?.onPing(session, payload)
  lookBehind(this as WebSocketTransport)
}

function onPong(this: WebSocket) {
  const { session, events } = this as WebSocketTransport
  if (!session) return
  events?.onPong(session)
  lookBehind(this as WebSocketTransport)
}

/**
 * Ten thousand messages may have come in one read. Those of a session that is closed are for nobody; those of another wait
 * where it is not its turn.
 */
function lookBehind(transport: WebSocketTransport) {
  const receiver = receiverOf(transport)
  if (receiver._bufferedBytes === 0) return
  const { ended, closing } = transport.session as Session
  if (!ended && !closing) waitForTurn(transport, receiver)
  else if (receiver._bufferedBytes > LATE_BYTES_MAX) {
    takeRest(receiver)
    receiver._opcode = CLOSE_OPCODE
  }
}

/** What is still to be read goes back to the socket, unless the session may be read on now. */
function waitForTurn(transport: WebSocketTransport, receiver: Receiver) {
  const { session, events, unfinishedBytes } = transport
  const socket = socketOf(transport)
  // A compressed message is reported once it is inflated. By then ws may have another read to go through behind this one, or
  // the socket has ended and takes nothing back.
  const isTooLate = receiver._writableState.bufferedRequestCount > 0 || socket.readableEnded
  if (isTooLate || !events || events.mayReadOn(session as Session, receiver._bufferedBytes)) return
  const rest = takeRest(receiver)
  transport.pause()
  socket.unshift(rest)
  const heldBytes = receiver._fragmented === 0 ? 0 : unfinishedBytes
  reportUnfinished(transport, heldBytes + rest.length + CHUNK_BYTES)
}

function takeRest(receiver: Receiver): Buffer {
  const rest = Buffer.concat(receiver._buffers)
  receiver._buffers = []
  receiver._bufferedBytes = 0
  return rest
}

function onClose(this: WebSocket, code: number) {
  const { session, events } = this as WebSocketTransport
  if (session) events?.onClose(session, code)
}

type OurSocket = Socket & { [TRANSPORT]: WebSocketTransport }

function onDrain(this: OurSocket) {
  const { session, events } = this[TRANSPORT]
  if (session) events?.onDrain(session)
}

/**
 * Counts a read as held where it did not end with a whole message. Control frames between fragments free nothing of it:
 * a fragment of one byte holds the memory of all that was read with it.
 */
function onData(this: OurSocket, chunk: Buffer) {
  const transport = this[TRANSPORT]
  // What of it is not read yet is counted.
  if (transport.isPaused) return
  const { _bufferedBytes, _fragmented } = receiverOf(transport)
  const { unfinishedBytes } = transport
  if (_bufferedBytes > 0 || _fragmented !== 0) reportUnfinished(transport, unfinishedBytes + chunk.length + CHUNK_BYTES)
  else if (unfinishedBytes > 0) reportUnfinished(transport, 0)
}

function reportUnfinished(transport: WebSocketTransport, bytes: number) {
  transport.unfinishedBytes = bytes
  const { session, events } = transport
  if (session) events?.onUnfinished(session, bytes)
}

/**
 * The client shut down its side. ws then ends ours, but sets no timer: the socket of a client that stopped reading
 * would stay for ever.
 */
function onEnd(this: OurSocket) {
  const { wsOnEnd, events } = this[TRANSPORT]
  wsOnEnd.call(this)
  const cut = events?.after(HALF_CLOSED_MS, () => this.destroy())
  if (cut) this.once('close', cut)
}

function ignore() {}

/**
 * Most that a text takes as a frame. Its bytes are counted when it is written: no UTF-16 unit takes more than three.
 */
function textBytesMax(text: string) {
  return HEADER_BYTES_MAX + text.length * 3
}

function together(pieces: Piece[], first: number, end: number, bytesMax: number) {
  const target = Buffer.allocUnsafe(bytesMax)
  let offset = 0
  for (let index = first; index < end; index++) {
    const piece = pieces[index]
    if (typeof piece === 'string') {
      const bytes = Buffer.byteLength(piece)
      offset = writeHeader(target, offset, TEXT, bytes)
      offset += target.write(piece, offset)
    } else {
      target.set(piece, offset)
      offset += piece.length
    }
  }
  return target.subarray(0, offset)
}

const readableOf = (socket: Socket) =>
  (socket as unknown as { _readableState: { highWaterMark: number } })._readableState

/** The socket beneath. */
function socketOf(ws: WebSocket): Socket {
  return (ws as unknown as { _socket: Socket })._socket
}

interface Receiver {
  _writableState: { bufferedRequestCount: number }
  _buffers: Buffer[]
  _bufferedBytes: number
  _fragmented: number
  _opcode: number
}

const receiverOf = (ws: WebSocket) => (ws as unknown as { _receiver: Receiver })._receiver
