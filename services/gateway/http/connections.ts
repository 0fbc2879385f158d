// Limits the connections that are no sessions, and the time in which a client must read a response. Otherwise clients
// that stop half-way would hold them for ever.

/**
 * A client must read a response in this time: the longest value, 4 MiB by default, at 35 KB a second. A proxy reads at
 * once.
 */
const RESPONSE_MS_MAX = 120_000

/** Clients at one address get this part of all connections: so it takes four addresses to shut out the others. */
const SHARE_OF_ADDRESS = 1 / 4

/**
 * Past the limits new connections are cut: of one address, and in all. A connection counts until it closes or becomes a
 * session (the server's event `webSocket`).
 *
 * @param {import('node:http').Server} server
 * @param {object} options
 * @param {number} options.connectionsMax
 * @param {(socket: import('node:net').Socket) => string | undefined} options.clientOf whom a connection is counted for;
 *   `undefined`: for nobody, as it comes from a proxy for many
 * @param {(client: string | undefined, connectionsMax: number) => void} [options.onRefused] `client` is given where it
 *   has too many
 */
export function limitConnections(server, { connectionsMax, clientOf, onRefused }) {
  const perClientMax = Math.ceil(connectionsMax * SHARE_OF_ADDRESS)
  /** Of each open connection, the client. @type {Map<unknown, string | undefined>} */
  const open = new Map()
  /** @type {Map<string, number>} */
  const counts = new Map()

  /** @param {unknown} socket */
  function release(socket) {
    const client = open.get(socket)
    if (!open.delete(socket) || client === undefined) return
    const left = (counts.get(client) ?? 0) - 1
    if (left > 0) counts.set(client, left)
    else counts.delete(client)
  }
  /** One shared function, which a session's socket no longer has: sessions are many, and live long. @this {unknown} */
  function closed() {
    release(this)
  }
  server.on('connection', socket => {
    const client = clientOf(socket)
    const count = client === undefined ? 0 : (counts.get(client) ?? 0)
    if (count >= perClientMax || open.size >= connectionsMax) {
      socket.destroy()
      if (count >= perClientMax) onRefused?.(client, perClientMax)
      else onRefused?.(undefined, connectionsMax)
      return
    }
    open.set(socket, client)
    if (client !== undefined) counts.set(client, count + 1)
    socket.on('close', closed)
  })
  server.on('webSocket', socket => {
    release(socket)
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
