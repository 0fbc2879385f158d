// Pings and their pongs: how many small messages a second pass. With a window, each client has so many under way and
// sends one for each that comes back; with a rate, they are due at fixed times.
import type { Client } from '../client.ts'
import type { ClientBehaviour } from '../clients.ts'
import { afterHello } from '../dialects/after-hello.ts'
import { dialects } from '../dialects/index.ts'
import { encodeFrame } from '../frames.ts'
import type { Entry } from '../schedule.ts'
import { createWindowRefills } from '../window-refills.ts'
import type { CreateWorkload } from '../workload.ts'

/** Enough of a message to tell a pong from an error. */
const HEAD_BYTES = 32
/** Pings written at once are cut from one buffer made beforehand. */
const BATCH_MAX = 256

export const counts = ['requested', 'answered', 'refusals', 'lost', 'unexpected'] as const
export const histograms = ['latency'] as const

/** `pings`: so many of a client are due at once, each `intervalMs`. */
type PingSettings = { dialect: string } & ({ window: number } | { intervalMs: number; pings: number })

/**
 * `waiting`: pings under way, oldest first, those sent at one time together; `owed`: pings to be sent when the turn
 * ends.
 */
interface Pinger {
  client: Client
  waiting: { atUs: number; pings: number }[]
  owed: number
  entry?: Entry<Pinger>
}

export const createWorkload: CreateWorkload<PingSettings, typeof counts, typeof histograms> = ({
  settings,
  tally,
  newSchedule,
  nowUs,
}) => {
  const tallied = tally.counts
  const dialect = dialects[settings.dialect]
  const batch = Buffer.concat(Array.from({ length: BATCH_MAX }, () => encodeFrame(dialect.ping)))
  const frameBytes = batch.length / BATCH_MAX
  const window = 'window' in settings ? settings.window : 0
  const pingers = new Set<Pinger>()
  let running = false
  let stopped = false

  const send = (pinger: Pinger, pings: number, atUs: number) => {
    for (let left = pings; left > 0; left -= BATCH_MAX) {
      pinger.client.send(batch.subarray(0, Math.min(left, BATCH_MAX) * frameBytes))
    }
    pinger.waiting.push({ atUs, pings })
    tallied.requested += pings
  }
  const owe = createWindowRefills<Pinger>((pinger, pings) => {
    if (!stopped && pingers.has(pinger)) send(pinger, pings, nowUs())
  })

  const schedule =
    'intervalMs' in settings
      ? newSchedule<Pinger>(settings.intervalMs, ({ item }, dueUs) => send(item, settings.pings, dueUs))
      : undefined

  return {
    behaviour: afterHello(dialect, { headBytesMax: HEAD_BYTES, open }, tallied),

    outstanding() {
      let sum = 0
      for (const { waiting } of pingers) for (const { pings } of waiting) sum += pings
      return sum
    },

    /** Clients that are connected begin, and those that connect from now on, each when it is. */
    tell() {
      running = true
      schedule?.start()
      for (const pinger of pingers) begin(pinger)
    },

    stop() {
      stopped = true
      schedule?.stop()
    },
  }

  function open(client: Client): ClientBehaviour {
    const pinger: Pinger = { client, waiting: [], owed: 0 }
    pingers.add(pinger)
    if (running) begin(pinger)
    return {
      onMessage(head) {
        const kind = dialect.kindOf(head)
        if (kind === 'pong') return onPong(pinger)
        if (kind === 'refused') {
          tallied.refusals += 1
          onPong(pinger, true)
        } else if (typeof kind === 'object') client.send(encodeFrame(kind.reply))
        else if (kind !== 'ignored') tallied.unexpected += 1
      },
      onEnd() {
        pingers.delete(pinger)
        if (pinger.entry !== undefined) schedule?.remove(pinger.entry)
        for (const { pings } of pinger.waiting) tallied.lost += pings
      },
    }
  }

  function begin(pinger: Pinger) {
    if (schedule === undefined) send(pinger, window, nowUs())
    else pinger.entry = schedule.add(pinger)
  }

  /** Pongs of a session come in the order of its pings. */
  function onPong(pinger: Pinger, refused = false) {
    const oldest = pinger.waiting[0]
    if (oldest === undefined) {
      tallied.unexpected += 1
      return
    }
    if (!refused) {
      tallied.answered += 1
      tally.recorders.latency(nowUs() - oldest.atUs)
    }
    oldest.pings -= 1
    if (oldest.pings === 0) pinger.waiting.shift()
    if (window > 0 && !stopped) owe(pinger)
  }
}
