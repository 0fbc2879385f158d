// Finds the ZeroMQ messages in a TCP stream (ZMTP 3.1, https://rfc.zeromq.org/spec/37/), so that a proxy can drop whole
// ones.

const GREETING_BYTES = 64
const MORE = 1
const LONG = 2
const COMMAND = 4

/**
 * Splits one direction of a connection. A message of several parts is one piece, and one that has begun is never cut:
 * whether it may be dropped is said once per piece. Greeting and commands must get through.
 */
export function createMessageSplitter(): (chunk: Buffer) => { bytes: Buffer; droppable: boolean }[] {
  let pending = Buffer.alloc(0)
  let greetingBytesLeft = GREETING_BYTES
  /** Bytes of the message at the head of `pending` that are known to be whole parts. */
  let whole = 0

  return chunk => {
    const pieces = []
    if (greetingBytesLeft > 0) {
      // Passed on in the pieces it comes in: each peer waits for the other's first bytes before it says the rest.
      const greeting = chunk.subarray(0, greetingBytesLeft)
      pieces.push({ bytes: greeting, droppable: false })
      greetingBytesLeft -= greeting.length
      chunk = chunk.subarray(greeting.length)
    }
    pending = Buffer.concat([pending, chunk])
    for (;;) {
      const frame = readFrame(pending, whole)
      if (frame === undefined) return pieces
      whole = frame.end
      if (frame.flags & MORE) continue
      pieces.push({ bytes: pending.subarray(0, whole), droppable: !(frame.flags & COMMAND) })
      pending = pending.subarray(whole)
      whole = 0
    }
  }
}

function readFrame(bytes: Buffer, start: number) {
  if (bytes.length < start + 2) return undefined
  const flags = bytes[start]
  const isLong = (flags & LONG) !== 0
  const headBytes = isLong ? 9 : 2
  if (bytes.length < start + headBytes) return undefined
  const end = start + headBytes + (isLong ? Number(bytes.readBigUInt64BE(start + 1)) : bytes[start + 1])
  return bytes.length < end ? undefined : { flags, end }
}
