// Each client connects and is welcomed, and asks for nothing: what a connection costs, and a token that comes with it.
import { record } from '../histogram.ts'
import type { CreateWorkload } from '../workload.ts'

/** Enough of a message to tell a welcome. */
const HEAD_BYTES = 18

export const counts = ['welcomed', 'unexpected'] as const
export const histograms = ['latency'] as const

/** One process's view: when its first client set out, and when its last was welcomed. */
export interface Span {
  firstUs: number
  lastUs: number
}

export const createWorkload: CreateWorkload<object, typeof counts, typeof histograms> = ({ tally, nowUs }) => {
  const span: Span = { firstUs: Number.POSITIVE_INFINITY, lastUs: 0 }
  return {
    behaviour: {
      headBytesMax: HEAD_BYTES,
      open(_, __, dialledUs) {
        return {
          onMessage(head) {
            if (!head.startsWith('{"type":"welcome"')) {
              if (!head.startsWith('{"type":"closing"')) tally.counts.unexpected += 1
              return
            }
            const now = nowUs()
            tally.counts.welcomed += 1
            record(tally.histograms.latency, now - dialledUs)
            span.firstUs = Math.min(span.firstUs, dialledUs)
            span.lastUs = now
          },
          onEnd() {},
        }
      },
    },
    outcome: () => span,
  }
}
