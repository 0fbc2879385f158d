// Limits the connections that are no sessions, and the time in which a client must read a response. Otherwise clients
// that stop half-way would hold them for ever.

/**
 * A client must read a response in this time: the longest value, 4 MiB by default, at 35 KB a second. A proxy reads at
 * once.
 */
const RESPONSE_MS_MAX = 120_000

/**
 * Past the limit new connections are cut. A connection counts until it closes or becomes a session (the server's event
 * `webSocket`).
 *
 * @param {import('node:http').Server} server
 * @param {number} connectionsMax
 */
export function limitConnections(server, connectionsMax) {
  /** @type {Set<unknown>} */
  const open = new Set()
  /** One shared function, which a session's socket no longer has: sessions are many, and live long. @this {unknown} */
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
 * Cuts a client that does not read its response in time. Node has no such time-out: its own end with the request, and
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
