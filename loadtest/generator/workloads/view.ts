// Viewers of documents: each subscribes to one and is sent its changes, whole or as differences.
import { codeIn } from '../dialects/fields.ts'
import { encodeFrame } from '../frames.ts'
import { createStaleness } from '../staleness.ts'
import type { CreateWorkload } from '../workload.ts'

/** The revision stands among a document's first fields. */
const HEAD_BYTES = 512

export const counts = [
  'requested',
  'answered',
  'refusals',
  'lost',
  'values',
  'deltas',
  'currents',
  'stale',
  'news',
  'unexpected',
] as const
export const histograms = ['latency'] as const

interface ViewSettings {
  keys: string[]
  changeMs: number
}

export const createWorkload: CreateWorkload<ViewSettings, typeof counts, typeof histograms> = ({
  settings: { keys, changeMs },
  tally,
}) => {
  const tallied = tally.counts
  const staleness = createStaleness({ changeMs, histogram: tally.histograms.latency })
  let outstanding = 0

  return {
    behaviour: {
      headBytesMax: HEAD_BYTES,
      open(client, number) {
        const request = JSON.stringify({ type: 'subscribe', id: 1, keys: [keys[number % keys.length]] })
        const seen = staleness.viewer()
        let asked = false
        let answered = false

        return {
          onMessage(head) {
            if (head.startsWith('{"type":"value"')) {
              tallied.values += 1
              if (!answered) {
                answered = true
                outstanding -= 1
                tallied.answered += 1
              }
              if (staleness.sawDocument(seen, head)) tallied.news += 1
            } else if (head.startsWith('{"type":"delta"')) {
              tallied.deltas += 1
              if (staleness.sawDifference(seen)) tallied.news += 1
            } else if (head.startsWith('{"type":"welcome"')) {
              asked = true
              outstanding += 1
              tallied.requested += 1
              client.send(encodeFrame(request))
            } else if (head.startsWith('{"type":"current"')) {
              tallied.currents += 1
            } else if (head.startsWith('{"type":"stale"')) {
              tallied.stale += 1
            } else if (head.startsWith('{"type":"error"')) {
              tally.because(`error: ${codeIn(head)}`)
              if (answered || head.includes('"retryAfterMs"')) return
              answered = true
              outstanding -= 1
              tallied.refusals += 1
            } else if (!head.startsWith('{"type":"subscribed"') && !head.startsWith('{"type":"closing"')) {
              tallied.unexpected += 1
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
  }
}
