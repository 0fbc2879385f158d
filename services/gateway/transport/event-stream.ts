// A session's connection as a stream of server-sent events: what the gateway says goes out on one HTTP response that
// never ends by itself. The client's messages come in by other requests, see doors/stream/.
//
// The response has no Content-Length and is not chunked, so its body is what is written to the socket (RFC 9112 section
// 6.3): Node's own response would hold each write back for a turn of the event loop, and a large one would look stalled.
import type { OutgoingHttpHeaders, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { World } from '@keycast/service'
import type { Session } from '../sessions/session.ts'
import { comment, copiedBytes, eventsOf, type IdAfter, namedEvent } from './events.ts'
import { takenBytes } from './taken-bytes.ts'
import type { Piece, Transport, TransportEvents } from './transport.ts'

/** A client that was told of its end has this long to read it. */
const CLOSE_MS = 5_000

/** Browsers wait this long before they open a lost stream again: at random between the two, or all came at once. */
const RETRY_MS = { min: 1_000, max: 3_000 }

/** The event with which the gateway ends a stream. */
const CLOSE = 'close'

export type EventStream = ReturnType<typeof createEventStream>

interface Options {
  /** Not sent anything yet, and the first on its connection. */
  response: ServerResponse
  headers: OutgoingHttpHeaders
  idAfter: IdAfter
  world: Pick<World, 'random'>
}

/** Answers the request with a stream that is open. */
export function createEventStream({ response, headers, idAfter, world }: Options) {
  const socket = response.socket as Socket
  let code: number | undefined
  let unfinishedBytes = 0
  /** What cuts each request that is to come. */
  const awaited = new Set<() => void>()
  let isAnswered = false
  /** What is written once the socket has taken what was before. */
  let rest: ReturnType<typeof eventsOf> | undefined

  response.removeHeader('transfer-encoding')
  response.writeHead(200, {
    ...headers,
    'content-type': 'text/event-stream',
    'cache-control': 'no-store',
    connection: 'close',
    // nginx elsewhere, and what takes after it, would collect a response before it passes it on.
    'x-accel-buffering': 'no',
  })
  const retryMs = Math.round(RETRY_MS.min + world.random() * (RETRY_MS.max - RETRY_MS.min))
  response.write(`retry: ${retryMs}\n\n`)

  /** They count for the session: without it their memory would be nobody's. */
  function cutAwaited() {
    for (const cut of awaited) cut()
  }

  // A large write that the kernel took at once also "needs drain" until the next tick: nothing is left of it, though.
  const isFull = () => socket.writableNeedDrain && socket.writableLength > 0

  function writeOn() {
    while (rest && !isFull()) {
      const { done, value } = rest.next()
      if (done) rest = undefined
      socket.cork()
      for (const part of value ?? []) socket.write(part)
      socket.uncork()
    }
  }

  let serving: { session: Session; events: TransportEvents }

  return {
    subprotocol: '',
    isCompressed: false,
    /** EventSource and curl cannot. A client that has answered once goes on to, or is gone. */
    get answersPings() {
      return isAnswered
    },
    pingFrame: comment,

    serve(session, events) {
      serving = { session, events }
      socket.on('drain', () => events.onDrain(session))
      socket.once('close', () => {
        cutAwaited()
        events.onClose(session, code ?? 1006)
      })
    },

    /**
     * So many bytes of a request are to come.
     *
     * @param cut ends the request
     * @returns to be called once it has come, or is over
     */
    awaits(bytes: number, cut: () => void): () => void {
      const report = (more: number) => {
        unfinishedBytes += more
        serving.events.onUnfinished(serving.session, unfinishedBytes)
      }
      awaited.add(cut)
      report(bytes)
      return () => {
        awaited.delete(cut)
        report(-bytes)
      }
    },

    /** The client said something, in a request of its own. */
    hear(message: Buffer) {
      serving.events.onMessage(serving.session, message, false)
    },

    /** The client answered a comment. */
    pong() {
      isAnswered = true
      serving.events.onPong(serving.session)
    },

    write(pieces: Piece[]) {
      if (pieces.length > 0) rest = eventsOf([...pieces], idAfter)
      writeOn()
    },

    isOpen: () => code === undefined && socket.writable,
    isStalled: () => rest !== undefined,
    takenBytes: () => takenBytes(socket),
    copiedBytes,
    // Its client has no pings of its own to be answered.
    pongFrame: () => comment,
    // Nothing is read from this connection.
    pause() {},
    readOn() {},

    close(given: number, reason: string) {
      code = given
      rest = undefined
      cutAwaited()
      socket.end(namedEvent(CLOSE, { code, reason }))
      const stay = serving.events.after(CLOSE_MS, () => socket.destroy())
      socket.once('close', stay)
    },

    terminate() {
      socket.destroy()
    },
  } satisfies Transport & {
    awaits: (bytes: number, cut: () => void) => () => void
    hear: (message: Buffer) => void
    pong: () => void
  }
}
