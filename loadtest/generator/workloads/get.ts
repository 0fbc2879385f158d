// Each client asks for its document again and again, at times fixed beforehand.
import type { Client } from '../client.ts'
import type { ClientBehaviour } from '../clients.ts'
import { afterHello } from '../dialects/after-hello.ts'
import { codeIn } from '../dialects/fields.ts'
import { dialects } from '../dialects/index.ts'
import { encodeFrame } from '../frames.ts'
import { record } from '../histogram.ts'
import type { CreateWorkload } from '../workload.ts'

/** Room for type, id, key and version, which every server here writes before the data. */
const HEAD_BYTES = 256
const SAMPLE_MS = 1_000

export const counts = [
  'requested',
  'answered',
  'refusals',
  'lost',
  'unexpected',
  'bodyBytes',
  'checked',
  'invalid',
] as const
export const histograms = ['latency'] as const

interface GetSettings {
  dialect: string
  keys: string[]
  intervalMs: number
}

/** `next`: the id of the next request; `waiting`: ids sent and not yet answered. */
interface Asker {
  client: Client
  key: string
  next: number
  waiting: number[]
}

export const createWorkload: CreateWorkload<GetSettings, typeof counts, typeof histograms> = ({
  settings,
  tally,
  newSchedule,
  nowUs,
}) => {
  const { keys, intervalMs } = settings
  const dialect = dialects[settings.dialect]
  const tallied = tally.counts
  let sampleDue = true
  const sampling = setInterval(() => {
    sampleDue = true
  }, SAMPLE_MS)

  const schedule = newSchedule<Asker>(intervalMs, ({ item }) => {
    const id = item.next
    item.next += 1
    item.waiting.push(id)
    tallied.requested += 1
    item.client.send(encodeFrame(dialect.get(id, item.key)))
  })
  schedule.start()
  const askers = new Set<Asker>()

  return {
    behaviour: afterHello(dialect, { headBytesMax: HEAD_BYTES, wantsWhole: () => sampleDue, open }, tallied),
    outstanding() {
      let sum = 0
      for (const { waiting } of askers) sum += waiting.length
      return sum
    },
    stop() {
      schedule.stop()
      clearInterval(sampling)
    },
  }

  function open(client: Client, number: number): ClientBehaviour {
    const asker: Asker = { client, key: keys[number % keys.length], next: 1, waiting: [] }
    askers.add(asker)
    const entry = schedule.add(asker)

    return {
      onMessage(head, bytes, _, whole) {
        const kind = dialect.kindOf(head)
        if (kind === 'value' || kind === 'answered') {
          const id = settle(asker, head)
          if (id === undefined) return
          tallied.answered += 1
          tallied.bodyBytes += bytes
          record(tally.histograms.latency, nowUs() - (entry.firstUs + (id - 1) * intervalMs * 1_000))
          if (whole !== undefined) check(whole, asker.key)
        } else if (kind === 'refused') {
          if (settle(asker, head) === undefined) return
          tallied.refusals += 1
          tally.because(`error: ${codeIn(head)}`)
        } else if (typeof kind === 'object') client.send(encodeFrame(kind.reply))
        else if (kind !== 'ignored') tallied.unexpected += 1
      },
      onEnd() {
        schedule.remove(entry)
        askers.delete(asker)
        tallied.lost += asker.waiting.length
      },
    }
  }

  /** @returns the request this answers */
  function settle(asker: Asker, head: string): number | undefined {
    const id = dialect.idOf(head)
    const at = asker.waiting.indexOf(id)
    if (at === -1) {
      tallied.unexpected += 1
      return undefined
    }
    asker.waiting.splice(at, 1)
    return id
  }

  /** One answer a second is read in full; the rest only by their length. */
  function check(whole: Buffer, key: string) {
    sampleDue = false
    tallied.checked += 1
    try {
      const message = dialect.valueIn(whole.toString())
      if (message.key !== key || message.data === undefined) throw new Error('not the value asked for')
    } catch (error) {
      tallied.invalid += 1
      tally.because(`invalid: ${(error as Error).message}`)
    }
  }
}
