// Makes a client: one connection, and the values that come over it.
import { createConnection } from './connection/connection.js'
import { watchPage } from './connection/page.js'
import { completeEnvironment } from './environment.js'
import { KeycastError } from './errors.js'
import { createListeners } from './listeners.js'
import { createTimers } from './timers.js'
import { createValues } from './values/values.js'

/**
 * @typedef {import('./connection/connection.js').ConnectionState} ConnectionState
 * @typedef {import('./environment.js').Environment} Environment
 *
 * @typedef {object} ConnectOptions
 * @property {import('./connection/auth.js').Token} [token] says for whom the sessions are; a function is asked again
 *   before the token expires
 * @property {Environment['WebSocket']} [WebSocket] where there is no global one, as in Node 20: that of the package `ws`
 * @property {Partial<Environment>} [environment] clocks, timers, chance and the page, for tests
 *
 * @typedef {ReturnType<typeof connect>} Keycast
 */

/**
 * Opens a connection that comes back by itself until it is closed.
 *
 * @param {string | URL} url of a gateway's WebSocket, such as `wss://example.com/ws`; in a page also `/ws`
 * @param {ConnectOptions} [options]
 * @throws {TypeError} where the URL cannot be read or there is no WebSocket
 */
export function connect(url, { token, WebSocket, environment: given = {} } = {}) {
  const environment = completeEnvironment({ ...given, ...(WebSocket && { WebSocket }) })
  const timers = createTimers(environment)
  let lastId = 0
  let isClosed = false

  const values = createValues({
    environment,
    send: message => connection.send(message),
    nextId: () => ++lastId,
    createAlarm: timers.alarm,
  })

  /** @type {ReturnType<typeof createListeners<ConnectionState>>} */
  const listeners = createListeners(() => connection.state())

  const connection = createConnection({
    url: socketUrl(url),
    environment,
    createAlarm: timers.alarm,
    token,
    onOpen: values.opened,
    onMessage: values.receive,
    onLost: values.lost,
    onState(state) {
      if (state.name === 'closed') values.end(new KeycastError({ code: 'closed', message: state.reason }), isClosed)
      listeners.tell(state)
    },
  })

  const forgetPage = watchPage(environment, {
    onHide: timers.rest,
    onWake() {
      timers.go()
      connection.wake()
    },
    onOffline: connection.offline,
  })
  connection.connect()

  return {
    /** How the connection stands. @returns {ConnectionState} */
    get state() {
      return connection.state()
    },

    /**
     * Calls a listener at every change of the connection, and once soon after this with how it stands.
     *
     * @param {'state'} name
     * @param {(state: ConnectionState) => void} listener
     * @returns {() => void} takes the listener off
     */
    on(name, listener) {
      if (name !== 'state') throw new TypeError(`a client has the event "state", not "${name}"`)
      return listeners.add(listener)
    },

    /**
     * Subscribes to a key. All handles of a key share one subscription and one copy of the value.
     *
     * @template [T=any]
     * @param {string} key
     * @returns {import('./values/handle.js').ValueHandle<T>} must be closed when it is no longer of use
     */
    value: key => values.value(key),

    /**
     * Asks for a value once. Waits while there is no connection.
     *
     * @template [T=any]
     * @param {string} key
     * @param {{ signal?: AbortSignal }} [options] `signal` gives up: `AbortSignal.timeout(5_000)`
     * @returns {Promise<T>} JSON parsed, text as a string, anything else as a Uint8Array
     * @throws {KeycastError}
     */
    get: (key, { signal } = {}) => values.get(key, signal),

    /**
     * The state of a key that some handle is open for, without subscribing.
     *
     * @template [T=any]
     * @param {string} key
     * @returns {import('./values/entry.js').ValueState<T>}
     */
    peek: key => values.peek(key),

    /** Connects now in place of waiting, also after the gateway closed for good. Does nothing after `close()`. */
    reconnect() {
      const { name } = connection.state()
      if (isClosed || name === 'connecting' || name === 'open') return
      values.revive()
      connection.connect()
    },

    /** Ends everything: handles, iterators, gets and the connection, which stays closed. */
    close() {
      if (isClosed) return
      isClosed = true
      forgetPage()
      connection.close('closed by this client')
    },
  }
}

/** @param {string | URL} url */
function socketUrl(url) {
  const resolved = new URL(url, /** @type {any} */ (globalThis).location?.href)
  return resolved.href.replace(/^http/, 'ws')
}
