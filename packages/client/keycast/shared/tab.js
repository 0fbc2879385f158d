// A tab's side: handles like those of a client with a connection of its own, fed by the worker that all tabs share.
import { TokenRefused } from '../connection/auth.js'
import { watchPage } from '../connection/page-lifecycle.js'
import { KeycastError } from '../errors.js'
import { checkEvent, createListeners } from '../listeners.js'
import { randomText } from '../random.js'
import { badKey } from '../requests.js'
import { createRoomHandle } from '../rooms/handle.js'
import { unknownMembers } from '../rooms/members.js'
import { asJson, createDeadline, DEADLINE_MS } from '../rooms/publishes.js'
import { checkOptions, positionOf, unknownRoom } from '../rooms/room.js'
import { nothing } from '../values/entry.js'
import { createHandle } from '../values/handle.js'
import { unpackError } from './messages.js'

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
 * @typedef {{ request: any, resolve: (value: any) => void, reject: (error: unknown) => void,
 *   leftMs?: () => number, wasAsked: boolean }} Call
 *   `leftMs`: the time until the deadline of a publish. `wasAsked`: a worker has heard of it
 *
 * The way to a worker. `reach` begins one, or reaches the one that there is.
 * @typedef {{ reach: (onError: () => void) => import('./host.js').Port, locks: import('./host.js').Locks }} Reach
 */

/** A worker that says nothing in this time died as it began, or its script hangs on the way: no event tells of either. */
const SILENT_MS = 20_000

const clocks = { now: () => performance.now(), date: () => Date.now() }

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
  /** The values' entries, shared by all handles of a key in this tab. @type {Map<string, any>} */
  const entries = new Map()

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

  /** @param {string} key */
  function createEntry(key) {
    /** @type {any} */
    const entry = {
      key,
      link,
      state: nothing,
      news: undefined,
      order: undefined,
      handles: 0,
      listeners: createListeners(() => (entry.state === nothing ? undefined : entry.state)),
      get ended() {
        return entry.state.health === 'ended'
      },
      id: 0,
      /** @param {any} message */
      take({ state, order, isNews, unreadable, ...fields }) {
        const before = entry.state
        entry.order = order
        const isClear = !(state.stale || state.error)
        // A worker that comes after one that died knows nothing yet: what is shown stays meanwhile.
        const isUnknown = state.version === undefined && before.version !== undefined
        const isSame = state.version === before.version && !(before.stale || before.error)
        if (isClear && (isUnknown || isSame)) return entry.stand(state.health)
        entry.state = { ...state, error: state.error && unpackError(state.error) }
        const read = () => {
          if (unreadable) throw new SyntaxError(unreadable)
          return fields.value
        }
        // The value travels only where it is another.
        const property =
          'value' in fields || unreadable ? { get: read } : Object.getOwnPropertyDescriptor(before, 'value')
        Object.defineProperty(entry.state, 'value', { enumerable: true, ...property })
        if (isNews) entry.news = entry.state
        entry.listeners.tell(entry.state)
      },
      /** Nothing else is another. @param {import('../errors.js').Health} health */
      stand(health) {
        if (health !== entry.state.health) entry.become({ health })
      },
      /** @param {object} changes */
      become(changes) {
        // A spread would read the value, which may throw.
        const state = Object.defineProperties({}, Object.getOwnPropertyDescriptors(entry.state))
        entry.state = Object.assign(state, changes)
        entry.listeners.tell(entry.state)
      },
    }
    entry.id = open({
      // A worker that comes next is asked for nothing older than what is shown.
      ask: () => ({ key, order: entry.order }),
      take: entry.take,
      wait() {
        if (!entry.ended) entry.stand('loading')
      },
      end(error) {
        entry.become({ error, health: 'ended' })
      },
    })
    entries.set(key, entry)
    return entry
  }

  /** @param {string} key */
  function value(key) {
    const known = entries.get(key)
    // A new handle asks again for a key whose subscription has ended.
    if (known?.state.error && !known.state.error.subscribed) say({ retry: known.id })
    const entry = known ?? createEntry(key)
    entry.handles += 1
    return createHandle(
      entry,
      () => say({ retry: entry.id }),
      () => {
        entry.handles -= 1
        if (entry.handles > 0) return
        entries.delete(key)
        shut(entry.id)
      },
    )
  }

  /** @param {string} key @param {import('../rooms/room.js').RoomOptions} [options] */
  function room(key, { after, last, presence = false, follow = true, bufferMessages } = {}) {
    checkOptions({ after, last, bufferMessages })
    /**
     * Published by this handle and under way. The worker says nothing of them: all of them with each change would be
     * gigabytes where a thousand wait.
     *
     * @type {Map<string, import('../rooms/room.js').PendingMessage>}
     */
    const mine = new Map()
    /** The name and the claim by which it is in the room. @type {any[] | undefined} */
    let join
    /** @type {import('../rooms/room.js').Reader} */
    const reader = { position: undefined, last, presence, take() {} }
    // Copied: a port carries no proxy, as frameworks make one of what they watch.
    if (after) reader.position = positionOf(after.epoch, after.seq)
    /** @type {any} */
    const members = {
      state: unknownMembers,
      listeners: createListeners(() => (members.state.count === undefined ? undefined : members.state)),
    }
    /** @type {any} */
    const shared = {
      key,
      link,
      members,
      state: unknownRoom,
      listeners: createListeners(() => shared.state),
      get ended() {
        return shared.state.health === 'ended'
      },
    }
    /** @param {Partial<import('../rooms/room.js').RoomState>} changes */
    const show = changes => {
      if (Object.entries(changes).every(([name, value]) => value === shared.state[name])) return
      shared.state = Object.freeze({ ...shared.state, ...changes })
      shared.listeners.tell(shared.state)
    }
    /** @param {string} messageId */
    const settled = messageId => {
      if (mine.delete(messageId)) show({ pending: [...mine.values()] })
    }
    const id = open({
      ask() {
        const { position } = reader
        return { key, room: { after: position, last: position ? undefined : last, presence, follow }, join }
      },
      take({ item, state, position, members: present }) {
        if (present) {
          members.state = present
          members.listeners.tell(present)
        } else if (item) {
          reader.position = item.position = positionOf(item.position.epoch, item.position.seq)
          // It may come before the answer to its publish: shown as both it would be there twice.
          settled(item.messageId)
          reader.take(item)
        } else {
          reader.position ??= position
          // Another has the name: a worker that comes next is not asked for it.
          if (state.error?.code === 'name_taken') join = undefined
          show({ ...state, joinedAs: join && state.joinedAs, error: state.error && unpackError(state.error) })
        }
      },
      wait() {
        if (!shared.ended) show({ live: false, health: 'loading' })
      },
      end(error) {
        show({ live: false, error, health: 'ended' })
      },
    })
    return createRoomHandle({
      room: /** @type {any} */ (shared),
      reader,
      follow,
      bufferMessages,
      retry: () => say({ retry: id }),
      onClose: () => shut(id),
      async publish(data, { messageId = randomText(), deadlineMs = DEADLINE_MS } = {}) {
        // As JSON has it, which a port would not carry in any case.
        const copy = asJson(data)
        const leftMs = createDeadline(clocks, deadlineMs)
        const published = call('publish', [key, copy, { messageId, deadlineMs }], undefined, undefined, leftMs)
        mine.set(messageId, { messageId, data: copy, at: Date.now() })
        show({ pending: [...mine.values()] })
        return published.finally(() => settled(messageId))
      },
      // As JSON, which reads through the proxies of frameworks.
      history: async ({ signal, ...part } = {}) =>
        call('history', [key, JSON.parse(JSON.stringify(part))], undefined, signal),
      async join(name, claim) {
        const joined = await call('join', [name, claim], id)
        join = [joined.name, joined.claim]
        // The room's state came before this answer, when it was not known whose name it is.
        show({ joinedAs: joined.name })
        return joined
      },
      async leave() {
        join = undefined
        show({ joinedAs: undefined })
        await call('leave', [], id)
      },
    })
  }

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
    value,
    room,
    /** @param {string} key @param {{ signal?: AbortSignal }} [options] */
    async get(key, { signal } = {}) {
      const refused = badKey(key)
      if (refused) throw refused
      return call('get', [key], undefined, signal)
    },
    /** @param {string} key */
    peek: key => entries.get(key)?.state ?? nothing,
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
