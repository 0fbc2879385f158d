// All private knowledge of ws 8.23.0 and of Node's sockets beneath it, but how it inflates, which is in inflate.js.
// frames.test.js holds it to that version.
//
// Why not ws.send(): it frames the same value again for every session and writes every frame on its own, and one write
// a delivery is what limits a gateway. Here a frame is built once, and what a session is due leaves in one write.
//
// What is relied on, and may change with any release of ws:
// - `_socket` is the net.Socket, and frames written to it stay whole: while nobody sends compressed messages or Blobs
//   through ws it holds nothing back, and writes its own frames (the answers to a close or to a protocol error) in one
//   piece as well;
// - the socket's `_handle` is libuv's stream, whose `bytesWritten` and `writeQueueSize` Node itself reads to tell a slow
//   connection from a dead one;
// - `new WebSocketServer({ WebSocket })` constructs that class, `autoPong: false` leaves pings to us.
import { WebSocket } from 'ws'
import { storedBlock } from '../encodings/deflate.js'

/**
 * A frame's first byte: FIN and the opcode (RFC 6455 section 5.2).
 */
const TEXT = 0x81
const BINARY = 0x82
const PING = 0x89
const PONG = 0x8a

/** The bit of a first byte that says that the message is compressed (RFC 7692 section 7.2.3.1). */
const COMPRESSED = 0x40

/** Longest payload of a control frame (RFC 6455 section 5.5). */
const CONTROL_BYTES_MAX = 125

const LONGEST_HEADER_BYTES = 10

/** Up to this size copying bytes together costs less than one more entry in a gathered write. */
const COPY_BYTES_MAX = 4 * 1024

/**
 * A piece of what is written: frames ready to leave, part of one, or the text of a message yet to be framed.
 * @typedef {Buffer | string} Piece
 */

/** A connection, with room for what the gateway knows of it: an event's listener then needs no closure of its own. */
export class SessionSocket extends WebSocket {
  /** @type {import('../sessions/session.js').Session | undefined} */
  session = undefined
}

/** @param {WebSocket} ws one of a server that makes {@link SessionSocket}s */
export function sessionOf(ws) {
  return /** @type {SessionSocket} */ (ws).session
}

/** @param {number} payloadBytes */
export function headerBytes(payloadBytes) {
  if (payloadBytes < 126) return 2
  return payloadBytes < 65_536 ? 4 : LONGEST_HEADER_BYTES
}

/**
 * Writes the header of an unmasked, unfragmented frame (RFC 6455 section 5.2).
 *
 * @param {Buffer} target
 * @param {number} offset
 * @param {number} firstByte
 * @param {number} payloadBytes
 * @returns {number} the offset of the payload
 */
function writeHeader(target, offset, firstByte, payloadBytes) {
  target[offset] = firstByte
  if (payloadBytes < 126) {
    target[offset + 1] = payloadBytes
    return offset + 2
  }
  if (payloadBytes < 65_536) {
    target[offset + 1] = 126
    target.writeUInt16BE(payloadBytes, offset + 2)
    return offset + 4
  }
  target[offset + 1] = 127
  target.writeUInt32BE(Math.floor(payloadBytes / 2 ** 32), offset + 2)
  target.writeUInt32BE(payloadBytes % 2 ** 32, offset + 6)
  return offset + 10
}

/**
 * One text message as a frame of its own memory, to be kept and written to many sessions.
 *
 * @param {string} head
 * @param {Buffer} [body] UTF-8
 * @param {string} [tail]
 * @returns {{ frame: Buffer, bodyOffset: number }}
 */
export function textFrame(head, body, tail = '') {
  const headBytes = Buffer.byteLength(head)
  const payloadBytes = headBytes + (body?.length ?? 0) + Buffer.byteLength(tail)
  // Not from Node's pool, of which a kept slice would hold 8 KB.
  const frame = Buffer.allocUnsafeSlow(headerBytes(payloadBytes) + payloadBytes)
  const headOffset = writeHeader(frame, 0, TEXT, payloadBytes)
  frame.write(head, headOffset)
  const bodyOffset = headOffset + headBytes
  body?.copy(frame, bodyOffset)
  frame.write(tail, bodyOffset + (body?.length ?? 0))
  return { frame, bodyOffset }
}

/**
 * The start of a text message whose rest is written right after it.
 *
 * @param {string} head
 * @param {number} restBytes
 */
export function textFrameStart(head, restBytes) {
  return frameStart(TEXT, head, restBytes)
}

/**
 * The start of a binary message whose rest is written right after it.
 *
 * @param {string} head
 * @param {number} restBytes
 */
export function binaryFrameStart(head, restBytes) {
  return frameStart(BINARY, head, restBytes)
}

/**
 * The start of a compressed message whose rest, DEFLATE blocks, is written right after it.
 *
 * @param {boolean} binary
 * @param {string} head of the message, as it is
 * @param {number} restBytes
 */
export function deflatedFrameStart(binary, head, restBytes) {
  const block = storedBlock(head)
  const payloadBytes = block.length + restBytes
  const start = Buffer.allocUnsafe(headerBytes(payloadBytes) + block.length)
  block.copy(start, writeHeader(start, 0, (binary ? BINARY : TEXT) | COMPRESSED, payloadBytes))
  return start
}

/** @param {number} firstByte @param {string} head @param {number} restBytes */
function frameStart(firstByte, head, restBytes) {
  const headBytes = Buffer.byteLength(head)
  const payloadBytes = headBytes + restBytes
  const start = Buffer.allocUnsafe(headerBytes(payloadBytes) + headBytes)
  start.write(head, writeHeader(start, 0, firstByte, payloadBytes))
  return start
}

/** A ping without payload. */
export const pingFrame = Buffer.from([PING, 0])

/** @param {Buffer} payload of the ping answered, at most 125 bytes: ws lets no longer ones through */
export function pongFrame(payload) {
  if (payload.length > CONTROL_BYTES_MAX) throw new RangeError('a pong carries at most 125 bytes')
  const frame = Buffer.allocUnsafe(2 + payload.length)
  payload.copy(frame, writeHeader(frame, 0, PONG, payload.length))
  return frame
}

/**
 * Writes pieces in order, in one write to the socket. Small ones are copied together, large ones are passed on as they
 * are. Nothing may be written between the start of a frame and its rest, so a frame's pieces go in one call.
 *
 * @param {WebSocket} ws open
 * @param {Piece[]} pieces
 */
export function writePieces(ws, pieces) {
  const socket = socketOf(ws)
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
      // Its bytes are counted when it is written: no UTF-16 unit takes more than three.
      bytes += LONGEST_HEADER_BYTES + piece.length * 3
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

/**
 * @param {Piece[]} pieces
 * @param {number} first
 * @param {number} end
 * @param {number} bytesMax
 */
function together(pieces, first, end, bytesMax) {
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

/**
 * What a piece takes of memory of its own when it is written, until it is sent; 0 where it is passed on as it is.
 *
 * @param {Piece} piece
 */
export function copiedBytes(piece) {
  if (typeof piece === 'string') return LONGEST_HEADER_BYTES + piece.length * 3
  return piece.length <= COPY_BYTES_MAX ? piece.length : 0
}

/**
 * How many bytes the kernel has taken of all that was written: each time it takes more, the other end has read some.
 *
 * @param {WebSocket} ws
 */
export function takenBytes(ws) {
  const { _handle } = /** @type {{ _handle: { bytesWritten: number, writeQueueSize: number } | null }} */ (
    /** @type {unknown} */ (socketOf(ws))
  )
  // Closed meanwhile: it takes no more.
  return _handle ? _handle.bytesWritten - _handle.writeQueueSize : 0
}

/**
 * Whether the other end does not take what was written. True only where {@link onDrain} will tell the end of it.
 *
 * @param {WebSocket} ws
 */
export function isStalled(ws) {
  const socket = socketOf(ws)
  // A large write that the kernel took at once also "needs drain" until the next tick: nothing is left of it, though.
  return socket.writableNeedDrain && socket.writableLength > 0
}

/**
 * @param {SessionSocket} ws
 * @param {(session: import('../sessions/session.js').Session) => void} drained called when all that was written is gone, after
 *   {@link isStalled} was true (and at other times)
 */
export function onDrain(ws, drained) {
  socketOf(ws).on('drain', () => {
    if (ws.session) drained(ws.session)
  })
}

/**
 * The socket beneath.
 *
 * @param {WebSocket} ws
 * @returns {import('node:net').Socket}
 */
function socketOf(ws) {
  return /** @type {{ _socket: import('node:net').Socket }} */ (/** @type {unknown} */ (ws))._socket
}
