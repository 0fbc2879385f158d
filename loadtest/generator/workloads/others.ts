// Honest clients, of whom something else takes what it can: each reads, publishes and joins in turn, at times fixed
// beforehand.
import type { Client } from '../client.ts'
import { codeIn, numberAfter } from '../dialects/fields.ts'
import { encodeFrame } from '../frames.ts'
import type { CreateWorkload } from '../workload.ts'

/** Type and id, and the code of an error. */
const HEAD_BYTES = 256

export const counts = ['requested', 'answered', 'refusals', 'lost', 'unexpected'] as const
export const histograms = ['get', 'publish', 'join'] as const

type Kind = (typeof histograms)[number]

interface OthersSettings {
  intervalMs: number
  keys: string[]
  rooms: string[]
}

/** `underWay`: what was asked, and when it was due, by id. */
interface Other {
  client: Client
  number: number
  sent: number
  underWay: Map<number, { kind: Kind; dueUs: number }>
}

const kinds: Kind[] = ['get', 'publish', 'join']

export const createWorkload: CreateWorkload<OthersSettings, typeof counts, typeof histograms> = ({
  settings: { intervalMs, keys, rooms },
  tally,
  newSchedule,
  nowUs,
}) => {
  const tallied = tally.counts
  const others = new Set<Other>()
  const schedule = newSchedule<Other>(intervalMs, ({ item }, dueUs) => ask(item, dueUs))
  schedule.start()

  function ask(other: Other, dueUs: number) {
    const id = ++other.sent
    const kind = kinds[id % kinds.length]
    const room = rooms[other.number % rooms.length]
    other.underWay.set(id, { kind, dueUs })
    tallied.requested += 1
    // Whoever joins a room again is in it already: so each leaves before.
    if (kind === 'join') other.client.send(encodeFrame(JSON.stringify({ type: 'leave', key: room })))
    other.client.send(encodeFrame(JSON.stringify(requestOf(kind, id, other.number, room))))
  }

  function requestOf(kind: Kind, id: number, number: number, room: string) {
    if (kind === 'get') return { type: 'get', id, key: keys[number % keys.length] }
    if (kind === 'publish') return { type: 'publish', id, key: room, data: `message ${id} of ${number}` }
    return { type: 'join', id, key: room, name: `other ${number}` }
  }

  function onMessage({ underWay }: Other, head: string) {
    const id = head.includes('"id":') ? numberAfter(head, '"id":') : undefined
    const asked = id === undefined ? undefined : underWay.get(id)
    if (id === undefined || !asked) return
    underWay.delete(id)
    if (head.startsWith('{"type":"error"')) {
      tallied.refusals += 1
      tally.because(`${asked.kind}: ${codeIn(head)}`)
    } else {
      tallied.answered += 1
      tally.recorders[asked.kind](nowUs() - asked.dueUs)
    }
  }

  return {
    behaviour: {
      headBytesMax: HEAD_BYTES,
      open(client, number) {
        const other: Other = { client, number, sent: 0, underWay: new Map() }
        others.add(other)
        const entry = schedule.add(other)
        return {
          onMessage: head => onMessage(other, head),
          onEnd() {
            schedule.remove(entry)
            others.delete(other)
            tallied.lost += other.underWay.size
          },
        }
      },
    },
    outstanding() {
      let sum = 0
      for (const { underWay } of others) sum += underWay.size
      return sum
    },
    stop: () => schedule.stop(),
  }
}
