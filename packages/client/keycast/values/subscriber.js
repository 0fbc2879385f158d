// Tells the gateway which keys are wanted, and no longer wanted: in few messages, one at a time, as fast as it allows.
import { PAUSE_DEFAULT_MS, requestBytesMax } from '../requests.js'

/**
 * @typedef {import('../connection/connection.js').Limits} Limits
 * @typedef {{ id: number, type: 'subscribe' | 'unsubscribe', keys: string[], added: Set<string> }} Request
 *   `added`: those of its keys that the session was not subscribed to before
 */

/**
 * @param {object} deps
 * @param {(message: object) => void} deps.send
 * @param {() => number} deps.nextId
 * @param {() => import('../timers.js').Alarm} deps.createAlarm
 * @param {(key: string, id: number) => unknown} deps.entryOf how a subscribe names a key: with what is held of it already
 * @param {(key: string, error: { code: any, message: string }) => void} deps.onRefused
 * @param {(key: string) => void} deps.onForgotten the gateway sends nothing more of a key
 */
export function createSubscriber({ send, nextId, createAlarm, entryOf, onRefused, onForgotten }) {
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

  /** What changes in one turn goes out in one message: the first flush leaves nothing to those that follow it. */
  const soon = () => queueMicrotask(flush)

  /** Sends as many keys as fit into one message. */
  function flush() {
    // Set while the gateway wants a pause.
    if (!limits || underWay || alarm.isSet()) return
    // Before it subscribes, for this makes room.
    const isLeaving = toUnsubscribe.size > 0
    if (!isLeaving) refuseTooMany(limits.keysPerSession)
    const candidates = isLeaving ? toUnsubscribe : toSubscribe
    if (candidates.size === 0) return
    const type = isLeaving ? 'unsubscribe' : 'subscribe'
    const id = nextId()
    const bytesMax = requestBytesMax(limits)
    let bytes = JSON.stringify({ type, id, keys: [] }).length
    const keys = []
    const entries = []
    for (const key of candidates) {
      const entry = isLeaving ? key : entryOf(key, id)
      bytes += JSON.stringify(entry).length + 1
      if (bytes > bytesMax && keys.length > 0) break
      keys.push(key)
      entries.push(entry)
    }
    underWay = { id, type, keys, added: new Set(keys.filter(key => !subscribed.has(key))) }
    for (const key of keys) {
      if (isLeaving) {
        subscribed.delete(key)
        forget(key)
      } else {
        toSubscribe.delete(key)
        subscribed.add(key)
      }
    }
    send({ type, id, keys: entries })
  }

  /** @param {number} most */
  function refuseTooMany(most) {
    const added = [...toSubscribe].filter(key => !subscribed.has(key))
    for (const key of added.slice(Math.max(0, most - subscribed.size))) {
      toSubscribe.delete(key)
      onRefused(key, { code: 'too_many_keys', message: `${most} keys at most` })
    }
  }

  /** @param {Request} request what was refused as a whole, and is asked again @param {number} [retryAfterMs] */
  function repeat({ type, keys, added }, retryAfterMs = PAUSE_DEFAULT_MS) {
    for (const key of keys) {
      if (type === 'subscribe') {
        if (added.has(key)) subscribed.delete(key)
        if (!toUnsubscribe.has(key)) toSubscribe.add(key)
        else if (added.has(key)) forget(key)
      } else {
        subscribed.add(key)
        // A key that is wanted again meanwhile is sent whole when it is subscribed to once more.
        if (!toSubscribe.has(key)) toUnsubscribe.add(key)
      }
    }
    alarm.set(flush, retryAfterMs)
  }

  /** @param {string} key that nobody wants, and that the session is not subscribed to */
  function forget(key) {
    toUnsubscribe.delete(key)
    onForgotten(key)
  }

  return {
    /** Subscribes to a key, or asks anew where it stands. @param {string} key */
    want(key) {
      toUnsubscribe.delete(key)
      toSubscribe.add(key)
      soon()
    },
    /** Goes on with a key that was dropped and is not forgotten. @param {string} key */
    keep: key => toUnsubscribe.delete(key),
    /** @param {string} key */
    drop(key) {
      toSubscribe.delete(key)
      if (!subscribed.has(key)) return onForgotten(key)
      toUnsubscribe.add(key)
      soon()
    },
    /** The gateway ended a subscription, or it is another's. @param {string} key */
    ended(key) {
      toSubscribe.delete(key)
      subscribed.delete(key)
      if (toUnsubscribe.has(key)) forget(key)
      // Where another took all keys of a request meanwhile, the gateway does not answer it.
      if (underWay?.type !== 'subscribe' || underWay.keys.some(each => subscribed.has(each))) return
      underWay = undefined
      soon()
    },
    /** Whether what the gateway says of a key is of a subscription of now, not of one before. @param {string} key */
    isSubscribed: key => subscribed.has(key),

    /** @param {Limits} next @param {Iterable<{ key: string }>} wanted */
    opened(next, wanted) {
      limits = next
      toSubscribe.clear()
      for (const { key } of wanted) toSubscribe.add(key)
      flush()
    },
    lost() {
      limits = undefined
      underWay = undefined
      alarm.clear()
      subscribed.clear()
      const forgotten = [...toUnsubscribe]
      toUnsubscribe.clear()
      forgotten.forEach(onForgotten)
    },
    /**
     * Takes an answer to a whole request.
     *
     * @param {any} message
     * @returns {boolean} whether it was one
     */
    answered(message) {
      if (!underWay || message.key !== undefined) return false
      // A refusal of a large request comes without its id; all other requests of a client are small.
      const isOurs = message.id === underWay.id || (message.id === undefined && message.code === 'rate_limited')
      if (!isOurs) return false
      const request = underWay
      underWay = undefined
      if (message.code === 'rate_limited') repeat(request, message.retryAfterMs)
      else if (message.type === 'error' && request.type === 'subscribe') {
        for (const key of request.keys) onRefused(key, message)
      }
      flush()
      return true
    },
  }
}
