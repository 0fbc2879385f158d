// The WebSocket of this Node: its own from Node 22, that of the package ws before.

/** @returns {Promise<import('../keycast.js').Environment['WebSocket']>} */
export async function findWebSocket() {
  if (globalThis.WebSocket) return globalThis.WebSocket
  try {
    const { WebSocket } = await import('ws')
    return WebSocket
  } catch {
    throw new Error(`Node ${process.versions.node} has no WebSocket: npm install ws, or use Node 22 or later`)
  }
}
