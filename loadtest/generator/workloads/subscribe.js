// Each client subscribes to the same keys and counts its messages. Values that carry the time they were made
// (nanoseconds of the host's monotonic clock, as text) are timed on their way to the client.
import { encodeFrame } from '../frames.js'
import { record } from '../histogram.js'

/** A tick is shorter; of a document the beginning is enough. */
const HEAD_BYTES = 512

/** Key and time of a value. A time has more digits than any other number in quotes. */
const stampOf = /"key":"([^"]+)".*?:"(\d{10,})"/

export const counts = /** @type {const} */ ([
  'requested',
  'subscribed',
  'refusals',
  'lost',
  'values',
  'deltas',
  'currents',
  'stale',
  'unexpected',
  'bodyBytes',
  'measured',
  'wentBack',
  'outside',
])
export const histograms = /** @type {const} */ (['latency'])

/**
 * @typedef {{ keys: string[] }} SubscribeSettings
 *
 * Told once everybody is subscribed: changes made from then on are measured, `changes` of them.
 * @typedef {{ fromUs: number, changes: number }} MeasureFrom
 *
 * A change as this process saw it: when it was made, and how many clients it reached.
 * @typedef {{ key: string, stampUs: number, delivered: number, firstUs: number, lastUs: number }} Change
 */

/** @type {import('../workload.js').CreateWorkload<SubscribeSettings, typeof counts[number], typeof histograms[number]>} */
export function createWorkload({ settings: { keys }, tally, nowUs }) {
  const tallied = tally.counts
  const request = JSON.stringify({ type: 'subscribe', id: 1, keys })
  const keyNumbers = new Map(keys.map((key, number) => [key, number]))
  /** @type {Map<string, Change>} */
  const changes = new Map()
  /** @type {MeasureFrom} */
  let measure = { fromUs: Number.POSITIVE_INFINITY, changes: 0 }
  let outstanding = 0

  return {
    behaviour: {
      headBytesMax: HEAD_BYTES,
      open(client) {
        /** The stamp last seen of each key. @type {Float64Array | undefined} */
        let seen
        let asked = false
        let answered = false

        return {
          onMessage(head, bytes) {
            if (head.startsWith('{"type":"value"')) {
              tallied.values += 1
              tallied.bodyBytes += bytes
              const stamp = stampOf.exec(head)
              if (stamp === null) return
              seen ??= new Float64Array(keys.length)
              onStamp(seen, stamp[1], stamp[2])
            } else if (head.startsWith('{"type":"delta"')) {
              tallied.deltas += 1
              tallied.bodyBytes += bytes
            } else if (head.startsWith('{"type":"welcome"')) {
              if (asked) return
              asked = true
              outstanding += 1
              tallied.requested += 1
              client.send(encodeFrame(request))
            } else if (head.startsWith('{"type":"subscribed"')) {
              if (!answered) outstanding -= 1
              answered = true
              tallied.subscribed += 1
            } else {
              onOther(head)
            }
          },
          onEnd() {
            if (!asked || answered) return
            outstanding -= 1
            tallied.lost += 1
          },
        }
      },
    },
    outstanding: () => outstanding,
    tell(/** @type {MeasureFrom} */ message) {
      measure = message
    },
    stop() {},
    /** @returns {Change[]} */
    outcome: () => [...changes.values()],
  }

  /** @param {Float64Array} seen @param {string} key @param {string} ns */
  function onStamp(seen, key, ns) {
    const number = keyNumbers.get(key)
    if (number === undefined) {
      tallied.unexpected += 1
      return
    }
    const stampUs = Number(ns) / 1_000
    if (stampUs <= seen[number]) {
      tallied.wentBack += 1
      return
    }
    seen[number] = stampUs
    if (stampUs < measure.fromUs) return
    const change = changes.get(ns) ?? newChange(key, ns, stampUs)
    if (change === undefined) {
      tallied.outside += 1
      return
    }
    const now = nowUs()
    change.delivered += 1
    change.lastUs = now
    tallied.measured += 1
    record(tally.histograms.latency, now - stampUs)
  }

  /** @param {string} key @param {string} ns @param {number} stampUs @returns {Change | undefined} */
  function newChange(key, ns, stampUs) {
    if (changes.size >= measure.changes) return undefined
    const change = { key, stampUs, delivered: 0, firstUs: nowUs(), lastUs: 0 }
    changes.set(ns, change)
    return change
  }

  /** @param {string} head */
  function onOther(head) {
    if (head.startsWith('{"type":"error"')) {
      tallied.refusals += 1
      tally.because(`error: ${/"code":"([^"]*)"/.exec(head)?.[1]}`)
    } else if (head.startsWith('{"type":"current"')) {
      tallied.currents += 1
    } else if (head.startsWith('{"type":"stale"')) {
      tallied.stale += 1
      tally.because(`stale: ${/"code":"([^"]*)"/.exec(head)?.[1]}`)
    } else if (!head.startsWith('{"type":"closing"')) {
      tallied.unexpected += 1
    }
  }
}
