// The first way: a WebSocket, where it opens.

/** @param {import('./fallback.js').Surroundings} surroundings @returns {import('./fallback.js').Way} */
export function overWebSocket({ url, protocol, WebSocket, hear, end }) {
  /** @type {import('../environment.js').Socket} */
  let socket
  try {
    // Where somebody forbids them it throws, or there is none.
    socket = new /** @type {any} */ (WebSocket)(url, protocol)
  } catch (error) {
    queueMicrotask(() => end(1006, String(error)))
    return { send() {}, close() {} }
  }
  let why = ''
  socket.binaryType = 'arraybuffer'
  socket.onmessage = ({ data }) => hear(data)
  socket.onclose = ({ code, reason }) => end(code, reason || why)
  // `close` follows, and knows less; without a listener `ws` would throw.
  socket.onerror = ({ message }) => {
    why = message || why
  }
  return { send: text => socket.send(text), close: code => socket.close(code) }
}
