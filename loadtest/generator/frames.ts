// WebSocket frames (RFC 6455 section 5), as a load generator needs them: what is sent is tiny and masked; what comes is
// large, and only its beginning and its length are looked at. Nothing is copied but the first bytes of each message.

export const opcodes = Object.freeze({ continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 })

const FINAL = 0x80
const MASKED = 0x80
const RESERVED = 0x70
/** This 7-bit length stands for one in the next 2 bytes, the one above it for one in the next 8. */
const LENGTH_IN_2 = 126
/** Two bytes, and a length in eight. */
const HEADER_BYTES_MAX = 10
const CONTROL_BYTES_MAX = 125

/**
 * A client's frame: masked, as section 5.3 demands.
 *
 * @param payload at most 65,535 bytes: a request is short
 * @param mask 32 bits
 */
export function encodeFrame(
  payload: string | Buffer,
  opcode: number = opcodes.text,
  mask: number = (Math.random() * 2 ** 32) >>> 0,
) {
  const bytes = typeof payload === 'string' ? Buffer.byteLength(payload) : payload.length
  if (bytes > 65_535) throw new RangeError(`a request of ${bytes} bytes is longer than a load test sends`)
  const start = bytes < LENGTH_IN_2 ? 6 : 8
  const frame = Buffer.allocUnsafe(start + bytes)
  frame[0] = FINAL | opcode
  if (start === 6) {
    frame[1] = MASKED | bytes
  } else {
    frame[1] = MASKED | LENGTH_IN_2
    frame.writeUInt16BE(bytes, 2)
  }
  frame.writeUInt32BE(mask, start - 4)
  if (typeof payload === 'string') frame.write(payload, start)
  else payload.copy(frame, start)
  for (let i = 0; i < bytes; i++) frame[start + i] ^= frame[start - 4 + (i & 3)]
  return frame
}

/** A server's bytes are no WebSocket frame, or one this generator does not ask for. */
export class FrameError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'FrameError'
  }
}

export interface FrameEvents {
  /**
   * A message is complete. `head`: its first bytes, one character a byte; `bytes`: its length; `whole`: where it was
   * asked for.
   */
  onMessage: (head: string, bytes: number, opcode: number, whole: Buffer | undefined) => void
  /** Ping, pong or close. */
  onControl: (opcode: number, payload: Buffer) => void
  /**
   * A text message that came whole in one read, before any of it is copied. True where that was all: `onMessage` is not
   * called.
   */
  onWhole?: (from: Buffer, at: number, end: number) => boolean
}

/**
 * Reads one connection's frames from whatever pieces they come in.
 *
 * @param options `headBytesMax`: how much of each message is handed on (0: nothing); `wantsWhole`: asked at each
 *   message's first byte whether to keep all of it
 */
export function createFrameReader({
  headBytesMax,
  wantsWhole,
  onWhole,
  onMessage,
  onControl,
}: FrameEvents & { headBytesMax: number; wantsWhole?: () => boolean }) {
  /** Header bytes of a frame whose header came in pieces. */
  let partial: Buffer | undefined
  let partialBytes = 0
  /** Payload bytes of the current frame still to come; -1: a header comes next. */
  let left = -1
  let opcode = 0
  let final = true
  // Of the message, which may be spread over several frames.
  let messageOpcode = 0
  let head = ''
  let messageBytes = 0
  let kept: Buffer[] | undefined
  let control: Buffer[] = []

  /** @param at where a header begins @returns bytes it has, or 0: not all is there */
  const readHeader = (from: Buffer, at: number, end: number): number => {
    if (end - at < 2) return 0
    const short = from[at + 1] & 0x7f
    const bytes = short < LENGTH_IN_2 ? 2 : short === LENGTH_IN_2 ? 4 : HEADER_BYTES_MAX
    if (end - at < bytes) return 0
    if (from[at + 1] & MASKED) throw new FrameError('a server must not mask (RFC 6455 section 5.1)')
    if (from[at] & RESERVED) throw new FrameError('a reserved bit is set, but no extension was agreed on')
    opcode = from[at] & 0x0f
    final = (from[at] & FINAL) !== 0
    left = bytes === 2 ? short : bytes === 4 ? (from[at + 2] << 8) | from[at + 3] : Number(from.readBigUInt64BE(at + 2))
    if (opcode >= opcodes.close) {
      if (left > CONTROL_BYTES_MAX || !final) throw new FrameError('a control frame is too long or in pieces')
      control = []
    } else if (opcode !== opcodes.continuation) {
      messageOpcode = opcode
      head = ''
      messageBytes = 0
      kept = wantsWhole?.() ? [] : undefined
    }
    return bytes
  }

  /** @param end of the payload's part at hand */
  const take = (from: Buffer, at: number, end: number) => {
    if (opcode >= opcodes.close) {
      if (end > at) control.push(Buffer.from(from.subarray(at, end)))
    } else {
      if (head.length < headBytesMax && end > at) {
        head += from.toString('latin1', at, Math.min(end, at + headBytesMax - head.length))
      }
      messageBytes += end - at
      if (kept !== undefined && end > at) kept.push(Buffer.from(from.subarray(at, end)))
    }
    left -= end - at
    if (left > 0) return
    left = -1
    if (opcode >= opcodes.close) onControl(opcode, Buffer.concat(control))
    else if (final) onMessage(head, messageBytes, messageOpcode, kept && Buffer.concat(kept))
  }

  return {
    /**
     * @param chunk may be reused after the call
     * @throws {FrameError}
     */
    read(chunk: Buffer, start: number, end: number) {
      let at = start
      // A frame without payload is complete with its header, also where the chunk ends there.
      while (at < end || left === 0) {
        if (left === -1) {
          if (partialBytes > 0) {
            at += completeHeader(chunk, at, end)
          } else {
            const bytes = readHeader(chunk, at, end)
            if (bytes === 0) {
              partial ??= Buffer.allocUnsafeSlow(HEADER_BYTES_MAX)
              partialBytes = chunk.copy(partial, 0, at, end)
              return
            }
            at += bytes
          }
          if (left === -1) return
          const next = at + left
          if (onWhole !== undefined && final && opcode === opcodes.text && next <= end && onWhole(chunk, at, next)) {
            at = next
            left = -1
            continue
          }
        }
        const until = Math.min(end, at + left)
        take(chunk, at, until)
        at = until
      }
    },
  }

  /** @returns bytes used */
  function completeHeader(chunk: Buffer, at: number, end: number): number {
    const buffer = partial as Buffer
    const before = partialBytes
    const available =
      partialBytes + chunk.copy(buffer, partialBytes, at, Math.min(end, at + HEADER_BYTES_MAX - partialBytes))
    const bytes = readHeader(buffer, 0, available)
    partialBytes = bytes === 0 ? available : 0
    return (bytes === 0 ? available : bytes) - before
  }
}
