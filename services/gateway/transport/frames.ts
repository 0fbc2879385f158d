// The frames of RFC 6455 as a server sends them: unmasked, unfragmented. Bytes only; nothing here knows a connection.

/** A frame's first byte: FIN and the opcode (RFC 6455 section 5.2). */
export const TEXT = 0x81
const BINARY = 0x82
const PING = 0x89
const PONG = 0x8a

/** The bit of a first byte that marks the message as compressed (RFC 7692 section 7.2.3.1). */
const COMPRESSED = 0x40

/** Longest payload of a control frame (RFC 6455 section 5.5). */
const CONTROL_BYTES_MAX = 125

export const HEADER_BYTES_MAX = 10

export function headerBytes(payloadBytes: number) {
  if (payloadBytes < 126) return 2
  return payloadBytes < 65_536 ? 4 : HEADER_BYTES_MAX
}

/**
 * Writes the header of an unmasked, unfragmented frame (RFC 6455 section 5.2).
 *
 * @returns the offset of the payload
 */
export function writeHeader(target: Buffer, offset: number, firstByte: number, payloadBytes: number): number {
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
 * @param body UTF-8
 */
export function textFrame(head: string, body?: Buffer, tail = ''): { frame: Buffer; bodyOffset: number } {
  const headBytes = Buffer.byteLength(head)
  const payloadBytes = headBytes + (body?.length ?? 0) + Buffer.byteLength(tail)
  // Not from Node's pool: a slice that is kept would keep the pool's 8 KB.
  const frame = Buffer.allocUnsafeSlow(headerBytes(payloadBytes) + payloadBytes)
  const headOffset = writeHeader(frame, 0, TEXT, payloadBytes)
  frame.write(head, headOffset)
  const bodyOffset = headOffset + headBytes
  body?.copy(frame, bodyOffset)
  frame.write(tail, bodyOffset + (body?.length ?? 0))
  return { frame, bodyOffset }
}

/** The start of a text message whose rest is written right after it. */
export function textFrameStart(head: string, restBytes: number) {
  return frameStart(TEXT, head, restBytes)
}

/** The start of a binary message whose rest is written right after it. */
export function binaryFrameStart(head: string, restBytes: number) {
  return frameStart(BINARY, head, restBytes)
}

/**
 * The start of a compressed message (RFC 7692) whose other DEFLATE blocks are written right after it.
 *
 * @param isBinary whether the inflated message is binary
 * @param block the first of its blocks
 */
export function compressedFrameStart(isBinary: boolean, block: Buffer, restBytes: number) {
  const payloadBytes = block.length + restBytes
  const start = Buffer.allocUnsafe(headerBytes(payloadBytes) + block.length)
  block.copy(start, writeHeader(start, 0, (isBinary ? BINARY : TEXT) | COMPRESSED, payloadBytes))
  return start
}

function frameStart(firstByte: number, head: string, restBytes: number) {
  const headBytes = Buffer.byteLength(head)
  const payloadBytes = headBytes + restBytes
  const start = Buffer.allocUnsafe(headerBytes(payloadBytes) + headBytes)
  start.write(head, writeHeader(start, 0, firstByte, payloadBytes))
  return start
}

/** A ping without payload. */
export const pingFrame = Buffer.from([PING, 0])

/** @param payload of the ping answered, at most 125 bytes */
export function pongFrame(payload: Buffer) {
  if (payload.length > CONTROL_BYTES_MAX) throw new RangeError('a pong carries at most 125 bytes')
  const frame = Buffer.allocUnsafe(2 + payload.length)
  payload.copy(frame, writeHeader(frame, 0, PONG, payload.length))
  return frame
}
