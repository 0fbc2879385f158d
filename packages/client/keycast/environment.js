// The client's surroundings: clocks, timers, chance, sockets, the page. Tests pass in their own.

/**
 * The part of a WebSocket that the client uses: a browser's, Node's or that of the package `ws`.
 *
 * @typedef {object} Socket
 * @property {string} binaryType
 * @property {((event: any) => void) | null} onmessage
 * @property {((event: any) => void) | null} onclose
 * @property {((event: any) => void) | null} onerror
 * @property {(text: string) => void} send
 * @property {(code?: number) => void} close
 *
 * The part of `document` and `window` that is used.
 * @typedef {object} Events
 * @property {(name: string, listener: () => void) => void} addEventListener
 * @property {(name: string, listener: () => void) => void} removeEventListener
 *
 * @typedef {object} Environment
 * @property {new (url: string, protocol: string) => Socket} WebSocket
 * @property {() => number} now monotonic, in milliseconds
 * @property {() => number} date milliseconds since 1970, only for times shown to people
 * @property {() => number} random from 0 to 1
 * @property {(task: () => void, ms: number) => any} setTimeout
 * @property {(timer: any) => void} clearTimeout
 * @property {(Events & { visibilityState: string }) | undefined} document
 * @property {Events | undefined} window
 * @property {() => boolean} isOffline whether it is certain that there is no network
 * @property {import('./values/version.js').Subtle | undefined} subtle for hashes; missing where pages may not use it: over
 *   plain HTTP
 */

/**
 * @param {Partial<Environment>} given
 * @param {Environment['WebSocket']} [WebSocket]
 * @returns {Environment}
 */
export function completeEnvironment(given, WebSocket) {
  const world = /** @type {any} */ (globalThis)
  // A worker has no window and hears of the network itself; Node has neither.
  const window = world.addEventListener && world
  const environment = {
    WebSocket: WebSocket ?? world.WebSocket,
    now: () => performance.now(),
    date: Date.now,
    random: Math.random,
    setTimeout,
    clearTimeout,
    document: world.document,
    window,
    // Uses the browser's "offline" only if it also reports the return: it would be waited for in vain.
    isOffline: () => window?.navigator?.onLine === false,
    subtle: world.crypto?.subtle,
    ...given,
  }
  if (!environment.WebSocket) {
    throw new TypeError('no WebSocket')
  }
  return environment
}
