// The shared worker's side: one client for all tabs of a user, and for each tab the handles that it holds.
import { TokenRefused } from '../connection/auth.js'
import { KeycastError } from '../errors.js'
import { nothing } from '../values/entry.js'
import { packError } from './messages.js'

/**
 * The part of a MessagePort that is used.
 *
 * @typedef {{ postMessage: (message: any) => void, onmessage: ((event: any) => void) | null }} Port
 *
 * The part of `navigator.locks` that is used. A lock ends with the page or worker that holds it, however that ends.
 * @typedef {{ request: (name: string, options: any, task: () => any) => Promise<unknown> }} Locks
 *
 * @typedef {object} Tab
 * @property {Port} port
 * @property {boolean} hasToken whether it can be asked for a token
 * @property {Map<number, any>} handles by the tab's own numbers
 * @property {Map<number, AbortController>} calls without an answer yet, by the tab's own numbers
 * @property {((answer: any) => void) | undefined} answer takes the token that it was asked for
 * @property {number} unheardBytes about so many were said to it, and perhaps not taken yet
 * @property {number} askedBytes of these, said before it was asked whether it takes them; 0 where it was not asked
 * @property {number} askedAtMs
 */

/**
 * A tab whose script stands still, as behind a dialogue, takes nothing, and its port keeps all for it. Where so much waits,
 * and it has not answered for so long, it is given up: it comes back by itself, and goes on from where it stands. One that
 * opens thousands of keys is sent more at once, but it answers.
 */
const UNHEARD_BYTES_MAX = 128 * 1024 ** 2
const ANSWER_MS = 10_000

/** What a message counts for, beside the bytes of a value. */
const MESSAGE_BYTES = 16_384

/**
 * @param {object} deps
 * @param {(url: string, options: import('../client.js').ConnectOptions) => import('../connect.js').Keycast} deps.connect
 * @param {Locks} deps.locks
 * @param {string} deps.lock held as long as this worker lives
 * @param {() => number} [deps.now] monotonic, in milliseconds
 */
export function createHost({ connect, locks, lock, now = () => performance.now() }) {
  /** @type {Set<Tab>} */
  const tabs = new Set()
  /** The tabs that are in a room under this client's name. @type {Map<string, Set<Tab>>} */
  const joined = new Map()
  /** @type {import('../connect.js').Keycast | undefined} */
  let keycast
  /** A tab that died while it was asked for a token: the next one is asked. */
  const isGone = Symbol('gone')

  // A tab that asked for the lock first would take this worker for one that died.
  const isHeld = new Promise(resolve => {
    locks.request(lock, {}, () => {
      resolve(undefined)
      return new Promise(() => {})
    })
  })

  /** The application's function lives in its tabs: any of them can give the user's token. */
  async function token() {
    for (;;) {
      const tab = [...tabs].find(({ hasToken }) => hasToken)
      if (!tab) throw new Error('no tab is there to give a token')
      // The next question goes to another: where this one stands still, no tab would ever be connected again.
      tabs.delete(tab)
      tabs.add(tab)
      const answer = await new Promise(resolve => {
        tab.answer = resolve
        tab.port.postMessage({ asks: true })
      })
      if (answer === isGone) continue
      if (answer.refused !== undefined) throw new TokenRefused(answer.refused)
      if (answer.failed !== undefined) throw new Error(answer.failed)
      return answer.token
    }
  }

  /** @param {any} hello */
  function begin({ url, hasToken, keepMs, keepForbidden }) {
    const client = connect(url, { keepMs, keepForbidden, ...(hasToken ? { token } : {}) })
    client.on('state', state => {
      for (const tab of tabs) say(tab, { connection: state })
    })
    return client
  }

  /** Says what nobody asked for. @param {Tab} tab @param {any} message @param {number} [bytes] of the value in it */
  function say(tab, message, bytes = 0) {
    if (!tabs.has(tab)) return
    tab.port.postMessage(message)
    tab.unheardBytes += MESSAGE_BYTES + bytes
    if (!tab.askedBytes && tab.unheardBytes > UNHEARD_BYTES_MAX / 4) {
      tab.askedBytes = tab.unheardBytes
      tab.askedAtMs = now()
      tab.port.postMessage({ hears: true })
    }
    if (tab.unheardBytes < UNHEARD_BYTES_MAX || now() - tab.askedAtMs < ANSWER_MS) return
    tab.port.postMessage({ gone: true })
    drop(tab)
  }

  /** @param {Tab} tab @param {any} message */
  function open(tab, { open: id, key, order, room: options, join }) {
    const client = /** @type {import('../connect.js').Keycast} */ (keycast)
    /** @param {any} message @param {number} [bytes] */
    const tell = (message, bytes) => say(tab, { of: id, ...message }, bytes)
    // Known first: the tab may be given up over the first thing that is said of it.
    if (!options) {
      const handle = client.value(key, order)
      tab.handles.set(id, handle)
      /** @type {any} */
      let before = nothing
      // Other tabs may be shown an older value than this one had, until a gateway says how the key stands.
      let isSure = order === undefined
      handle.subscribe(present => {
        isSure ||= present.health !== 'loading' && present.health !== 'offline'
        const state = isSure ? present : { ...nothing, health: present.health, error: present.error }
        const { version, stale, error, health } = state
        const isNew = version !== before.version
        const isNews = isNew || stale !== before.stale || error !== before.error
        const { contentType, sizeBytes, changedAt } = state
        const told = { version, contentType, sizeBytes, stale, health, changedAt, error: error && packError(error) }
        const isChange = isNews || health !== before.health
        before = state
        const value = isNew ? shownOf(state) : {}
        if (isChange) tell({ state: told, order: handle.order(), isNews, ...value }, isNew ? sizeBytes : 0)
      })
      return
    }
    const handle = client.room(key, options)
    tab.handles.set(id, handle)
    handle.on('message', item => tell({ item }))
    handle.on('gap', item => tell({ item }))
    handle.subscribe(({ error, pending: _, ...state }) => {
      tell({ state: { ...state, error: error && packError(error) }, position: handle.position })
    })
    handle.members.subscribe(members => tell({ members }))
    // It was in the room at a worker that died.
    if (join) deed(tab, handle, 'join', join).catch(() => {})
  }

  /** @param {import('../values/entry.js').ValueState} state */
  function shownOf(state) {
    try {
      return { value: state.value }
    } catch (error) {
      // The tab throws it where the value is looked at.
      return { unreadable: String(error) }
    }
  }

  /** @param {Tab} tab @param {any} message */
  async function call(tab, { call: id, of, name, args }) {
    /** @param {any} answer */
    const reply = answer => tab.port.postMessage({ done: id, ...answer })
    const controller = new AbortController()
    tab.calls.set(id, controller)
    try {
      reply({ value: await deed(tab, tab.handles.get(of), name, args, controller.signal) })
    } catch (error) {
      reply({ error: packError(error) })
    }
    tab.calls.delete(id)
  }

  /** @param {Tab} tab @param {any} handle @param {string} name @param {any[]} args @param {AbortSignal} [signal] */
  function deed(tab, handle, name, args, signal) {
    if (name === 'get') return keycast?.get(args[0], { signal })
    if (name === 'leave') return handle && leave(tab, handle)
    if (name === 'join') {
      if (handle) return join(tab, handle, args)
      throw new KeycastError({ code: 'closed', message: 'the handle is closed' })
    }
    // By a handle of its own: that of the tab may be closed by now, and a publish goes on.
    const [key, given, options] = args
    const room = /** @type {import('../connect.js').Keycast} */ (keycast).room(key, { follow: false })
    try {
      return name === 'history' ? room.history({ ...given, signal }) : room.publish(given, options)
    } finally {
      room.close()
    }
  }

  /** @param {Tab} tab @param {any} handle @param {any[]} args */
  async function join(tab, handle, args) {
    const others = joined.get(handle.key) ?? new Set()
    const wasThere = others.has(tab)
    joined.set(handle.key, others.add(tab))
    try {
      return await handle.join(...args)
    } catch (error) {
      // One that was refused would keep the others' user in the room after they have left.
      if (!wasThere) others.delete(tab)
      throw error
    }
  }

  /** The room is left with the last tab that joined it. @param {Tab} tab @param {any} handle */
  async function leave(tab, handle) {
    const others = joined.get(handle.key)
    others?.delete(tab)
    if (others?.size) return
    joined.delete(handle.key)
    await handle.leave()
  }

  /** @param {Tab} tab @param {number} id of its handle */
  function close(tab, id) {
    const handle = tab.handles.get(id)
    tab.handles.delete(id)
    // Looked for in rooms that it has joined alone, which are few: a tab may have thousands of handles.
    const isIn = joined.get(handle?.key)?.has(tab)
    if (isIn && ![...tab.handles.values()].some(({ key }) => key === handle.key)) leave(tab, handle).catch(() => {})
    handle?.close()
  }

  /** @param {Tab} tab that was closed, died, or stands still */
  function drop(tab) {
    if (!tabs.delete(tab)) return
    tab.port.onmessage = null
    tab.answer?.(isGone)
    // Its reads are for nobody any more. Its publishes go on.
    for (const controller of tab.calls.values()) controller.abort()
    for (const id of [...tab.handles.keys()]) close(tab, id)
    if (tabs.size > 0) return
    keycast?.close()
    keycast = undefined
  }

  /** @param {Tab} tab @param {any} message */
  function take(tab, message) {
    if (message.hello) {
      tab.hasToken = message.hello.hasToken
      tabs.add(tab)
      keycast ??= begin(message.hello)
      say(tab, { connection: keycast.state })
      locks.request(message.hello.lock, {}, () => drop(tab))
    } else if (message.open !== undefined) open(tab, message)
    else if (message.close !== undefined) close(tab, message.close)
    else if (message.call !== undefined) call(tab, message)
    else if (message.giveUp !== undefined) tab.calls.get(message.giveUp)?.abort()
    else if (message.retry !== undefined) tab.handles.get(message.retry)?.retry()
    else if (message.answer) tab.answer?.(message.answer)
    else if (message.hears) {
      tab.unheardBytes -= tab.askedBytes
      tab.askedBytes = 0
    } else if (message.bye) drop(tab)
    // A page that is seen again asks at once, unless the gateway closed for good; a person may ask all the same.
    else if (message.reconnect === 'always' || keycast?.state.name !== 'closed') keycast?.reconnect()
  }

  return {
    /** @param {Port} port of a tab */
    join(port) {
      /** @type {Tab} */
      const tab = {
        port,
        hasToken: false,
        handles: new Map(),
        calls: new Map(),
        answer: undefined,
        unheardBytes: 0,
        askedBytes: 0,
        askedAtMs: 0,
      }
      port.onmessage = ({ data }) => take(tab, data)
      isHeld.then(() => port.postMessage({ lock }))
    },
  }
}
