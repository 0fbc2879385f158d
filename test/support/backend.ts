// A backend that a test scripts: what each path answers, and how it misbehaves. It records every request.
import { createHash } from 'node:crypto'
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage as Request,
  type ServerResponse as Response,
} from 'node:http'
import { atEnd } from './cleanup.ts'
import { createConditions } from './deadline.ts'
import { freePorts } from './free-ports.ts'

export type Handler = (request: Request, response: Response) => unknown

interface Asked {
  path: string
  headers: IncomingHttpHeaders
  remotePort: number
  at: number
  method: string
}

export type Backend = Awaited<ReturnType<typeof startBackend>>

/** A document of a given size and revision; two revisions differ in a small part. */
export function documentOf(revision: number, bytes = 200) {
  const head = `{"revision":${revision},"filler":"`
  return `${head}${'x'.repeat(Math.max(0, bytes - head.length - 2))}"}`
}

export async function startBackend() {
  const [port] = await freePorts(1) // for it may go down, and come back on it
  const handlers = new Map<string, Handler>()
  const asked: Asked[] = []
  const conditions = createConditions()
  let fault: Handler | undefined

  const server = createServer((request, response) => {
    const path = request.url ?? ''
    const { headers, method = '' } = request
    asked.push({ path, headers, method, remotePort: request.socket.remotePort ?? 0, at: performance.now() })
    const handler = fault ?? handlers.get(path) ?? answers.status(404)
    handler(request, response)
    conditions.look()
  })
  server.keepAliveTimeout = 60_000
  const listen = () =>
    new Promise((resolve, reject) => {
      server.once('error', reject)
      server.listen(port, '127.0.0.1', () => resolve(undefined))
    })
  const stop = () => {
    server.closeAllConnections()
    return new Promise(resolve => server.close(resolve))
  }
  await listen()
  atEnd(stop)

  return {
    port,
    origin: `http://127.0.0.1:${port}`,
    asked,

    askedFor: (path: string) => asked.filter(request => request.path === path),

    /** Sets the answer of a path from now on. */
    on(path: string, handler: Handler) {
      handlers.set(path, handler)
    },

    /** Sets the answer of every path; `undefined` when the backend is well again. */
    failWith(handler: Handler | undefined) {
      fault = handler
    },

    /** Takes the backend down: connections are cut, new ones refused. */
    down: stop,

    /** Brings it back on the same port. */
    up: listen,

    /**
     * Waits until the requests so far satisfy a condition.
     *
     * @param what the condition, for the error
     */
    until: (condition: (asked: Asked[]) => boolean, what: string) => conditions.until(() => condition(asked), what),
  }
}

export const etagOf = (body: string | Buffer) => `"${createHash('sha1').update(body).digest('hex')}"`

/** Answers to script a backend with. */
export const answers = {
  /** JSON with an ETag, answered with 304 where the asker holds it. */
  json: (body: string | Buffer, headers: Record<string, string> = {}): Handler => {
    const etag = etagOf(body)
    return (request, response) => {
      if (request.headers['if-none-match'] === etag) return response.writeHead(304, { etag }).end()
      return response.writeHead(200, { 'content-type': 'application/json', etag, ...headers }).end(body)
    }
  },

  content:
    (body: Buffer | string, contentType: string): Handler =>
    (_, response) =>
      response.writeHead(200, { 'content-type': contentType }).end(body),

  status:
    (status: number, headers: Record<string, string> = {}): Handler =>
    (_, response) =>
      response.writeHead(status, headers).end('{"not":"the content"}'),

  /** Takes the request and never answers. */
  silence: (): Handler => () => {},

  /** Sends headers at once and then a byte at a time, for longer than anybody waits. */
  drip:
    (body: string, everyMs: number): Handler =>
    (_, response) => {
      response.writeHead(200, { 'content-type': 'application/json' })
      let sent = 0
      const timer = setInterval(() => {
        response.write(body[sent++])
        if (sent === body.length) response.end()
      }, everyMs)
      response.on('close', () => clearInterval(timer))
    },

  slowly:
    (delayMs: () => number, then: Handler): Handler =>
    (request, response) => {
      const timer = setTimeout(() => then(request, response), delayMs())
      response.on('close', () => clearTimeout(timer))
    },

  /** Promises more bytes than it sends, and cuts the connection. */
  cutShort:
    (body: string): Handler =>
    (_, response) => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': String(body.length) })
      response.write(body.slice(0, body.length / 2), () => response.destroy())
    },
}

/**
 * A handler that holds every request until told, so that a test decides what is under way.
 *
 * @param then answers a released request
 */
export function createGate(then: Handler) {
  const held: (() => void)[] = []
  let open = false
  return {
    handler(request: Request, response: Response) {
      if (open) then(request, response)
      else held.push(() => then(request, response))
    },
    /** The number of requests that are held. */
    held: () => held.length,
    /** Lets the oldest held request be answered. */
    releaseOne: () => held.shift()?.(),
    /** Lets all go, and everything that comes later. */
    open() {
      open = true
      for (const release of held.splice(0)) release()
    },
  }
}
