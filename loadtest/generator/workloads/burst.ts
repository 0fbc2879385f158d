// All clients ask for keys nobody asked for before, at the same instant, and wait for the last value.
import { encodeFrame } from '../frames.ts'
import { record } from '../histogram.ts'

const HEAD_BYTES = 256

export const counts = /** @type {const} */ (['requested', 'answered', 'refusals', 'lost', 'unexpected', 'bodyBytes'])
export const histograms = /** @type {const} */ (['latency'])

/**
 * @typedef {{ sessions: number }} BurstSettings
 *
 * One round: session n asks for every `sessions`-th of the keys, from the n-th on.
 * @typedef {{ round: number, atUs: number, keys: string[] }} Round
 * @typedef {{ round: number, keys: number, answered: number, refused: number, lastUs: number }} RoundOutcome of this
 *   process; `lastUs`: from the instant all asked until the last answer came
 */

/** @type {import('../workload.ts').CreateWorkload<BurstSettings, typeof counts[number], typeof histograms[number]>} */
export function createWorkload({ settings: { sessions }, tally, usage, nowUs }) {
  const tallied = tally.counts
  /** @type {{ client: import('../client.ts').Client, number: number }[]} */
  const members = []
  /** Keys asked for and not yet answered. @type {Set<string>} */
  const waiting = new Set()
  /** @type {RoundOutcome[]} */
  const rounds = []
  /** Keys of the round before. @type {{ client: import('../client.ts').Client, keys: string[] }[]} */
  let watched = []
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
              round.refused += 1
              tallied.refusals += 1
              tally.because(`error: ${/"code":"([^"]*)"/.exec(head)?.[1]}`)
            }
          },
          onEnd: () => void members.splice(members.indexOf(member), 1),
        }
      },
    },
    outstanding: () => waiting.size,

    tell(/** @type {Round} */ message) {
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
          rounds.push({ round: message.round, keys: asked, answered: 0, refused: 0, lastUs: 0 })
          usage.onLate(lateUs, asked)
        },
        (message.atUs - nowUs()) / 1_000,
      )
    },

    stop() {},
    /** @returns {RoundOutcome[]} */
    outcome() {
      tallied.lost += waiting.size
      waiting.clear()
      return rounds
    },
  }
}
