// Accepts WebSockets: an upgrade request that was let in becomes a transport. The set-up of ws is here.
import { WebSocketServer } from 'ws'
import { createInflate, deflateOptions, takeableOffer } from './inflate.ts'
import { WebSocketTransport } from './websocket.ts'

/** A client's message needs few fragments; each unfinished one is memory that a stranger can claim. */
const FRAGMENTS_MAX = 64

/** Reads that any message may arrive in. */
const CHUNKS_MIN = 1_024

/**
 * Longer messages may arrive in one read per so many bytes: even with segments of 536 bytes, the smallest, half as many
 * come.
 */
const CHUNK_BYTES = 256

/** The connection is cut if a close stays unanswered this long. */
const CLOSE_TIMEOUT_MS = 5_000

/**
 * @param {object} options
 * @param {number} options.messageBytesMax
 * @param {boolean} options.compression whether clients may negotiate it
 * @param {(offered: Iterable<string>) => string | undefined} options.chooseSubprotocol
 */
export function createAccept({ messageBytesMax, compression, chooseSubprotocol }) {
  const options = {
    noServer: true,
    WebSocket: WebSocketTransport,
    clientTracking: false,
    // Pongs go through the outbox as everything does, so that a client that pings and never reads is bounded with it.
    autoPong: false,
    maxPayload: messageBytesMax,
    maxFragments: FRAGMENTS_MAX,
    maxBufferedChunks: Math.max(CHUNKS_MIN, Math.ceil(messageBytesMax / CHUNK_BYTES)),
    closeTimeout: CLOSE_TIMEOUT_MS,
    perMessageDeflate: compression && deflateOptions,
    handleProtocols: (/** @type {Set<string>} */ offered) => chooseSubprotocol(offered) ?? false,
  }
  const server = new WebSocketServer(options)
  const inflateInPlace = createInflate(messageBytesMax)

  /**
   * Answers the handshake; a malformed one with an error, and nothing else is called then.
   *
   * @param {import('node:http').IncomingMessage} request
   * @param {import('node:stream').Duplex} socket
   * @param {Buffer} head
   * @param {(transport: WebSocketTransport) => void} opened
   */
  return function accept(request, socket, head, opened) {
    const { headers } = request
    headers['sec-websocket-extensions'] = takeableOffer(headers['sec-websocket-extensions'])
    server.handleUpgrade(request, socket, head, ws => {
      inflateInPlace(ws)
      opened(/** @type {WebSocketTransport} */ (ws))
    })
  }
}
