// Bounds what HTTP clients can hold that do not go on: so many connections that are no sessions, and so long for a client
// to take a response.

/**
 * How long a client may take to read a response: the longest value, 4 MiB by default, at 35 KB a second. A proxy reads it
 * at once.
 */
const RESPONSE_MS_MAX = 120_000

/**
 * Past the limit new connections are cut. One counts until it is closed or becomes a session, for which it is the server's
 * event `webSocket`.
 *
 * @param {import('node:http').Server} server
 * @param {number} connectionsMax
 */
export function limitConnections(server, connectionsMax) {
  /** @type {Set<unknown>} */
  const open = new Set()
  /** One function for all, that a session's socket no longer has: sessions are many, and live long. @this {unknown} */
  function closed() {
    open.delete(this)
  }
  server.on('connection', socket => {
    if (open.size >= connectionsMax) {
      socket.destroy()
      return
    }
    open.add(socket)
    socket.on('close', closed)
  })
  server.on('webSocket', socket => {
    open.delete(socket)
    socket.off('close', closed)
  })
}

/**
 * Cuts a client that does not take its response in time. Node has no such time-out: its own end with the request, and
 * start again with an idle connection.
 *
 * @param {import('fastify').FastifyInstance} app
 * @param {number} [responseMsMax]
 */
export function limitResponses(app, responseMsMax = RESPONSE_MS_MAX) {
  app.addHook('onSend', (request, reply, _, done) => {
    const timer = setTimeout(() => request.raw.socket.destroy(), responseMsMax)
    reply.raw.once('close', () => clearTimeout(timer))
    done()
  })
}
