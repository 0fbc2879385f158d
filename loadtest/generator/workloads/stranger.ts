// Sessions that take what they can of all that clients share, each in a way of its own, at fixed times whatever they are
// told.
import type { Client } from '../client.ts'
import { codeIn } from '../dialects/fields.ts'
import { encodeFrame } from '../frames.ts'
import type { CreateWorkload } from '../workload.ts'

const HEAD_BYTES = 256

/** A closed session comes back within so long. */
const REDIAL_MS = 1_000

export const counts = ['sent', 'refusals'] as const
export const histograms = [] as const

interface StrangerSettings {
  intervalMs: number
  /** What it may read. */
  namespace: string
  /** Of the others. */
  rooms: string[]
  /** Tells its keys and rooms from those of another pool. */
  name: string
}

const LONG = 'x'.repeat(60_000)
const DEEP = `{"type":${'['.repeat(5_000)}${']'.repeat(5_000)}}`
const KEYS_EACH = 20

type Way = (n: number, settings: StrangerSettings) => object | string

/** The n-th message of each way. */
export const ways: Record<string, Way> = {
  'nested messages': () => DEEP,
  'existing keys without end': (n, { namespace, name }) => ({
    type: 'subscribe',
    keys: Array.from({ length: KEYS_EACH }, (_, each) => ({ key: `${namespace}:${name}-${n * KEYS_EACH + each}` })),
  }),
  'gets of new keys': (n, { namespace, name }) => ({ type: 'get', id: n, key: `${namespace}:got-${name}-${n}` }),
  'long messages into many rooms': (n, { name }) => ({
    type: 'publish',
    id: n,
    key: `room:${name}-${n % 260}`,
    data: LONG,
  }),
  'a byte into ever new rooms': (n, { name }) => ({ type: 'publish', id: n, key: `room:new-${name}-${n}`, data: 1 }),
  "publishes into the others' rooms": (n, { rooms }) => ({
    type: 'publish',
    id: n,
    key: rooms[n % rooms.length],
    data: n,
  }),
  'joins without end': (n, { name }) => ({ type: 'join', id: n, key: `room:joined-${name}-${n}`, name }),
  'histories of another epoch': (n, { rooms }) => ({
    type: 'history',
    id: n,
    key: rooms[0],
    epoch: 'other',
    after: 0,
    limit: 500,
  }),
}

const allWays = Object.values(ways)

interface Session {
  client: Client
  way: Way
}

export const createWorkload: CreateWorkload<StrangerSettings, typeof counts, never> = ({
  settings,
  tally,
  newSchedule,
}) => {
  let total = 0
  const schedule = newSchedule<Session>(settings.intervalMs, ({ item }) => {
    const message = item.way(total++, settings)
    tally.counts.sent += 1
    item.client.send(encodeFrame(typeof message === 'string' ? message : JSON.stringify(message)))
  })

  return {
    behaviour: {
      headBytesMax: HEAD_BYTES,
      redialMs: REDIAL_MS,
      open(client, number) {
        const entry = schedule.add({ client, way: allWays[number % allWays.length] })
        return {
          onMessage(head) {
            if (!head.startsWith('{"type":"error"')) return
            tally.counts.refusals += 1
            tally.because(`error: ${codeIn(head)}`)
          },
          onEnd: () => schedule.remove(entry),
        }
      },
    },
    /** The others were measured alone: begin. */
    tell: () => schedule.start(),
    stop: () => schedule.stop(),
  }
}
