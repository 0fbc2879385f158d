// Clients that publish: each has so many publishes under way and sends one for each that is acknowledged, or sends one at
// fixed times, whatever is acknowledged.
import { randomBytes } from 'node:crypto'
import { keycast } from '../dialects/keycast.ts'
import { numberAfter } from '../dialects/number-after.ts'
import { encodeFrame } from '../frames.ts'
import { createSchedule } from '../schedule.ts'

/** Type, id, key, epoch, seq and time. */
const HEAD_BYTES = 256

export const counts = /** @type {const} */ (['requested', 'published', 'refusals', 'lost', 'unexpected'])
export const histograms = /** @type {const} */ (['latency'])

/**
 * `each`: how many a client publishes; without end unless given. `everyMs`: each client publishes at fixed times, so far
 * apart, in place of the window.
 * @typedef {{ rooms: string[], window: number, each?: number, everyMs?: number }} PublishSettings
 *
 * `underWay`: when the publishes under way were sent, or due, by id.
 * @typedef {{ client: import('../client.ts').Client, room: string, name: string, sent: number, owed: number,
 *   underWay: Map<number, number> }} Publisher
 *
 * Of each room the latest position that was acknowledged.
 * @typedef {Record<string, { epoch: string, seq: number }>} Positions
 */

/** @type {import('../workload.ts').CreateWorkload<PublishSettings, typeof counts[number], typeof histograms[number]>} */
export function createWorkload({ settings, tally, usage, nowUs, index, processes }) {
  const { rooms, window, each = Number.POSITIVE_INFINITY, everyMs } = settings
  const tallied = tally.counts
  /** @type {Set<Publisher>} */
  const publishers = new Set()
  /** Those that may publish more, when the turn ends. @type {Publisher[]} */
  let owing = []
  /** @type {Positions} */
  const positions = {}
  let isStopped = false
  /** @type {ReturnType<typeof createSchedule<Publisher>> | undefined} */
  const schedule =
    everyMs === undefined
      ? undefined
      : createSchedule({
          intervalMs: everyMs,
          phase: index / processes,
          nowUs,
          onLate: usage.onLate,
          onDue: ({ item }, dueUs) => send(item, 1, dueUs),
        })

  return {
    behaviour: {
      headBytesMax: HEAD_BYTES,
      open(client, number) {
        /** @type {Publisher} */
        const publisher = {
          client,
          room: rooms[number % rooms.length],
          name: randomBytes(12).toString('base64url'),
          sent: 0,
          owed: 0,
          underWay: new Map(),
        }
        publishers.add(publisher)
        return {
          onMessage(head) {
            const kind = keycast.kindOf(head)
            if (kind === 'answered' || kind === 'refused') settle(publisher, head, kind === 'answered')
            else if (kind !== 'ignored' && keycast.onHello(head) === undefined) tallied.unexpected += 1
          },
          onEnd() {
            publishers.delete(publisher)
            tallied.lost += publisher.underWay.size
          },
        }
      },
    },
    outstanding() {
      let sum = 0
      for (const { underWay } of publishers) sum += underWay.size
      return sum
    },
    /** Everybody is connected: begin. */
    tell() {
      schedule?.start()
      for (const publisher of publishers) {
        if (schedule) schedule.add(publisher)
        else send(publisher, window)
      }
    },
    stop() {
      isStopped = true
      schedule?.stop()
    },
    /** @returns {Positions} */
    outcome: () => positions,
  }

  /** @param {Publisher} publisher @param {number} count @param {number} [atUs] from when its latency counts */
  function send(publisher, count, atUs = nowUs()) {
    const { client, room, name, underWay } = publisher
    /** @type {Buffer[]} */
    const frames = []
    for (let left = Math.min(count, each - publisher.sent); left > 0; left--) {
      publisher.sent += 1
      underWay.set(publisher.sent, atUs)
      const text = keycast.publish(publisher.sent, room, `${name}-${publisher.sent}`, Math.round(atUs))
      frames.push(encodeFrame(text))
    }
    tallied.requested += frames.length
    if (frames.length > 0) client.send(frames.length === 1 ? frames[0] : Buffer.concat(frames))
  }

  /** @param {Publisher} publisher @param {string} head @param {boolean} isKept */
  function settle(publisher, head, isKept) {
    const id = numberAfter(head, '"id":')
    const sentUs = publisher.underWay.get(id)
    if (sentUs === undefined) {
      tallied.unexpected += 1
      return
    }
    publisher.underWay.delete(id)
    if (isKept) {
      tallied.published += 1
      tally.recorders.latency(nowUs() - sentUs)
      notePosition(publisher.room, head)
    } else {
      tallied.refusals += 1
      tally.because(`error: ${/"code":"([^"]*)"/.exec(head)?.[1]}`)
    }
    if (isStopped || schedule) return
    if (publisher.owed === 0) {
      if (owing.length === 0) setImmediate(payDebts)
      owing.push(publisher)
    }
    publisher.owed += 1
  }

  function payDebts() {
    const paying = owing
    owing = []
    for (const publisher of paying) {
      const { owed } = publisher
      publisher.owed = 0
      if (!isStopped && publishers.has(publisher)) send(publisher, owed)
    }
  }

  /** @param {string} room @param {string} head */
  function notePosition(room, head) {
    const seq = numberAfter(head, '"seq":')
    const known = positions[room]
    if (known !== undefined && known.seq >= seq) return
    // An epoch stays for the life of a log: it is read once.
    positions[room] = { epoch: known?.epoch ?? /"epoch":"([^"]+)"/.exec(head)?.[1] ?? '', seq }
  }
}
