// The HTTP side of the port clients connect to: the page, the client library, the values. /ws is the gateway's own.
import { errorCodes } from '@keycast/protocol'
import { answerErrors, type Containment, createOnceAMinute, type Log, noSchemas, type World } from '@keycast/service'
import Fastify from 'fastify'
import { addValues, type ValuesDeps } from '../get-http.ts'
import { addMessages, type MessagesDeps } from '../history-http.ts'
import { addStream, type StreamDeps } from '../stream/stream.ts'
import { addWait, type WaitDeps } from '../wait/wait.ts'
import { createAdmit } from './admit.ts'
import type { Authenticate } from './authenticate.ts'
import { canonicalPath } from './canonical-path.ts'
import { leaveWithAnswers, limitConnections, limitRequests, limitResponses } from './connections.ts'
import { createCors } from './cors.ts'
import { addLibrary } from './library.ts'
import { addPage, readChat, readPage } from './page.ts'
import { createPendingLimit } from './pending-limit.ts'
import { sendProblem } from './problems.ts'
import { createUnreadBodies } from './unread-bodies.ts'

/**
 * A request must come in within this time. Until then its connection counts as no session. A proxy in front has the
 * whole request before it sends any of it.
 */
const REQUEST_TIMEOUT_MS = 10_000

/** Node looks at its connections this often, by default every 30 s: until then one whose time is over stays. */
const CHECK_CONNECTIONS_MS = 1_000

/**
 * A connection may be idle for this long between requests. The proxies in front keep one for less time (nginx's here 4
 * s, load balancers often 60 s). If the gateway closed first, requests would meet a closed connection.
 */
const KEEP_ALIVE_MS = 72_000

/** More than nginx passes on (proxy/nginx.conf.template); a token may take 8 KiB of it. */
const HEADERS_BYTES_MAX = 24 * 1_024

/** Requests that wait for the fetcher at a time: at some 20 KB each they take 80 MB. */
const PENDING_MAX = 4_000

/** Nothing here takes a body, but what speaks to a stream. */
const BODY_BYTES_MAX = 1_024

interface Deps {
  gate: ValuesDeps['gate'] & WaitDeps['gate'] & Parameters<typeof createAdmit>[0]['gate']
  values: ValuesDeps['values']
  coded: ValuesDeps['coded']
  singleFlight: ValuesDeps['singleFlight']
  authenticate: Authenticate
  histories: MessagesDeps['histories']
  counts: ValuesDeps['counts'] & MessagesDeps['counts'] & WaitDeps['counts']
  waits: Omit<WaitDeps, 'gate' | 'unreadBodies' | 'counts' | 'connectionsMax'>
  streams: StreamDeps
  containment: Pick<Containment, 'caught'>
  log: Pick<Log, 'warn'>
  /** Whose pages may read the answers. */
  origins: string
  /** Of clients that are no sessions. */
  connectionsMax: number
  peerOf: Parameters<typeof limitConnections>[1]['peerOf']
  /** Of the values that clients are sent over HTTP and have not read. */
  unreadBytesMax: number
  /** Whether the example of a chat is served. */
  chat?: boolean
  now: () => number
  after: World['after']
}

export function createPublicApp(deps: Deps) {
  const { waits, streams, containment, log, origins, connectionsMax, peerOf, unreadBytesMax, chat = false } = deps
  const cors = createCors(origins)
  const app = Fastify({
    // Browsers and proxies keep connections open: without forcing, close() would wait for them.
    forceCloseConnections: true,
    schemaController: noSchemas,
    http: {
      maxHeaderSize: HEADERS_BYTES_MAX,
      // No answer needs it, and limitRequests counts what is answered here.
      requireHostHeader: false,
      // Node takes the longer of this and `requestTimeout` for a request with its body, and this is 60 s by default.
      headersTimeout: REQUEST_TIMEOUT_MS,
      connectionsCheckingInterval: CHECK_CONNECTIONS_MS,
    },
    bodyLimit: BODY_BYTES_MAX,
    requestTimeout: REQUEST_TIMEOUT_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
    rewriteUrl: ({ url = '' }) => canonicalPath(url),
    // A path with broken percent-encoding comes here before any route: it cannot be a key.
    frameworkErrors(_, request, reply) {
      cors.allow(request, reply)
      return sendProblem(reply, { code: 'bad_key', message: errorCodes.bad_key })
    },
  })

  app.setErrorHandler(answerErrors(containment))
  app.setNotFoundHandler((_, reply) =>
    sendProblem(reply, {
      code: 'unknown_path',
      message:
        '/ is the page, /keycast.js the client library, /v1/values/{key} a value, /v1/messages/{key} the messages of a room, /v1/wait/{key} a change, /v1/stream events, /ws the WebSocket',
    }),
  )
  const isLogDue = createOnceAMinute(deps.now)
  limitConnections(app.server, {
    connectionsMax,
    peerOf,
    onRefused(client, connectionsMax) {
      if (!isLogDue(client === undefined ? 'all' : 'client')) return
      const whose = client === undefined ? 'there are' : 'its address has'
      log.warn({ address: client, connectionsMax }, `a connection was cut, because ${whose} too many without a session`)
    },
  })
  limitRequests(app.server)
  limitResponses(app, deps.after)
  const answered = leaveWithAnswers(app, deps.after)
  cors.add(app)
  addPage(app, readPage())
  if (chat) addPage(app, readChat())
  addLibrary(app)
  const unreadBodies = createUnreadBodies(unreadBytesMax)
  const pending = createPendingLimit(PENDING_MAX)
  const admit = createAdmit({ ...deps, pending })
  addValues(app, { ...deps, admit, pending, unreadBodies, wallNow: waits.wallNow })
  addWait(app, { ...deps, ...waits, unreadBodies })
  addStream(app, streams)
  addMessages(app, { ...deps, admit, unreadBodies })
  return Object.assign(app, { answered })
}
