// Clients that watch many keys, each its share of them, so that every gateway watches all. Counts what they are sent.
import { codeIn } from '../dialects/fields.ts'
import { encodeFrame } from '../frames.ts'
import type { CreateWorkload } from '../workload.ts'

const HEAD_BYTES = 160

/** Keys in one message: well below what a gateway takes, and no turn of it is long for one. */
const KEYS_PER_MESSAGE = 1_000

export const counts = [
  'requested',
  'subscribed',
  'first',
  'values',
  'currents',
  'stale',
  'refusals',
  'unexpected',
  'bodyBytes',
] as const
export const histograms = [] as const

interface WatchSettings {
  keys: number
  perSession: number
  gateways: number
  key: string
}

/**
 * The keys of one client: client n is at gateway n mod `gateways`, and the clients of a gateway share all keys.
 *
 * @param number of the client
 * @returns numbers of its keys, `to` excluded
 */
export function shareOf({ keys, perSession, gateways }: WatchSettings, number: number): { from: number; to: number } {
  const from = Math.min(keys, Math.floor(number / gateways) * perSession)
  return { from, to: Math.min(keys, from + perSession) }
}

/** @returns clients it takes for each gateway to watch every key */
export const clientsFor = ({ keys, perSession, gateways }: WatchSettings): number =>
  Math.ceil(keys / perSession) * gateways

export const createWorkload: CreateWorkload<WatchSettings, typeof counts, typeof histograms> = ({
  settings,
  tally,
}) => {
  const tallied = tally.counts
  let outstanding = 0

  return {
    behaviour: {
      headBytesMax: HEAD_BYTES,
      open(client, number) {
        let { from, to } = shareOf(settings, number)
        let waiting = 0

        function askNext() {
          const until = Math.min(to, from + KEYS_PER_MESSAGE)
          if (from === until) return
          const keys = []
          for (; from < until; from++) keys.push(`${settings.key}${from}`)
          waiting = keys.length
          outstanding += 1
          tallied.requested += keys.length
          client.send(encodeFrame(JSON.stringify({ type: 'subscribe', id: from, keys })))
        }
        /** The next keys are asked for once these came: open loop would only fill queues. */
        function onFirst() {
          tallied.first += 1
          waiting -= 1
          if (waiting > 0) return
          outstanding -= 1
          askNext()
        }

        return {
          onMessage(head, bytes) {
            if (head.startsWith('{"type":"value"')) {
              tallied.values += 1
              tallied.bodyBytes += bytes
              if (waiting > 0) onFirst()
            } else if (head.startsWith('{"type":"welcome"')) askNext()
            else if (head.startsWith('{"type":"subscribed"')) tallied.subscribed += 1
            else if (head.startsWith('{"type":"current"')) tallied.currents += 1
            else if (head.startsWith('{"type":"stale"')) tallied.stale += 1
            else if (head.startsWith('{"type":"error"')) {
              tallied.refusals += 1
              tally.because(`error: ${codeIn(head)}`)
              if (waiting > 0 && !head.includes('"retryAfterMs"')) onFirst()
            } else if (!head.startsWith('{"type":"closing"')) tallied.unexpected += 1
          },
          onEnd() {
            if (waiting > 0) outstanding -= 1
            waiting = 0
          },
        }
      },
    },
    outstanding: () => outstanding,
  }
}
