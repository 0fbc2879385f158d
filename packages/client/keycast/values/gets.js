// Gets: one value each, asked anew after a reconnect until it is answered or given up.
import { KeycastError } from '../errors.js'
import { PAUSE_DEFAULT_MS } from '../requests.js'
import { createContent } from './content.js'

/**
 * @typedef {import('../connection/connection.js').Limits} Limits
 * @typedef {import('./content.js').Content} Content
 *
 * @typedef {object} Get
 * @property {string} key
 * @property {Content | undefined} held what the gateway need not send
 * @property {(value: any) => void} resolve
 * @property {(error: unknown) => void} reject
 * @property {boolean} isAborted
 */

/** How many may be under way: a gateway lets so many of a session wait, unless it is set otherwise. */
const UNDER_WAY_MAX = 64

/**
 * @param {object} deps
 * @param {(message: object) => void} deps.send
 * @param {() => number} deps.nextId
 * @param {import('../timers.js').Alarm} deps.alarm
 * @param {(key: string) => Content | undefined} deps.heldOf
 */
export function createGets({ send, nextId, alarm, heldOf }) {
  /** @type {Limits | undefined} */
  let limits
  let isPaused = false
  /** Gets to be sent. @type {Set<Get>} */
  const queue = new Set()
  /** Gets that were sent, by id. @type {Map<number, Get>} */
  const underWay = new Map()

  function flush() {
    if (!limits || isPaused) return
    const most = Math.min(UNDER_WAY_MAX, limits.requestsPerSecond)
    for (const get of queue) {
      if (underWay.size >= most) return
      queue.delete(get)
      const id = nextId()
      underWay.set(id, get)
      get.held = heldOf(get.key)
      send({ type: 'get', id, key: get.key, version: get.held?.version })
    }
  }

  return {
    /**
     * @param {string} key
     * @param {AbortSignal} [signal]
     * @returns {Promise<any>}
     */
    async get(key, signal) {
      signal?.throwIfAborted()
      let abort = () => {}
      try {
        return await new Promise((resolve, reject) => {
          /** @type {Get} */
          const asked = { key, held: undefined, resolve, reject, isAborted: false }
          abort = () => {
            asked.isAborted = true
            queue.delete(asked)
            reject(signal?.reason)
          }
          signal?.addEventListener('abort', abort)
          queue.add(asked)
          flush()
        })
      } finally {
        // One signal may serve an application for ever.
        signal?.removeEventListener('abort', abort)
      }
    },
    /** @param {Limits} next */
    opened(next) {
      limits = next
      flush()
    },
    lost() {
      limits = undefined
      isPaused = false
      alarm.clear()
      // The oldest get goes first again.
      const later = [...queue]
      queue.clear()
      for (const get of [...underWay.values(), ...later]) if (!get.isAborted) queue.add(get)
      underWay.clear()
    },
    /** @param {KeycastError} error */
    fail(error) {
      for (const get of queue) get.reject(error)
      queue.clear()
    },
    /**
     * Takes the answer to a get.
     *
     * @param {any} message
     * @param {Uint8Array | undefined} bytes
     * @returns {boolean} whether it was one
     */
    answered(message, bytes) {
      const get = underWay.get(message.id)
      if (!get) return false
      underWay.delete(message.id)
      if (message.code === 'rate_limited') {
        if (!get.isAborted) queue.add(get)
        isPaused = true
        alarm.set(() => {
          isPaused = false
          flush()
        }, message.retryAfterMs ?? PAUSE_DEFAULT_MS)
      } else if (message.type === 'error') get.reject(new KeycastError(message))
      else if (bytes) get.resolve(createContent({ ...message, bytes }).read())
      else get.resolve(get.held?.read())
      flush()
      return true
    },
  }
}
