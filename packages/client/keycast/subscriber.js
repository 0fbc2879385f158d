// Tells the gateway which keys are wanted, and no longer wanted: in few messages, one at a time, as fast as it allows.
import { bytesOf, PAUSE_DEFAULT_MS, requestBytesMax } from './requests.js'

/**
 * @typedef {import('./connection/connection.js').Limits} Limits
 * @typedef {{ id: number, isLeaving: boolean, keys: Set<string>, added: Set<string> }} Request
 *   `added`: those of its keys that the session was not subscribed to before
 */

/**
 * @param {object} deps
 * @param {(message: object) => void} deps.send
 * @param {() => number} deps.nextId
 * @param {() => import('./timers.js').Alarm} deps.createAlarm
 * @param {(key: string, id: number) => unknown} deps.entryOf names a key in a subscribe: with the version already here
 * @param {(key: string, error: { code: any, message: string }) => void} deps.fail
 * @param {(key: string) => void} deps.forget the gateway sends nothing more of a key
 */
export function createSubscriber({ send, nextId, createAlarm, entryOf, fail, forget }) {
  const alarm = createAlarm()
  /** Of the session; undefined without one. @type {Limits | undefined} */
  let limits
  /** @type {Set<string>} */
  const toSubscribe = new Set()
  /** Also keys that the gateway has been asked for and has not answered yet. @type {Set<string>} */
  const subscribed = new Set()
  /** Part of `subscribed`. @type {Set<string>} */
  const toUnsubscribe = new Set()
  /** @type {Request | undefined} */
  let underWay

  /** The changes of one turn go out in one message: the first flush leaves nothing to those that follow it. */
  const soon = () => queueMicrotask(flush)

  /** Sends as many keys as fit into one message. */
  function flush() {
    // Set while the gateway wants a pause.
    if (!limits || underWay || alarm.isSet()) return
    // Unsubscribes before it subscribes, for this makes room.
    const isLeaving = toUnsubscribe.size > 0
    const most = limits.keysPerSession
    const type = isLeaving ? 'unsubscribe' : 'subscribe'
    const id = nextId()
    const bytesMax = requestBytesMax(limits)
    let bytes = bytesOf({ type, id, keys: [] })
    const keys = new Set()
    const added = new Set()
    const entries = []
    const waiting = isLeaving ? toUnsubscribe : toSubscribe
    for (const key of waiting) {
      const isAdded = !subscribed.has(key)
      if (isAdded && subscribed.size >= most) {
        waiting.delete(key)
        fail(key, { code: 'too_many_keys', message: `${most} at most` })
        continue
      }
      const entry = isLeaving ? key : entryOf(key, id)
      // A listener that hears of it may have closed the last handle.
      if (!waiting.has(key)) continue
      bytes += bytesOf(entry) + 1
      if (bytes > bytesMax && keys.size) break
      keys.add(key)
      entries.push(entry)
      waiting.delete(key)
      if (isLeaving) {
        subscribed.delete(key)
        forget(key)
      } else {
        if (isAdded) added.add(key)
        subscribed.add(key)
      }
    }
    if (!keys.size) return
    underWay = { id, isLeaving, keys, added }
    send({ type, id, keys: entries })
  }

  /**
   * @param {Request} request was refused as a whole, and is asked again @param {number} [retryAfterMs]
   */
  function repeat({ isLeaving, keys, added }, retryAfterMs = PAUSE_DEFAULT_MS) {
    for (const key of keys) {
      if (isLeaving) {
        subscribed.add(key)
        // A key that is wanted again meanwhile is sent whole when it is subscribed to once more.
        if (!toSubscribe.has(key)) toUnsubscribe.add(key)
      } else {
        if (added.has(key)) subscribed.delete(key)
        if (!toUnsubscribe.has(key)) toSubscribe.add(key)
        else if (added.has(key)) letGo(key)
      }
    }
    alarm.set(flush, retryAfterMs)
  }

  /** @param {string} key that nobody wants, and that the session is not subscribed to */
  function letGo(key) {
    toUnsubscribe.delete(key)
    forget(key)
  }

  /**
   * A gateway does not answer a subscribe if each of its keys was named by another meanwhile, or got an error of its
   * own.
   *
   * @param {string} key
   * @param {string} [said]
   */
  function settle(key, said) {
    if (!underWay || underWay.isLeaving) return
    // It may have said so before it read the request, which then subscribes to what nobody hears.
    if (underWay.keys.delete(key) && said) toUnsubscribe.add(key)
    if (underWay.keys.size) return
    underWay = undefined
    soon()
  }

  return {
    /** Subscribes to a key, or asks for its state again. @param {string} key */
    want(key) {
      toUnsubscribe.delete(key)
      toSubscribe.add(key)
      soon()
    },
    /** Resumes a key that was dropped and is not forgotten. @param {string} key */
    keep: key => toUnsubscribe.delete(key),
    /** @param {string} key */
    drop(key) {
      toSubscribe.delete(key)
      if (!subscribed.has(key)) return forget(key)
      toUnsubscribe.add(key)
      soon()
    },
    /**
     * The gateway ended a subscription, or the rooms took it over.
     *
     * @param {string} key
     * @param {string} [said] the type of the message, where there was one
     */
    ended(key, said) {
      toSubscribe.delete(key)
      subscribed.delete(key)
      if (toUnsubscribe.has(key)) letGo(key)
      settle(key, said)
    },
    /** Whether a message about a key belongs to its present subscription, not to an earlier one. @param {string} key */
    isSubscribed: key => subscribed.has(key),

    /** @param {Limits} next @param {Iterable<{ key: string }>} wanted */
    opened(next, wanted) {
      limits = next
      toSubscribe.clear()
      for (const { key } of wanted) toSubscribe.add(key)
      flush()
    },
    lost() {
      limits = underWay = undefined
      alarm.clear()
      subscribed.clear()
      toUnsubscribe.forEach(letGo)
    },
    /**
     * Takes an answer to a whole request.
     *
     * @param {any} message
     * @returns {boolean} whether it was one
     */
    answered(message) {
      const { id, key, type, code } = message
      const request = underWay
      if (!request || id !== request.id) return false
      if (key) {
        settle(key)
        return false
      }
      underWay = undefined
      if (code === 'rate_limited') repeat(request, message.retryAfterMs)
      else if (type === 'error' && !request.isLeaving) {
        for (const key of request.keys) fail(key, message)
      }
      flush()
      return true
    },
  }
}
