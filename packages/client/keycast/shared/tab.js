// A tab's side: a client like one with a connection of its own, fed by the worker that all tabs share. Its handles are in
// tab-values.js and tab-rooms.js.
import { TokenRefused } from '../connection/auth.js'
import { watchPage } from '../connection/page-lifecycle.js'
import { KeycastError } from '../errors.js'
import { checkEvent, createListeners } from '../listeners.js'
import { randomText } from '../random.js'
import { badKey } from '../requests.js'
import { unpackError } from './messages.js'
import { createTabRooms } from './tab-rooms.js'
import { createTabValues } from './tab-values.js'

/**
 * @typedef {import('../connection/connection.js').ConnectionState} ConnectionState
 *
 * One handle at the worker.
 * @typedef {object} Open
 * @property {() => any} ask how it is opened, also at a worker that comes after this one
 * @property {(message: any) => void} take
 * @property {() => void} wait nobody says how it stands until the next worker does
 * @property {(error: KeycastError) => void} end
 *
 * The worker, as a tab's handles ask it. What is `open` is asked for at each worker that comes, until it is `shut`.
 * @typedef {object} Worker
 * @property {import('../client.js').Link} link
 * @property {(handle: Open) => number} open
 * @property {(id: number) => void} shut
 * @property {(message: any) => void} say
 * @property {(name: string, args: any[], of?: number, signal?: AbortSignal, leftMs?: () => number) => Promise<any>} call
 *
 * @typedef {{ request: any, resolve: (value: any) => void, reject: (error: unknown) => void,
 *   leftMs?: () => number, wasAsked: boolean }} Call
 *   `leftMs`: the time until the deadline of a publish. `wasAsked`: a worker has heard of it
 *
 * The way to a worker. `reach` begins one, or reaches the one that there is.
 * @typedef {{ reach: (onError: () => void) => import('./host.js').Port, locks: import('./host.js').Locks }} Reach
 */

/** A worker that says nothing in this time died as it began, or its script hangs on the way: no event tells of either. */
const SILENT_MS = 20_000

/**
 * @param {object} deps
 * @param {Reach['reach']} deps.reach
 * @param {Reach['locks']} deps.locks
 * @param {() => Reach} deps.alone where the platform has no worker for this tab, or no lock
 * @param {string} deps.url
 * @param {Pick<import('../client.js').ConnectOptions, 'token' | 'keepMs' | 'keepForbidden'>} deps.options
 */
export function createTab({ alone, url, options: { token, keepMs, keepForbidden }, ...shared }) {
  /** @type {Reach} */
  let way = shared
  /** None where the tab was left, or is closed. @type {import('./host.js').Port | undefined} */
  let port
  let lastId = 0
  /** Ends the lock by which the worker knows that this tab lives. */
  let letGo = () => {}
  /** Set until the worker says something. @type {any} */
  let patience
  /** @type {ConnectionState} */
  let state = { name: 'connecting' }
  /** @type {import('../client.js').Link} */
  const link = {}
  const listeners = createListeners(() => state)
  /** @type {Map<number, Open>} */
  const opened = new Map()
  /** Without an answer yet. @type {Map<number, Call>} */
  const calls = new Map()

  /** Reaches a worker and asks it for everything that is open here. */
  function attach() {
    const lock = `keycast tab ${randomText()}`
    /** @type {import('./host.js').Port} */
    let mine
    let isHeard = false
    // Nothing would ever come, and nobody be told.
    const goAlone = () => {
      if (way !== shared || link.isClosed) return
      // A worker that begins late would serve this tab as well, and ask it for tokens.
      detach()
      way = alone()
      attach()
    }
    try {
      // In Firefox an error of a worker that runs comes here, too.
      mine = way.reach(() => isHeard || goAlone())
    } catch {
      return goAlone()
    }
    port = mine
    for (const { wait } of opened.values()) wait()
    patience = setTimeout(goAlone, SILENT_MS)
    mine.onmessage = ({ data }) => {
      isHeard = true
      if (port !== mine) return
      clearTimeout(patience)
      take(data)
    }
    const held = new Promise(resolve => {
      letGo = () => resolve(undefined)
    })
    const given = way.locks.request(lock, {}, () => {
      if (port !== mine) return
      // Said once the lock is held: the worker waits for its end.
      mine.postMessage({ hello: { url, lock, hasToken: token !== undefined, keepMs, keepForbidden } })
      for (const { ask } of opened.values()) mine.postMessage(ask())
      for (const call of calls.values()) ask(call)
      isAttached = true
      return held
    })
    given.catch(goAlone)
  }
  let isAttached = false

  /** Asks a worker that knows nothing of a call. @param {Call} call */
  function ask(call) {
    const { request, leftMs, wasAsked } = call
    // The worker before may have sent it.
    if (leftMs) Object.assign(request.args[2], { isUnknown: wasAsked, deadlineMs: leftMs() })
    call.wasAsked = true
    port?.postMessage(request)
  }

  /** What is said before the worker is reached goes out with all the rest. @param {any} message */
  const say = message => {
    if (isAttached) port?.postMessage(message)
  }

  /** Goes on from where this tab stands, at a worker that knows nothing of it. */
  function begin() {
    if (link.isClosed) return
    detach()
    attach()
  }

  function detach() {
    say({ bye: true })
    isAttached = false
    // A worker that ends with its last tab fails what waits there: a page that is kept for the way back goes on with it.
    port = undefined
    clearTimeout(patience)
    letGo()
  }

  /** @param {any} message */
  function take(message) {
    if (link.isClosed) return
    if (message.lock) {
      const mine = port
      // Comes when the worker has died: another takes its place, and goes on from where this tab stands.
      way.locks.request(message.lock, { mode: 'shared' }, () => {
        if (port === mine) begin()
      })
    } else if (message.hears) say(message)
    // This tab stood still for so long that the worker has given it up.
    else if (message.gone) begin()
    else if (message.connection) become(message.connection)
    else if (message.asks) giveToken()
    else if (message.of !== undefined) opened.get(message.of)?.take(message)
    else if (message.done !== undefined) {
      const call = calls.get(message.done)
      calls.delete(message.done)
      if (message.error) call?.reject(unpackError(message.error))
      else call?.resolve(message.value)
    }
  }

  /** @param {ConnectionState} next */
  function become(next) {
    state = next
    listeners.tell(state)
  }

  async function giveToken() {
    try {
      say({ answer: { token: await (typeof token === 'function' ? token() : token) } })
    } catch (error) {
      // Anything may be thrown, and an answer that says nothing would be taken for a token.
      const why = String(/** @type {any} */ (error)?.message ?? error)
      say({ answer: error instanceof TokenRefused ? { refused: why } : { failed: why } })
    }
  }

  const closedHere = () => new KeycastError({ code: 'closed', message: 'closed here' })

  /** @param {Open} handle @returns {number} */
  function open(handle) {
    const id = ++lastId
    opened.set(id, { ...handle, ask: () => ({ open: id, ...handle.ask() }) })
    say(opened.get(id)?.ask())
    if (link.isClosed) handle.end(closedHere())
    return id
  }

  /** @param {number} id */
  function shut(id) {
    opened.delete(id)
    say({ close: id })
  }

  /**
   * @param {string} name @param {any[]} args @param {number} [of] @param {AbortSignal} [signal]
   * @param {() => number} [leftMs]
   * @returns {Promise<any>}
   */
  function call(name, args, of, signal, leftMs) {
    if (link.isClosed) return Promise.reject(closedHere())
    const id = ++lastId
    const giveUp = () => {
      calls.get(id)?.reject(signal?.reason)
      calls.delete(id)
      say({ giveUp: id })
    }
    const answered = new Promise((resolve, reject) => {
      // As it is now, for it may go out later. One that cannot be carried must fail here, not with all that is open.
      const request = structuredClone({ call: id, of, name, args })
      calls.set(id, { request, resolve, reject, leftMs, wasAsked: isAttached })
      say(request)
      signal?.addEventListener('abort', giveUp)
      if (signal?.aborted) giveUp()
    })
    return answered.finally(() => signal?.removeEventListener('abort', giveUp))
  }

  const worker = { link, open, shut, say, call }
  const values = createTabValues(worker)
  const room = createTabRooms(worker)

  attach()
  const world = /** @type {any} */ (globalThis)
  const page = { document: world.document, window: world.addEventListener && world }
  const forgetPage = watchPage(page, {
    rest() {},
    leave: detach,
    wake() {
      if (port) say({ reconnect: 'unless closed' })
      else attach()
    },
    offline() {},
  })

  return {
    get state() {
      return state
    },
    /** @param {'state'} name @param {(state: ConnectionState) => void} listener */
    on(name, listener) {
      checkEvent(name, 'state')
      return listeners.add(listener)
    },
    value: values.value,
    room,
    /** @param {string} key @param {{ signal?: AbortSignal }} [options] */
    async get(key, { signal } = {}) {
      const refused = badKey(key)
      if (refused) throw refused
      return call('get', [key], undefined, signal)
    },
    peek: values.peek,
    reconnect() {
      if (!link.isClosed) say({ reconnect: 'always' })
    },
    close() {
      if (link.isClosed) return
      detach()
      link.isClosed = true
      forgetPage()
      const error = closedHere()
      for (const { end } of [...opened.values()]) end(error)
      for (const { reject } of calls.values()) reject(error)
      calls.clear()
      become({ name: 'closed', reason: error.message })
    },
  }
}
