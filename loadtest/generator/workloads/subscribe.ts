// Each client subscribes to all the keys, or to one of them, and counts its messages. Values that carry the time they were
// made (nanoseconds of the host's monotonic clock, as text) are timed on their way to the client.
import { afterHello } from '../dialects/after-hello.ts'
import { dialects } from '../dialects/index.ts'
import { encodeFrame } from '../frames.ts'
import { record } from '../histogram.ts'

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
 * `each`: the keys of a client; all of them unless it is 1: then the first client has the first, the next the next, and
 * so on around.
 * @typedef {{ dialect: string, keys: string[], each?: 1 }} SubscribeSettings
 *
 * Told once everybody is subscribed: changes made from then on are measured, `changes` of each key.
 * @typedef {{ fromUs: number, changes: number }} MeasureFrom
 *
 * A change as this process saw it: when it was made, and how many clients it reached.
 * @typedef {{ key: string, stampUs: number, delivered: number, firstUs: number, lastUs: number }} Change
 *
 * `subscribers`: of this process, by key.
 * @typedef {{ changes: Change[], subscribers: Record<string, number> }} SubscribeOutcome
 */

/** @type {import('../workload.ts').CreateWorkload<SubscribeSettings, typeof counts[number], typeof histograms[number]>} */
export function createWorkload({ settings, tally, nowUs }) {
  const dialect = dialects[settings.dialect]
  const tallied = tally.counts
  /** Those of a client. @type {Map<string, { subscribers: number, changes: Map<string, Change> }>} */
  const keys = new Map(settings.keys.map(key => [key, { subscribers: 0, changes: new Map() }]))
  const keyNumbers = new Map(settings.keys.map((key, number) => [key, settings.each ? 0 : number]))
  /** @type {MeasureFrom} */
  let measure = { fromUs: Number.POSITIVE_INFINITY, changes: 0 }
  let outstanding = 0

  return {
    behaviour: afterHello(dialect, { headBytesMax: HEAD_BYTES, open }, tallied),
    outstanding: () => outstanding,
    tell(/** @type {MeasureFrom} */ message) {
      measure = message
    },
    stop() {},
    /** @returns {SubscribeOutcome} */
    outcome: () => ({
      changes: [...keys.values()].flatMap(({ changes }) => [...changes.values()]),
      subscribers: Object.fromEntries([...keys].map(([key, { subscribers }]) => [key, subscribers])),
    }),
  }

  /** @type {import('../clients.ts').Behaviour['open']} */
  function open(client, number) {
    const mine = settings.each ? [settings.keys[number % settings.keys.length]] : settings.keys
    const requests = dialect.subscribe(mine)
    /** The stamp last seen of each key. @type {Float64Array | undefined} */
    let seen
    let unanswered = requests.length
    outstanding += 1
    tallied.requested += 1
    for (const request of requests) client.send(encodeFrame(request))

    return {
      onMessage(head, bytes) {
        const kind = dialect.kindOf(head)
        if (kind === 'value' || kind === 'message') {
          tallied.values += 1
          tallied.bodyBytes += bytes
          const stamp = stampOf.exec(head)
          if (stamp === null) return
          seen ??= new Float64Array(mine.length)
          onStamp(seen, stamp[1], stamp[2])
        } else if (kind === 'entered') {
          unanswered -= 1
          if (unanswered > 0) return
          outstanding -= 1
          tallied.subscribed += 1
          for (const key of mine) keyOf(key).subscribers += 1
        } else if (typeof kind === 'object') client.send(encodeFrame(kind.reply))
        else onOther(kind, head, bytes)
      },
      onEnd() {
        if (unanswered <= 0) return
        outstanding -= 1
        tallied.lost += 1
      },
    }
  }

  /** @param {string} key of the settings */
  function keyOf(key) {
    return /** @type {NonNullable<ReturnType<typeof keys.get>>} */ (keys.get(key))
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
    const { changes } = keyOf(key)
    const change = changes.get(ns) ?? newChange(changes, key, ns, stampUs)
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

  /** @param {Map<string, Change>} changes @param {string} key @param {string} ns @param {number} stampUs @returns {Change | undefined} */
  function newChange(changes, key, ns, stampUs) {
    if (changes.size >= measure.changes) return undefined
    const change = { key, stampUs, delivered: 0, firstUs: nowUs(), lastUs: 0 }
    changes.set(ns, change)
    return change
  }

  /** @param {string} kind @param {string} head @param {number} bytes */
  function onOther(kind, head, bytes) {
    if (kind === 'refused') {
      tallied.refusals += 1
      tally.because(`error: ${/"code":"([^"]*)"/.exec(head)?.[1]}`)
    } else if (head.startsWith('{"type":"delta"')) {
      tallied.deltas += 1
      tallied.bodyBytes += bytes
    } else if (head.startsWith('{"type":"current"')) {
      tallied.currents += 1
    } else if (head.startsWith('{"type":"stale"')) {
      tallied.stale += 1
      tally.because(`stale: ${/"code":"([^"]*)"/.exec(head)?.[1]}`)
    } else if (kind !== 'ignored') {
      tallied.unexpected += 1
    }
  }
}
