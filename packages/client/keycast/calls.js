// Requests with one answer each: asked anew after a reconnect until they are answered or given up.
import { KeycastError } from './errors.js'
import { PAUSE_DEFAULT_MS } from './requests.js'

/**
 * @typedef {import('./connection/connection.js').Limits} Limits
 *
 * @typedef {object} Call
 * @property {() => object} make the request without its id, each time it is sent
 * @property {(message: any, bytes: Uint8Array | undefined) => void} take
 * @property {(error: unknown) => void} reject
 * @property {AbortSignal} [signal]
 *
 * @typedef {ReturnType<typeof createCalls>} Calls
 */

/** How many may be under way: a gateway lets so many of a session wait, unless it is set otherwise. */
const UNDER_WAY_MAX = 64

/**
 * @param {object} deps
 * @param {(message: object) => void} deps.send
 * @param {() => number} deps.nextId
 * @param {() => import('./timers.js').Alarm} deps.createAlarm
 */
export function createCalls({ send, nextId, createAlarm }) {
  const alarm = createAlarm()
  /** @type {Limits | undefined} */
  let limits
  /** Calls to be sent. @type {Set<Call>} */
  const queue = new Set()
  /** Calls that were sent, by id. @type {Map<number, Call>} */
  const underWay = new Map()

  function flush() {
    // Set while the gateway wants a pause.
    if (!limits || alarm.isSet()) return
    const most = Math.min(UNDER_WAY_MAX, limits.requestsPerSecond)
    for (const call of queue) {
      if (underWay.size >= most) return
      queue.delete(call)
      const id = nextId()
      underWay.set(id, call)
      send({ id, ...call.make() })
    }
  }

  return {
    /**
     * @template T
     * @param {() => object} make
     * @param {(message: any, bytes: Uint8Array | undefined) => T} read what the answer says
     * @param {AbortSignal} [signal]
     * @returns {Promise<T>}
     */
    ask(make, read, signal) {
      let abort = () => {}
      const asked = new Promise((resolve, reject) => {
        signal?.throwIfAborted()
        /** @type {Call} */
        const call = {
          make,
          take: (message, bytes) => resolve(read(message, bytes)),
          reject,
          signal,
        }
        abort = () => {
          queue.delete(call)
          reject(signal?.reason)
        }
        signal?.addEventListener('abort', abort)
        queue.add(call)
        flush()
      })
      // One signal may serve an application for ever.
      return asked.finally(() => signal?.removeEventListener('abort', abort))
    },
    /** @param {Limits} next */
    opened(next) {
      limits = next
      flush()
    },
    lost() {
      limits = undefined
      alarm.clear()
      // The oldest call goes first again.
      const calls = [...underWay.values(), ...queue]
      underWay.clear()
      queue.clear()
      for (const call of calls) if (!call.signal?.aborted) queue.add(call)
    },
    /** @param {KeycastError} error */
    end(error) {
      for (const call of queue) call.reject(error)
      queue.clear()
    },
    /**
     * Takes the answer to a call.
     *
     * @param {any} message
     * @param {Uint8Array | undefined} bytes
     * @returns {boolean} whether it was one
     */
    receive(message, bytes) {
      const { id, type, code, retryAfterMs = PAUSE_DEFAULT_MS } = message
      const call = underWay.get(id)
      if (!call) return false
      underWay.delete(id)
      if (code === 'rate_limited' || code === 'token_expired') {
        if (!call.signal?.aborted) queue.add(call)
        alarm.set(flush, retryAfterMs)
      } else if (type === 'error') call.reject(new KeycastError(message))
      else call.take(message, bytes)
      flush()
      return true
    },
  }
}
