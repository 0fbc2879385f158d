// Accepts WebSockets: an upgrade request that was let in becomes a transport. The set-up of ws is here.
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
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

interface Options {
  messageBytesMax: number
  /** Whether clients may negotiate it. */
  compression: boolean
  chooseSubprotocol: (offered: Iterable<string>) => string | undefined
}

export function createAccept({ messageBytesMax, compression, chooseSubprotocol }: Options) {
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
    handleProtocols: (offered: Set<string>) => chooseSubprotocol(offered) ?? false,
  }
  const server = new WebSocketServer(options)
  const inflateInPlace = createInflate(messageBytesMax)

  /** Answers the handshake; a malformed one with an error, and nothing else is called then. */
  return function accept(
    request: IncomingMessage,
    socket: Duplex,
    head: Buffer,
    opened: (transport: WebSocketTransport) => void,
  ) {
    const { headers } = request
    headers['sec-websocket-extensions'] = takeableOffer(headers['sec-websocket-extensions'])
    server.handleUpgrade(request, socket, head, ws => {
      inflateInPlace(ws)
      opened(ws as WebSocketTransport)
    })
  }
}
