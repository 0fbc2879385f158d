// Messages published here. One is under way in each room until its outcome is known, so that their order holds.
import { KeycastError } from '../errors.js'
import { randomText } from '../random.js'
import { bytesOf, PAUSE_DEFAULT_MS, requestBytesMax } from '../requests.js'

/**
 * @typedef {import('../connection/connection.js').Limits} Limits
 *
 * @typedef {object} PublishOptions
 * @property {string} [messageId] the same id means the same message: for a message whose outcome stayed unknown
 * @property {number} [deadlineMs] the message is given up after this time: 30,000 unless given
 */

/**
 * The place of a message. `duplicate`: it was there already.
 *
 * @typedef {{ messageId: string, position: import('./room.js').Position, at: number, duplicate: boolean }} Published
 */

/**
 * @typedef {object} Publish
 * @property {import('./room.js').PendingMessage} shown
 * @property {number} id of the request under way; 0 where none is
 * @property {boolean} isUnknown whether a try may have succeeded whose answer is lost
 * @property {any} error of the last try
 * @property {(published: Published) => void} resolve
 * @property {(error: KeycastError) => void} reject
 * @property {() => void} clear
 * @property {() => number} leftMs until its deadline
 *
 * @typedef {{ key: string, queue: Publish[], alarm: import('../timers.js').Alarm }} Lane
 *   `alarm`: set while the gateway wants a pause
 */

export const DEADLINE_MS = 30_000

/** So many of a room may wait: each is looked through with each change. */
const PENDING_MAX = 10_000

/** A copy, as readers get it. @param {unknown} given */
export function asJson(given) {
  const text = JSON.stringify(given)
  if (text === undefined) throw new TypeError('what is published must be JSON')
  return JSON.parse(text)
}

/**
 * The time that is left. A clock that is set back meanwhile says nothing of a page that was hidden, or kept for the way
 * back.
 *
 * @param {Pick<import('../environment.js').Environment, 'now' | 'date'>} clocks
 * @param {number} ms
 */
export function createDeadline({ now, date }, ms) {
  const [nowMs, dateMs] = [now(), date()]
  return () => ms - Math.max(now() - nowMs, date() - dateMs)
}

/**
 * @param {object} deps
 * @param {Pick<import('../environment.js').Environment, 'now' | 'date'>} deps.environment
 * @param {(message: object) => void} deps.send
 * @param {() => number} deps.nextId
 * @param {() => import('../timers.js').Alarm} deps.createAlarm
 * @param {(key: string) => void} deps.onChange the room's pending messages are others
 */
export function createClientPublishes({ environment: { now, date }, send, nextId, createAlarm, onChange }) {
  /** @type {Limits | undefined} */
  let limits
  /** @type {Map<string, Lane>} */
  const lanes = new Map()
  /** By id of the request under way. @type {Map<number, Lane>} */
  const underWay = new Map()

  /** @param {Lane} lane */
  function flush(lane) {
    const { key, queue, alarm } = lane
    for (;;) {
      const [first] = queue
      if (!limits || alarm.isSet() || !first || first.id) return
      const id = nextId()
      const { messageId, data } = first.shown
      const message = { type: 'publish', id, key, messageId, data }
      const bytes = bytesOf(message)
      // Timers stand still while a page is hidden or a computer asleep: the journal may have forgotten an id by now.
      if (first.leftMs() <= 0) giveUp(lane, first)
      // The gateway would close the connection, and all its subscriptions with it.
      else if (bytes > requestBytesMax(limits)) fail(lane, first, { code: 'too_large', message: `${bytes} bytes` })
      else {
        first.id = id
        underWay.set(id, lane)
        return send(message)
      }
    }
  }

  /** @param {Lane} lane @param {Publish} publish */
  function remove(lane, publish) {
    lane.queue.splice(lane.queue.indexOf(publish), 1)
    underWay.delete(publish.id)
    publish.clear()
    if (lane.queue.length === 0) lanes.delete(lane.key)
    onChange(lane.key)
  }

  /**
   * @param {Lane} lane @param {Publish} publish
   * @param {{ code: import('../errors.js').KeycastErrorCode, message: string, retryAfterMs?: number, reason?: string }} error
   */
  function fail(lane, publish, { code, message, retryAfterMs, reason }) {
    const { messageId } = publish.shown
    // The answer to a later try says nothing of an earlier one.
    const told = publish.isUnknown ? /** @type {any} */ ('publish_unknown') : code
    const error = new KeycastError({ code: told, message, key: lane.key, retryAfterMs, reason })
    publish.reject(Object.assign(error, { messageId }))
    remove(lane, publish)
  }

  /** @param {Lane} lane @param {Publish} publish whose deadline has passed */
  function giveUp(lane, publish) {
    if (publish.id) publish.isUnknown = true
    fail(lane, publish, publish.error ?? { code: 'not_sent', message: 'no outcome in time' })
  }

  /** @param {Lane} lane @param {Publish} publish @param {{ epoch: string, seq: number, at: number, duplicate?: boolean }} kept */
  function succeed(lane, publish, { epoch, seq, at, duplicate = false }) {
    const { messageId } = publish.shown
    publish.resolve({ messageId, position: { epoch, seq }, at, duplicate })
    remove(lane, publish)
    flush(lane)
  }

  /** @param {any} message @returns {boolean} whether it is the answer to a publish */
  function answered(message) {
    const { type, id, code, retryAfterMs } = message
    const lane = underWay.get(id)
    if (!lane) return false
    const [publish] = lane.queue
    if (type === 'published') succeed(lane, publish, message)
    else {
      underWay.delete(id)
      publish.id = 0
      publish.error = message
      if (code === 'publish_unknown') publish.isUnknown = true
      if (code === 'publish_unknown' || retryAfterMs !== undefined) {
        lane.alarm.set(() => flush(lane), retryAfterMs ?? PAUSE_DEFAULT_MS)
      } else fail(lane, publish, message)
      flush(lane)
    }
    return true
  }

  return {
    answered,
    /** @param {string} key @returns {import('./room.js').PendingMessage[]} */
    pending: key => (lanes.get(key)?.queue ?? []).map(({ shown }) => shown),

    /**
     * @param {string} key
     * @param {unknown} given
     * @param {PublishOptions & { isUnknown?: boolean }} [options] `isUnknown`: a shared worker that died may have sent it
     * @returns {Promise<Published>}
     */
    publish(key, given, { messageId = randomText(), deadlineMs = DEADLINE_MS, isUnknown = false } = {}) {
      // Copied now: the caller may change the object later.
      const data = asJson(given)
      const alarm = createAlarm()
      return new Promise((resolve, reject) => {
        /** @type {Publish} */
        const publish = {
          shown: { messageId, data, at: date() },
          id: 0,
          isUnknown,
          error: undefined,
          resolve,
          reject,
          clear: alarm.clear,
          leftMs: createDeadline({ now, date }, deadlineMs),
        }
        /** @type {Lane} */
        const lane = lanes.get(key) ?? { key, queue: [], alarm: createAlarm() }
        lanes.set(key, lane)
        if (lane.queue.push(publish) > PENDING_MAX) {
          return fail(lane, publish, { code: 'too_many_waiting', message: 'full' })
        }
        alarm.set(() => {
          giveUp(lane, publish)
          flush(lane)
        }, deadlineMs)
        onChange(key)
        // Of a tab that comes to another worker it may have passed.
        if (publish.leftMs() <= 0) giveUp(lane, publish)
        flush(lane)
      })
    },

    /** A message came. It may be one of those published here, whose answer is still on its way. @param {any} message */
    saw({ key, seq, at, messageId, data }, /** @type {string} */ epoch) {
      const lane = lanes.get(key)
      const publish = lane?.queue[0]
      if (!lane || !publish || publish.shown.messageId !== messageId || !(publish.id || publish.isUnknown)) return
      if (JSON.stringify(publish.shown.data) === JSON.stringify(data)) succeed(lane, publish, { epoch, seq, at })
    },

    /** @param {Limits} next */
    opened(next) {
      limits = next
      for (const lane of [...lanes.values()]) flush(lane)
    },
    lost() {
      limits = undefined
      underWay.clear()
      for (const lane of lanes.values()) {
        lane.alarm.clear()
        const [first] = lane.queue
        if (first.id) first.isUnknown = true
        first.id = 0
      }
    },
    /** @param {KeycastError} error */
    end(error) {
      for (const lane of [...lanes.values()]) for (const publish of [...lane.queue]) fail(lane, publish, error)
    },
  }
}
