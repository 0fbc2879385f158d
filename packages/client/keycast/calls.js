// Requests with one answer each: repeated after a reconnect until they are answered or given up.
import { KeycastError } from './errors.js'
import { bytesOf, PAUSE_DEFAULT_MS } from './requests.js'

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

/** At most so many are under way: a gateway lets so many of a session wait, unless it is set otherwise. */
const UNDER_WAY_MAX = 64

/** Each is much shorter, unless its name is a text that somebody pasted: a gateway would close the connection for good. */
const CALL_BYTES_MAX = 4_096

/**
 * @param {object} deps
 * @param {(message: object) => void} deps.send
 * @param {() => number} deps.nextId
 * @param {() => import('./timers.js').Alarm} deps.createAlarm
 */
export function createCalls({ send, nextId, createAlarm }) {
  const alarm = createAlarm()
  /** How many may be under way now: none without a session. */
  let most = 0
  /** Calls to be sent. @type {Set<Call>} */
  let queue = new Set()
  /** Calls that were sent, by id. @type {Map<number, Call>} */
  const underWay = new Map()

  function flush() {
    // Set while the gateway wants a pause.
    if (alarm.isSet()) return
    for (const call of queue) {
      if (underWay.size >= most) return
      queue.delete(call)
      if (call.signal?.aborted) continue
      const id = nextId()
      underWay.set(id, call)
      send({ id, ...call.make() })
    }
  }

  return {
    /**
     * @template T
     * @param {() => object} make
     * @param {(message: any, bytes: Uint8Array | undefined) => T} read the answer's content
     * @param {AbortSignal} [signal]
     * @returns {Promise<T>}
     */
    ask(make, read, signal) {
      /** @type {() => void} */
      let abort
      const asked = new Promise((resolve, reject) => {
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
        signal?.throwIfAborted()
        // What is no JSON fails here: asked again after each loss, it would end every session.
        if (bytesOf(make()) > CALL_BYTES_MAX) throw new KeycastError({ code: 'too_large', message: 'too large' })
        queue.add(call)
        signal?.addEventListener('abort', abort)
        flush()
      })
      // One signal may serve an application for ever.
      return asked.finally(() => signal?.removeEventListener('abort', abort))
    },
    /** @param {Limits} limits */
    opened({ requestsPerSecond }) {
      most = Math.min(UNDER_WAY_MAX, requestsPerSecond)
      flush()
    },
    lost() {
      most = 0
      alarm.clear()
      // The oldest call goes first again.
      queue = new Set([...underWay.values(), ...queue])
      underWay.clear()
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
        queue.add(call)
        alarm.set(flush, retryAfterMs)
      } else {
        try {
          if (type === 'error') throw new KeycastError(message)
          call.take(message, bytes)
        } catch (error) {
          // Thrown further it would end the session, and the call stay open for ever.
          call.reject(error)
        }
      }
      flush()
      return true
    },
  }
}
