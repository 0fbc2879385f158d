// The HTTP side of the port clients connect to: the page, the client library, the values. /ws is the gateway's own.
import { errorCodes } from '@keycast/protocol'
import { answerErrors, type Containment, createOnceAMinute, type Log } from '@keycast/service'
import Fastify from 'fastify'
import type { Gate } from '../../gate/gate.ts'
import { addValues, type ValuesDeps } from '../get-http.ts'
import { addMessages, type MessagesDeps } from '../history-http.ts'
import { addWait, type WaitDeps } from '../wait/wait.ts'
import { createAdmit } from './admit.ts'
import { addChat } from './chat.ts'
import { limitConnections, limitResponses } from './connections.ts'
import { addLibrary } from './library.ts'
import { addPage } from './page.ts'
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

/** Requests that wait for the fetcher at a time: at some 10 KB each they take 40 MB. */
const PENDING_MAX = 4_000

/** Nothing here takes a body. */
const BODY_BYTES_MAX = 1_024

interface Deps {
  gate: Pick<Gate, 'enter' | 'recheck'>
  values: ValuesDeps['values']
  singleFlight: ValuesDeps['singleFlight']
  authenticate: Parameters<typeof createAdmit>[0]['authenticate']
  histories: MessagesDeps['histories']
  counts: ValuesDeps['counts'] & MessagesDeps['counts'] & WaitDeps['counts']
  waits: Omit<WaitDeps, 'gate' | 'unreadBodies' | 'counts'>
  containment: Pick<Containment, 'caught'>
  log: Pick<Log, 'warn'>
  /** Of clients that are no sessions. */
  connectionsMax: number
  clientOf: Parameters<typeof limitConnections>[1]['clientOf']
  /** Of the values that clients are sent over HTTP and have not read. */
  unreadBytesMax: number
  /** Whether the example of a chat is served. */
  chat?: boolean
}

export function createPublicApp({
  gate,
  authenticate,
  values,
  singleFlight,
  histories,
  waits,
  counts,
  containment,
  log,
  connectionsMax,
  clientOf,
  unreadBytesMax,
  chat = false,
}: Deps) {
  const app = Fastify({
    // Browsers and proxies keep connections open: without forcing, close() would wait for them.
    forceCloseConnections: true,
    http: { maxHeaderSize: HEADERS_BYTES_MAX, connectionsCheckingInterval: CHECK_CONNECTIONS_MS },
    bodyLimit: BODY_BYTES_MAX,
    requestTimeout: REQUEST_TIMEOUT_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
    // A path with broken percent-encoding comes here before any route: it cannot be a key.
    frameworkErrors: (_error, _request, reply) => sendProblem(reply, { code: 'bad_key', message: errorCodes.bad_key }),
  })

  app.setErrorHandler(answerErrors(containment))
  app.setNotFoundHandler((_, reply) =>
    sendProblem(reply, {
      code: 'unknown_path',
      message:
        '/ is the page, /keycast.js the client library, /v1/values/{key} a value, /v1/messages/{key} the messages of a room, /v1/wait/{key} a change, /ws the WebSocket',
    }),
  )
  const isLogDue = createOnceAMinute(() => performance.now())
  limitConnections(app.server, {
    connectionsMax,
    clientOf,
    onRefused(client, connectionsMax) {
      if (!isLogDue(client === undefined ? 'all' : 'client')) return
      const whose = client === undefined ? 'there are' : 'its address has'
      log.warn({ address: client, connectionsMax }, `a connection was cut, because ${whose} too many without a session`)
    },
  })
  limitResponses(app)
  addPage(app)
  if (chat) addChat(app)
  addLibrary(app)
  const unreadBodies = createUnreadBodies(unreadBytesMax)
  const pending = createPendingLimit(PENDING_MAX)
  const admit = createAdmit({ authenticate, gate, pending })
  const { namespaces, wallNow } = waits
  addValues(app, { gate, admit, values, singleFlight, namespaces, pending, unreadBodies, counts, wallNow })
  addWait(app, { gate, unreadBodies, counts, ...waits })
  addMessages(app, { gate, admit, histories, unreadBodies, counts })
  return app
}
