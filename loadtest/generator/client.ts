// A cheap WebSocket client: a bare socket, one read buffer for all connections of a process, no copy of the received
// bytes. The generator shares a machine with the system, so CPU time that it saves is left to the system.
import { createHash, randomBytes } from 'node:crypto'
import { connect as connectTcp } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { nowUs } from './clock.ts'
import { createFrameReader, encodeFrame, FrameError, type FrameEvents, opcodes } from './frames.ts'

/**
 * The most that one read takes: a document of 130 KB comes in one or two. It is parsed before the next read, so one
 * buffer is enough.
 */
const READ_BYTES = 256 * 1_024
const readBuffer = Buffer.allocUnsafeSlow(READ_BYTES)

/** RFC 6455 section 1.3. */
const ACCEPT_GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'
const RESPONSE_BYTES_MAX = 16_384

interface ClientEvents {
  /** The handshake is over. */
  onOpen: () => void
  onMessage: FrameEvents['onMessage']
  onWhole?: FrameEvents['onWhole']
  /** Once, whatever happened. */
  onEnd: (why: Ending) => void
}

/**
 * How a connection ended. `refused`: it never opened; `dropped`: the other side or the network ended it; `closed`: we
 * did.
 */
export interface Ending {
  how: 'refused' | 'dropped' | 'closed'
  reason: string
}

interface ClientOptions {
  /** ws: or wss: */
  url: URL
  /** The loopback address to come from. */
  localAddress?: string
  subprotocol?: string
  /** Sent with the handshake. */
  token?: string
  headBytesMax: number
  wantsWhole?: () => boolean
}

export type Client = ReturnType<typeof createClient>

/**
 * `bytes` came over all connections of this process, handshakes included; with TLS they are counted decrypted. `atUs`:
 * when the data being read came. A read brings hundreds of small messages at a time, and a look at the clock for each would be dear.
 */
export const received = { bytes: 0, atUs: 0 }

export function createClient({
  url,
  localAddress,
  subprotocol,
  token,
  headBytesMax,
  wantsWhole,
  onOpen,
  onMessage,
  onWhole,
  onEnd,
}: ClientOptions & ClientEvents) {
  const key = randomBytes(16).toString('base64')
  const reader = createFrameReader({ headBytesMax, wantsWhole, onWhole, onMessage, onControl })
  let state: 'connecting' | 'open' | 'closing' | 'ended' = 'connecting'
  let response = ''
  let reason = ''

  const secure = url.protocol === 'wss:'
  const options = {
    host: url.hostname,
    port: Number(url.port) || (secure ? 443 : 80),
    localAddress,
    noDelay: true,
    onread: { buffer: readBuffer, callback: onRead },
  }
  const socket = secure
    ? // The certificate of a local system is its own; a load test asks how fast, not who.
      connectTls({ ...options, rejectUnauthorized: false, ALPNProtocols: ['http/1.1'] })
    : connectTcp(options)
  socket.once(secure ? 'secureConnect' : 'connect', () => socket.write(request(url, key, { subprotocol, token })))
  socket.once('error', error => fail(error.message))
  socket.once('end', () => fail('the server ended the connection'))
  socket.once('close', () => {
    const how = state === 'connecting' ? 'refused' : state === 'closing' ? 'closed' : 'dropped'
    state = 'ended'
    onEnd({ how, reason: reason || 'the connection ended' })
  })

  return {
    isOpen: () => state === 'open',

    /** @param frames one or several, as made by `encodeFrame` */
    send(frames: Buffer) {
      if (state === 'open') socket.write(frames)
    },

    /** Sends a closing frame and does not await the answer: a load test has thousands to close. */
    close() {
      if (state === 'ended') return
      if (state === 'open') socket.write(encodeFrame(Buffer.from([0x03, 0xe8]), opcodes.close))
      state = 'closing'
      socket.end()
      socket.destroySoon()
    },
  }

  function fail(why: string) {
    reason ||= why
    socket.destroy()
  }

  function onRead(bytes: number, buffer: Uint8Array) {
    const chunk = buffer as Buffer
    received.bytes += bytes
    received.atUs = nowUs()
    try {
      const start = state === 'connecting' ? readResponse(chunk, bytes) : 0
      if (start < bytes) reader.read(chunk, start, bytes)
    } catch (error) {
      if (!(error instanceof FrameError)) throw error
      fail(error.message)
    }
    return true
  }

  /** @returns where the first frame begins */
  function readResponse(chunk: Buffer, bytes: number): number {
    const before = response.length
    response += chunk.toString('latin1', 0, bytes)
    const end = response.indexOf('\r\n\r\n')
    if (end === -1) {
      if (response.length > RESPONSE_BYTES_MAX) fail('the answer to the handshake is endless')
      return bytes
    }
    const problem = responseProblem(response.slice(0, end), key)
    response = ''
    if (problem !== undefined) {
      fail(problem)
      return bytes
    }
    state = 'open'
    onOpen()
    return end + 4 - before
  }

  function onControl(opcode: number, payload: Buffer) {
    if (opcode === opcodes.ping) socket.write(encodeFrame(payload, opcodes.pong))
    if (opcode !== opcodes.close) return
    const code = payload.length >= 2 ? payload.readUInt16BE(0) : 1005
    reason ||= `closed by the server: ${code} ${payload.toString('utf8', 2)}`.trim()
    socket.end(encodeFrame(payload, opcodes.close))
  }
}

function request(
  { pathname, search, host }: URL,
  key: string,
  { subprotocol, token }: { subprotocol?: string; token?: string },
) {
  return [
    `GET ${pathname}${search} HTTP/1.1`,
    `Host: ${host}`,
    'Upgrade: websocket',
    'Connection: Upgrade',
    'Sec-WebSocket-Version: 13',
    `Sec-WebSocket-Key: ${key}`,
    ...(subprotocol === undefined ? [] : [`Sec-WebSocket-Protocol: ${subprotocol}`]),
    ...(token === undefined ? [] : [`Authorization: Bearer ${token}`]),
    '\r\n',
  ].join('\r\n')
}

/** RFC 6455 section 4.1. */
function responseProblem(response: string, key: string): string | undefined {
  const [status, ...lines] = response.split('\r\n')
  if (!/^HTTP\/1\.1 101\b/.test(status)) return `the handshake was answered with ${status.slice(9, 80)}`
  const accept = lines.find(line => /^sec-websocket-accept:/i.test(line))?.slice('sec-websocket-accept:'.length)
  const expected = createHash('sha1')
    .update(key + ACCEPT_GUID)
    .digest('base64')
  if (accept?.trim() !== expected) return 'the handshake was answered with a wrong Sec-WebSocket-Accept'
  return undefined
}
