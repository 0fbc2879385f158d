// Clients that come back: each subscribes to a room after a position, and must be sent every message from there on.
import type { Client } from '../client.ts'
import { codeIn, numberAfter } from '../dialects/fields.ts'
import { keycast } from '../dialects/keycast.ts'
import { encodeFrame } from '../frames.ts'
import { record } from '../histogram.ts'
import type { CreateWorkload } from '../workload.ts'
import type { Positions } from './publish.ts'

const HEAD_BYTES = 256

export const counts = [
  'welcomed',
  'requested',
  'recovered',
  'complete',
  'messages',
  'disorder',
  'refusals',
  'lost',
  'unexpected',
] as const
export const histograms = ['latency'] as const

interface ResumeSettings {
  rooms: string[]
}

/** Told once everybody is connected: each client resumes `behind` messages before the head of its room. */
interface ResumeFrom {
  positions: Positions
  behind: number
}

interface Returner {
  client: Client
  room: string
  nextSeq: number
  headSeq: number
  sentUs: number
  isDone: boolean
}

export const createWorkload: CreateWorkload<ResumeSettings, typeof counts, typeof histograms> = ({
  settings: { rooms },
  tally,
  nowUs,
}) => {
  const tallied = tally.counts
  const returners = new Set<Returner>()

  return {
    behaviour: {
      headBytesMax: HEAD_BYTES,
      open(client, number) {
        const returner: Returner = {
          client,
          room: rooms[number % rooms.length],
          nextSeq: 0,
          headSeq: 0,
          sentUs: 0,
          isDone: true,
        }
        returners.add(returner)
        return {
          onMessage: head => onMessage(returner, head),
          onEnd() {
            returners.delete(returner)
            if (!returner.isDone) tallied.lost += 1
          },
        }
      },
    },
    outstanding() {
      let sum = 0
      for (const { isDone } of returners) if (!isDone) sum += 1
      return sum
    },
    tell({ positions, behind }: ResumeFrom) {
      for (const returner of returners) {
        const { client, room } = returner
        const { epoch, seq } = positions[room]
        const after = { epoch, seq: seq - behind }
        Object.assign(returner, { nextSeq: after.seq + 1, headSeq: seq, sentUs: nowUs(), isDone: false })
        tallied.requested += 1
        client.send(encodeFrame(JSON.stringify({ type: 'subscribe', id: 1, keys: [{ key: room, after }] })))
      }
    },
  }

  function onMessage(returner: Returner, head: string) {
    const kind = keycast.kindOf(head)
    if (kind === 'message') {
      tallied.messages += 1
      const seq = numberAfter(head, '"seq":')
      if (seq !== returner.nextSeq) tallied.disorder += 1
      returner.nextSeq = seq + 1
      if (seq !== returner.headSeq) return
      returner.isDone = true
      tallied.complete += 1
      record(tally.histograms.latency, nowUs() - returner.sentUs)
    } else if (kind === 'entered') {
      // The first one may name no room yet: its position is still asked for.
      if (head.includes('"recovered":true')) tallied.recovered += 1
    } else if (kind === 'refused') {
      tallied.refusals += 1
      tally.because(`error: ${codeIn(head)}`)
    } else if (keycast.onHello(head) === 'ready') tallied.welcomed += 1
    else if (kind !== 'ignored') tallied.unexpected += 1
  }
}
