// The core of a client: one connection, and the values that come over it.
import { createCalls } from './calls.js'
import { createConnection } from './connection/connection.js'
import { watchPage } from './connection/page-lifecycle.js'
import { completeEnvironment } from './environment.js'
import { KeycastError } from './errors.js'
import { checkEvent, createListeners } from './listeners.js'
import { createTimers } from './timers.js'
import { createValues } from './values/values.js'

/**
 * @typedef {import('./connection/connection.js').ConnectionState} ConnectionState
 * @typedef {import('./environment.js').Environment} Environment
 *
 * @typedef {object} ConnectOptions
 * @property {import('./connection/auth.js').Token} [token] the user's token; a function is asked again before the token
 *   expires
 * @property {Environment['WebSocket']} [WebSocket] needed where there is no global one, as in Node 20: that of the
 *   package `ws`
 * @property {number} [keepMs] time that a value is kept after its last handle was closed, so that the next one begins
 *   with it: 10,000 unless given. At most the 100 closed last are kept
 * @property {boolean} [keepForbidden] whether a value stays in place when its user may see it no more
 * @property {Partial<Environment>} [environment] clocks, timers, chance and the page, for tests
 *
 * A part of the client, which handles one kind of messages.
 * @typedef {object} Part
 * @property {(limits: import('./connection/connection.js').Limits) => void} opened requests may be sent from now on
 * @property {() => void} lost the session is gone
 * @property {(message: any, bytes: Uint8Array | undefined) => boolean} receive whether the message was for it alone
 * @property {(error: KeycastError) => void} end nothing more is asked of the gateway
 * @property {() => void} [revive] asks again for what was refused or has ended
 *
 * The connection, as far as handles show it. `session`: the present one. `isOffline`: there is none, and it is not the first
 * that is being made. `isClosed`: the application has closed the client.
 * @typedef {{ session?: object, isOffline?: boolean, isClosed?: boolean }} Link
 *
 * @typedef {object} PartDeps
 * @property {import('./environment.js').Environment} environment
 * @property {(message: object) => void} send
 * @property {() => number} nextId
 * @property {() => import('./timers.js').Alarm} createAlarm
 * @property {Link} link
 * @property {import('./calls.js').Calls} calls
 */

/**
 * @param {string | URL} url
 * @param {ConnectOptions} [options]
 * @param {(deps: PartDeps & { values: import('./values/values.js').Values, keepForbidden?: boolean }) => Part} [extend] makes the part for rooms
 */
export function createClient(url, { token, WebSocket, environment: given = {}, ...options } = {}, extend) {
  const environment = completeEnvironment(given, WebSocket)
  const timers = createTimers(environment)
  let lastId = 0
  /** @type {Link} */
  const link = {}

  const deps = {
    environment,
    send: (/** @type {object} */ message) => connection.send(message),
    nextId: () => ++lastId,
    createAlarm: timers.alarm,
    link,
    ...options,
  }
  const calls = createCalls(deps)
  const values = createValues({ ...deps, calls })
  // Rooms come first: errors with a key are theirs, too, if they answer a publish.
  /** @type {Part[]} */
  const parts = [calls, ...(extend ? [extend({ ...deps, calls, values })] : []), values]

  /** @type {ReturnType<typeof createListeners<ConnectionState>>} */
  const listeners = createListeners(() => connection.state())

  const connection = createConnection({
    ...deps,
    url: socketUrl(url),
    token,
    parts,
    onState(state) {
      if (state.name === 'closed') {
        const error = new KeycastError({ code: 'closed', message: state.reason })
        for (const part of parts) part.end(error)
        // A listener that heard of the end may have called `reconnect()` while others were still to hear of it.
        if (connection.isUp()) revive()
      }
      listeners.tell(state)
    },
  })

  function revive() {
    for (const part of parts) if (!link.isClosed) part.revive?.()
  }

  const forgetPage = watchPage(environment, {
    rest: timers.rest,
    leave: connection.leave,
    wake() {
      timers.go()
      if (connection.isUp()) revive()
      connection.wake()
    },
    offline: connection.offline,
  })
  connection.connect()

  return {
    /** @returns {ConnectionState} */
    get state() {
      return connection.state()
    },

    /**
     * Calls a listener at every change of the connection, and once soon after this with the present state.
     *
     * @param {'state'} name
     * @param {(state: ConnectionState) => void} listener
     * @returns {() => void} takes the listener off
     */
    on(name, listener) {
      checkEvent(name, 'state')
      return listeners.add(listener)
    },

    /**
     * Subscribes to a key. All handles of a key share one subscription and one copy of the value. Close each handle
     * when it is no longer of use. `order` is what a handle of another client had last: nothing older is shown.
     */
    value: /** @type {<T = any>(key: string, order?: number) => import('./values/handle.js').ValueHandle<T>} */ (
      values.value
    ),

    /**
     * Asks for a value once: JSON parsed, text as a string, anything else as a Uint8Array. Waits while there is no
     * connection; `signal` gives up, such as `AbortSignal.timeout(5_000)`. Rejects with a KeycastError.
     */
    get: /** @type {<T = any>(key: string, options?: { signal?: AbortSignal }) => Promise<T>} */ (values.get),

    /** The state of a key that has an open handle, or that is kept. Does not subscribe. */
    peek: /** @type {<T = any>(key: string) => import('./values/entry.js').ValueState<T>} */ (values.peek),

    /**
     * Connects now in place of waiting, also after the gateway closed for good; asks for a token, and for keys that were
     * refused, if those wait. Does nothing after `close()`.
     */
    reconnect() {
      revive()
      // A listener may have closed it.
      if (connection.isUp()) connection.wake()
      else if (!link.isClosed) connection.connect()
    },

    /** Ends everything: handles, iterators, gets and the connection, which stays closed. */
    close() {
      if (link.isClosed) return
      link.isClosed = true
      forgetPage()
      timers.rest()
      connection.close('closed here')
    },
  }
}

/** @param {string | URL} url */
export function socketUrl(url) {
  const { href } = new URL(url, /** @type {any} */ (globalThis).location?.href)
  const resolved = href.replace(/^http/, 'ws')
  // The URL standard takes `localhost:8080/ws` for one of a scheme `localhost`.
  if (!/^ws/.test(resolved)) throw new TypeError('Invalid URL')
  return resolved
}
