// Addresses of requests beside a WebSocket's, and what is wrong with their answers.

/** @param {string} url of a gateway's WebSocket, as in `wss://example.com/ws` @param {string} path below `/v1/` */
export function addressOf(url, path) {
  const address = new URL(`v1/${path}`, url)
  address.protocol = address.protocol.replace('ws', 'http')
  return address.href
}

/** A key in a path: written alike by all clients, so that a cache finds the same. @param {string} key */
export const pathOf = key =>
  encodeURIComponent(key).replace(/%2F|%3A|[!'()*]/g, part =>
    part.length > 1 ? decodeURIComponent(part) : `%${part.charCodeAt(0).toString(16).toUpperCase()}`,
  )

/**
 * What is wrong, in a gateway's words. Of a proxy on the way there is no code.
 *
 * @param {Response} response that is no success
 * @returns {Promise<{ code?: any, message: string, retryAfterMs?: number }>}
 */
export async function problemOf(response) {
  const text = await response.text()
  try {
    const { code, message, retryAfterMs } = JSON.parse(text)
    return { code, message, retryAfterMs }
  } catch {
    return { message: `HTTP ${response.status}` }
  }
}
