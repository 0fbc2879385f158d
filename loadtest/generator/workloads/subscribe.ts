// Each client subscribes to all the keys, or to one of them, and counts its messages. Values that carry the time they were
// made (nanoseconds of the host's monotonic clock, as text) are timed on their way to the client.
import type { Client } from '../client.ts'
import type { ClientBehaviour } from '../clients.ts'
import { afterHello } from '../dialects/after-hello.ts'
import { codeIn } from '../dialects/fields.ts'
import { dialects } from '../dialects/index.ts'
import { encodeFrame } from '../frames.ts'
import { record } from '../histogram.ts'
import type { CreateWorkload } from '../workload.ts'

/** A tick is shorter; of a document the beginning is enough. */
const HEAD_BYTES = 512

/** Key and time of a value. A time has more digits than any other number in quotes. */
const stampOf = /"key":"([^"]+)"[\s\S]*?:"(\d{10,})"/

export const counts = [
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
] as const
export const histograms = ['latency'] as const

/**
 * `each`: the keys of a client; all of them unless it is 1: then the first client has the first, the next the next, and
 * so on around.
 */
interface SubscribeSettings {
  dialect: string
  keys: string[]
  each?: 1
}

/** Told once everybody is subscribed: changes made from then on are measured, `changes` of each key. */
interface MeasureFrom {
  fromUs: number
  changes: number
}

/** A change as this process saw it: when it was made, and how many clients it reached. */
export interface Change {
  key: string
  stampUs: number
  delivered: number
  lastUs: number
}

/** `subscribers`: of this process, by key. */
export interface SubscribeOutcome {
  changes: Change[]
  subscribers: Record<string, number>
}

export const createWorkload: CreateWorkload<SubscribeSettings, typeof counts, typeof histograms> = ({
  settings,
  tally,
  nowUs,
}) => {
  const dialect = dialects[settings.dialect]
  const tallied = tally.counts
  /** Those of a client. */
  const keys = new Map<string, { subscribers: number; changes: Map<string, Change> }>(
    settings.keys.map(key => [key, { subscribers: 0, changes: new Map() }]),
  )
  const keyNumbers = new Map(settings.keys.map((key, number) => [key, settings.each ? 0 : number]))
  let measure: MeasureFrom = { fromUs: Number.POSITIVE_INFINITY, changes: 0 }
  let outstanding = 0

  return {
    behaviour: afterHello(dialect, { headBytesMax: HEAD_BYTES, open }, tallied),
    outstanding: () => outstanding,
    tell(message: MeasureFrom) {
      measure = message
    },
    outcome: (): SubscribeOutcome => ({
      changes: [...keys.values()].flatMap(({ changes }) => [...changes.values()]),
      subscribers: Object.fromEntries([...keys].map(([key, { subscribers }]) => [key, subscribers])),
    }),
  }

  function open(client: Client, number: number): ClientBehaviour {
    const mine = settings.each ? [settings.keys[number % settings.keys.length]] : settings.keys
    const requests = dialect.subscribe(mine)
    /** The stamp last seen of each key. */
    let seen: Float64Array | undefined
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

  /** @param key of the settings */
  function keyOf(key: string) {
    return keys.get(key) as NonNullable<ReturnType<typeof keys.get>>
  }

  function onStamp(seen: Float64Array, key: string, ns: string) {
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

  function newChange(changes: Map<string, Change>, key: string, ns: string, stampUs: number): Change | undefined {
    if (changes.size >= measure.changes) return undefined
    const change = { key, stampUs, delivered: 0, lastUs: 0 }
    changes.set(ns, change)
    return change
  }

  function onOther(kind: string, head: string, bytes: number) {
    if (kind === 'refused') {
      tallied.refusals += 1
      tally.because(`error: ${codeIn(head)}`)
    } else if (head.startsWith('{"type":"delta"')) {
      tallied.deltas += 1
      tallied.bodyBytes += bytes
    } else if (head.startsWith('{"type":"current"')) {
      tallied.currents += 1
    } else if (head.startsWith('{"type":"stale"')) {
      tallied.stale += 1
      tally.because(`stale: ${codeIn(head)}`)
    } else if (kind !== 'ignored') {
      tallied.unexpected += 1
    }
  }
}
