// A client without a network, for unit tests of code that uses one. It is the real client; the gateway is a fake.
import { connect } from './keycast.js'
import { messageOf } from './testing-messages.js'
import { createFakeRooms } from './testing-rooms.js'

/**
 * @typedef {import('./keycast.js').KeycastErrorCode} KeycastErrorCode
 * @typedef {import('./keycast/environment.js').Socket} Socket
 */

const limits = { messageBytes: 262_144, keysPerSession: 5_000, requestsPerSecond: 1_000 }

/**
 * Makes a client and the fake gateway that it is connected to. Its time passes by `passTime()` alone, and a lost
 * connection returns by `reconnect()`.
 *
 * @param {{ rooms?: string[] }} [options] the namespaces whose keys are rooms
 */
export function createFakeKeycast({ rooms: roomNamespaces = ['room', 'user', 'all'] } = {}) {
  /** @type {Map<string, { line: { version: string, [field: string]: unknown }, bytes: Uint8Array }>} */
  const values = new Map()
  /**
   * Errors and `stale`, which are sent after the key's value.
   *
   * @type {Map<string, { type: string, code: string, retryAfterMs?: number }>}
   */
  const troubles = new Map()
  /** @type {Set<string>} */
  const watched = new Set()
  /** Gets of keys without a known state. @type {{ id: number, key: string }[]} */
  let gets = []
  /** @type {FakeSocket | undefined} */
  let socket
  /** By type and bytes: equal content has the same version, as it has at a gateway. @type {Map<string, string>} */
  const versions = new Map()
  /** @type {Set<{ task: () => void, atMs: number }>} */
  const timers = new Set()
  let nowMs = 0

  class FakeSocket {
    binaryType = ''
    /** @type {((event: any) => void) | null} */
    onmessage = null
    /** @type {((event: any) => void) | null} */
    onclose = null
    /** @type {((event: any) => void) | null} */
    onerror = null
    constructor() {
      socket = this
    }
    /** @param {string} text */
    send(text) {
      answer(JSON.parse(text))
    }
    close() {
      if (socket === this) socket = undefined
      watched.clear()
      rooms.watched.clear()
    }
  }

  /** @param {object} message */
  const say = message => socket?.onmessage?.({ data: JSON.stringify(message) })

  /** @param {object} line @param {Uint8Array} bytes */
  function sayBytes(line, bytes) {
    const head = new TextEncoder().encode(`${JSON.stringify(line)}\n`)
    const frame = new Uint8Array(head.length + bytes.length)
    frame.set(head)
    frame.set(bytes, head.length)
    socket?.onmessage?.({ data: frame.buffer })
  }

  /** Sends a key's state. @param {string} key @param {{ id?: number }} [request] */
  function tell(key, request = {}) {
    const value = values.get(key)
    const trouble = troubles.get(key)
    if (value) sayBytes({ ...value.line, ...request }, value.bytes)
    if (trouble && (!value || request.id === undefined)) say({ ...trouble, ...request })
    return value !== undefined || trouble?.type === 'error'
  }

  const rooms = createFakeRooms(say)
  /** @param {any} entry of a subscribe */
  const nameOf = entry => entry.key ?? entry
  /** @param {any} entry */
  const isRoom = entry => roomNamespaces.includes(nameOf(entry).split(':')[0])

  /** @param {any} message */
  function answer(message) {
    const { type, id, key, keys = [] } = message
    if (rooms.answer(message)) return
    if (type === 'get') {
      if (!tell(key, { id })) gets.push({ id, key })
      return
    }
    const names = keys.filter((/** @type {any} */ entry) => !isRoom(entry)).map(nameOf)
    if (type === 'ping') say({ type: 'pong', id, count: 1 })
    if (type === 'unsubscribe') {
      for (const name of keys) {
        watched.delete(name)
        rooms.watched.delete(name)
      }
      say({ type: 'ok', id })
    }
    if (type === 'subscribe' && names.length < keys.length) rooms.subscribe(id, keys.filter(isRoom))
    else if (type === 'subscribe') {
      for (const name of names) watched.add(name)
      say({ type: 'subscribed', id, keys: names.map((/** @type {string} */ name) => ({ key: name })) })
      for (const name of names) {
        tell(name)
        // An error from before the subscription ends it too.
        const trouble = troubles.get(name)
        if (trouble?.type === 'error' && trouble.retryAfterMs === undefined) watched.delete(name)
      }
    }
  }

  /** @param {string} type @param {Uint8Array} bytes */
  function versionOf(type, bytes) {
    const content = `${type} ${bytes.join()}`
    const version = versions.get(content) ?? `fake-${versions.size + 1}`
    versions.set(content, version)
    return version
  }

  /** @param {string} key @param {object} [current] `current` for those that hold its value already */
  function changed(key, current) {
    if (watched.has(key)) current ? say(current) : tell(key)
    const asked = gets
    gets = asked.filter(get => get.key !== key || !tell(key, { id: get.id }))
  }

  const keycast = connect('ws://fake/', {
    WebSocket: FakeSocket,
    environment: {
      now: () => nowMs,
      setTimeout(task, ms) {
        const timer = { task, atMs: nowMs + ms }
        timers.add(timer)
        return timer
      },
      clearTimeout: timer => timers.delete(timer),
      document: undefined,
      window: undefined,
      isOffline: () => false,
    },
  })
  const welcome = () => say({ type: 'welcome', session: 'fake', heartbeatMs: 25_000, limits })
  welcome()

  return {
    /** The client to pass to the tested code. */
    keycast,

    /**
     * Gives a key a value: text for a string with a content type, bytes for a Uint8Array, JSON otherwise. An equal value
     * keeps its version, and is no change.
     *
     * @param {string} key
     * @param {unknown} value
     * @param {string} [contentType]
     */
    set(key, value, contentType) {
      const isBytes = value instanceof Uint8Array
      const bytes = isBytes ? value : new TextEncoder().encode(contentType ? String(value) : JSON.stringify(value))
      const type = contentType ?? (isBytes ? 'application/octet-stream' : 'application/json')
      const version = versionOf(type, bytes)
      const isSame = values.get(key)?.line.version === version
      values.set(key, { line: { type: 'value', key, version, contentType: type }, bytes })
      troubles.delete(key)
      changed(key, isSame ? { type: 'current', key, version } : undefined)
    },

    /**
     * Makes a key fail, with the gateway's message. Without `retryAfterMs` its subscription ends: it gets no later
     * values until the key is asked for anew.
     *
     * @param {string} key
     * @param {Exclude<KeycastErrorCode, 'closed'>} code
     * @param {{ message?: string, retryAfterMs?: number }} [details]
     */
    fail(key, code, { message = messageOf(code), retryAfterMs } = {}) {
      const error = { type: 'error', key, subscribed: retryAfterMs !== undefined, code, message, retryAfterMs }
      if (code === 'not_found') values.delete(key)
      troubles.set(key, error)
      if (watched.has(key)) say(error)
      if (retryAfterMs === undefined) watched.delete(key)
      const asked = gets
      gets = asked.filter(get => get.key !== key)
      for (const { id } of asked.filter(get => get.key === key)) say({ ...error, id })
    },

    /**
     * Makes a key's value stale, until it is set.
     *
     * @param {string} key @param {number} [agoMs] when the backend was asked last
     */
    stale(key, agoMs = 0) {
      const stale = { type: 'stale', key, sinceMs: agoMs, code: 'backend_timeout' }
      troubles.set(key, stale)
      if (watched.has(key)) say(stale)
    },

    /** The keys that are subscribed to. A subscription that was begun in this turn is among them in the next. */
    watched: () => [...watched, ...rooms.watched.keys()],

    /**
     * Publishes into a room as somebody else.
     *
     * @param {string} key
     * @param {unknown} data
     * @param {{ from?: string, messageId?: string }} [of]
     */
    publish: (key, data, of) => void rooms.keep(key, data, of),

    /** The messages of a room. @param {string} key */
    messages: key => rooms.roomOf(key).messages.map(({ data }) => data),

    /**
     * Makes publishes into a room fail, until this is called without a code. After `publish_unknown` the client tries
     * again until the deadline: {@link passTime}.
     *
     * @param {string} key
     * @param {string} [code]
     */
    refusePublishes(key, code) {
      rooms.roomOf(key).refusal = code
    },

    /** Sets the names of the other members of a room. @param {string} key @param {string[]} names */
    setMembers(key, names) {
      const room = rooms.roomOf(key)
      const me = room.members.filter(({ id }) => id === 'me')
      room.members = [...names.map(name => ({ id: name, name, tabs: 1 })), ...me]
      rooms.tellMembers(key)
    },

    /** Lets so much time pass for the client: what it waits for happens, and deadlines end. @param {number} ms */
    passTime(ms) {
      const untilMs = nowMs + ms
      for (;;) {
        const [next] = [...timers].filter(({ atMs }) => atMs <= untilMs).sort((a, b) => a.atMs - b.atMs)
        if (!next) break
        timers.delete(next)
        nowMs = Math.max(nowMs, next.atMs)
        next.task()
      }
      nowMs = untilMs
    },

    /** Loses the connection. Values can be set meanwhile. */
    disconnect() {
      const lost = socket
      watched.clear()
      rooms.watched.clear()
      lost?.onclose?.({ code: 1006, reason: '' })
    },

    /** Ends a {@link disconnect}: the client connects and resumes. */
    reconnect() {
      keycast.reconnect()
      welcome()
    },
  }
}
