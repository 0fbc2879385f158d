// All clients ask for keys nobody asked for before, at the same instant, and wait for the last value.
import type { Client } from '../client.ts'
import { codeIn } from '../dialects/fields.ts'
import { encodeFrame } from '../frames.ts'
import { record } from '../histogram.ts'
import type { CreateWorkload } from '../workload.ts'

const HEAD_BYTES = 256

export const counts = ['requested', 'answered', 'refusals', 'lost', 'unexpected', 'bodyBytes'] as const
export const histograms = ['latency'] as const

interface BurstSettings {
  sessions: number
}

/** One round: session n asks for every `sessions`-th of the keys, from the n-th on. */
interface Round {
  round: number
  atUs: number
  keys: string[]
}

/** Of this process; `lastUs`: from the instant all asked until the last answer came. */
export interface RoundOutcome {
  round: number
  answered: number
  lastUs: number
}

export const createWorkload: CreateWorkload<BurstSettings, typeof counts, typeof histograms> = ({
  settings: { sessions },
  tally,
  onLate,
  nowUs,
}) => {
  const tallied = tally.counts
  const members: { client: Client; number: number }[] = []
  /** Keys asked for and not yet answered. */
  const waiting = new Set<string>()
  const rounds: RoundOutcome[] = []
  /** Keys of the round before. */
  let watched: { client: Client; keys: string[] }[] = []
  let atUs = 0

  return {
    behaviour: {
      headBytesMax: HEAD_BYTES,
      open(client, number) {
        const member = { client, number }
        members.push(member)
        return {
          onMessage(head, bytes) {
            const value = head.startsWith('{"type":"value"')
            if (!value && !head.startsWith('{"type":"error"')) return
            const key = /"key":"([^"]+)"/.exec(head)?.[1]
            if (key === undefined || !waiting.delete(key)) {
              tallied.unexpected += 1
              return
            }
            const tookUs = nowUs() - atUs
            const round = rounds[rounds.length - 1]
            round.lastUs = tookUs
            if (value) {
              round.answered += 1
              tallied.answered += 1
              tallied.bodyBytes += bytes
              record(tally.histograms.latency, tookUs)
            } else {
              tallied.refusals += 1
              tally.because(`error: ${codeIn(head)}`)
            }
          },
          onEnd: () => void members.splice(members.indexOf(member), 1),
        }
      },
    },
    outstanding: () => waiting.size,

    tell(message: Round) {
      tallied.lost += waiting.size
      waiting.clear()
      // Keys of the round before are let go of: a session may only watch so many.
      for (const { client, keys } of watched) {
        if (keys.length > 0) client.send(encodeFrame(JSON.stringify({ type: 'unsubscribe', keys })))
      }
      const asks = members.map(({ client, number }) => {
        const keys = message.keys.filter((_, at) => at % sessions === number)
        return { client, keys, frame: encodeFrame(JSON.stringify({ type: 'subscribe', id: message.round, keys })) }
      })
      watched = asks
      atUs = message.atUs
      setTimeout(
        () => {
          const lateUs = nowUs() - atUs
          let asked = 0
          for (const { client, keys, frame } of asks) {
            if (keys.length === 0) continue
            for (const key of keys) waiting.add(key)
            asked += keys.length
            client.send(frame)
          }
          tallied.requested += asked
          rounds.push({ round: message.round, answered: 0, lastUs: 0 })
          onLate(lateUs, asked)
        },
        (message.atUs - nowUs()) / 1_000,
      )
    },

    outcome(): RoundOutcome[] {
      tallied.lost += waiting.size
      waiting.clear()
      return rounds
    },
  }
}
