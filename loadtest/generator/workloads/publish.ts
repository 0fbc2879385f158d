// Clients that publish: each has so many publishes under way and sends one for each that is acknowledged, or sends one at
// fixed times, whatever is acknowledged.
import { randomBytes } from 'node:crypto'
import type { Client } from '../client.ts'
import { codeIn, numberAfter } from '../dialects/fields.ts'
import { keycast } from '../dialects/keycast.ts'
import { encodeFrame } from '../frames.ts'
import { createWindowRefills } from '../window-refills.ts'
import type { CreateWorkload } from '../workload.ts'

/** Type, id, key, epoch, seq and time. */
const HEAD_BYTES = 256

export const counts = ['requested', 'published', 'refusals', 'lost', 'unexpected'] as const
export const histograms = ['latency'] as const

/**
 * `each`: how many a client publishes; without end unless given. `everyMs`: each client publishes at fixed times, so
 * far apart, in place of the window.
 */
interface PublishSettings {
  rooms: string[]
  window: number
  each?: number
  everyMs?: number
}

/** `underWay`: when the publishes under way were sent, or due, by id. */
interface Publisher {
  client: Client
  room: string
  name: string
  sent: number
  owed: number
  underWay: Map<number, number>
}

/** Of each room the latest position that was acknowledged. */
export type Positions = Record<string, { epoch: string; seq: number }>

export const createWorkload: CreateWorkload<PublishSettings, typeof counts, typeof histograms> = ({
  settings,
  tally,
  newSchedule,
  nowUs,
}) => {
  const { rooms, window, each = Number.POSITIVE_INFINITY, everyMs } = settings
  const tallied = tally.counts
  const publishers = new Set<Publisher>()
  const positions: Positions = {}
  let isStopped = false
  const schedule =
    everyMs === undefined ? undefined : newSchedule<Publisher>(everyMs, ({ item }, dueUs) => send(item, 1, dueUs))
  const owe = createWindowRefills<Publisher>((publisher, count) => {
    if (!isStopped && publishers.has(publisher)) send(publisher, count)
  })

  return {
    behaviour: {
      headBytesMax: HEAD_BYTES,
      open(client, number) {
        const publisher: Publisher = {
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
    outcome: (): Positions => positions,
  }

  /** @param atUs from when its latency counts */
  function send(publisher: Publisher, count: number, atUs: number = nowUs()) {
    const { client, room, name, underWay } = publisher
    const frames: Buffer[] = []
    for (let left = Math.min(count, each - publisher.sent); left > 0; left--) {
      publisher.sent += 1
      underWay.set(publisher.sent, atUs)
      const text = keycast.publish(publisher.sent, room, `${name}-${publisher.sent}`, Math.round(atUs))
      frames.push(encodeFrame(text))
    }
    tallied.requested += frames.length
    if (frames.length > 0) client.send(frames.length === 1 ? frames[0] : Buffer.concat(frames))
  }

  function settle(publisher: Publisher, head: string, isKept: boolean) {
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
      tally.because(`error: ${codeIn(head)}`)
    }
    if (!isStopped && !schedule) owe(publisher)
  }

  function notePosition(room: string, head: string) {
    const seq = numberAfter(head, '"seq":')
    const known = positions[room]
    if (known !== undefined && known.seq >= seq) return
    // An epoch stays for the life of a log: it is read once.
    positions[room] = { epoch: known?.epoch ?? /"epoch":"([^"]+)"/.exec(head)?.[1] ?? '', seq }
  }
}
