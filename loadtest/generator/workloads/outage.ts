// Clients that ping at fixed times, and dial again when they are dropped: how long each is without an answer. A ping that
// was due meanwhile, or that had no answer yet, goes out once its client is back, and counts from when it was due.
import type { Client } from '../client.ts'
import type { ClientBehaviour } from '../clients.ts'
import { afterHello } from '../dialects/after-hello.ts'
import { dialects } from '../dialects/index.ts'
import { encodeFrame } from '../frames.ts'
import type { CreateWorkload } from '../workload.ts'

const HEAD_BYTES = 32

export const counts = ['entered', 'requested', 'answered', 'refusals', 'lost', 'back', 'unexpected'] as const
/** `latency`: from the time a ping was due to its pong; `outage`: from the end of a connection to the next pong. */
export const histograms = ['latency', 'outage'] as const

interface OutageSettings {
  dialect: string
  intervalMs: number
  redialMs: number
}

/**
 * `client`: undefined while it is away; `dueUs`: of the pings without an answer, oldest first; `endedUs`: when its
 * connection ended, until it is answered again.
 */
interface Pinger {
  client?: Client
  dueUs: number[]
  endedUs?: number
}

export const createWorkload: CreateWorkload<OutageSettings, typeof counts, typeof histograms> = ({
  settings,
  tally,
  newSchedule,
  nowUs,
}) => {
  const dialect = dialects[settings.dialect]
  const tallied = tally.counts
  const ping = encodeFrame(dialect.ping)
  /** By number. */
  const pingers = new Map<number, Pinger>()
  const schedule = newSchedule<Pinger>(settings.intervalMs, ({ item }, dueUs) => {
    tallied.requested += 1
    item.dueUs.push(dueUs)
    item.client?.send(ping)
  })
  schedule.start()

  return {
    behaviour: afterHello(dialect, { headBytesMax: HEAD_BYTES, redialMs: settings.redialMs, open }, tallied),
    outstanding: () => [...pingers.values()].reduce((sum, { dueUs }) => sum + dueUs.length, 0),
    stop: schedule.stop,
    outcome() {
      for (const { dueUs } of pingers.values()) tallied.lost += dueUs.length
    },
  }

  function open(client: Client, number: number): ClientBehaviour {
    const pinger = pingers.get(number) ?? newPinger(number)
    pinger.client = client
    for (const _ of pinger.dueUs) client.send(ping)
    return {
      onMessage(head) {
        const kind = dialect.kindOf(head)
        if (kind === 'pong') onPong(pinger)
        else if (typeof kind === 'object') client.send(encodeFrame(kind.reply))
        else if (kind !== 'ignored') tallied.unexpected += 1
      },
      onEnd() {
        pinger.client = undefined
        pinger.endedUs ??= nowUs()
      },
    }
  }

  function newPinger(number: number) {
    const pinger: Pinger = { dueUs: [] }
    pingers.set(number, pinger)
    schedule.add(pinger)
    tallied.entered += 1
    return pinger
  }

  function onPong(pinger: Pinger) {
    const dueUs = pinger.dueUs.shift()
    if (dueUs === undefined) {
      tallied.unexpected += 1
      return
    }
    const now = nowUs()
    tallied.answered += 1
    tally.recorders.latency(now - dueUs)
    if (pinger.endedUs === undefined) return
    tallied.back += 1
    tally.recorders.outage(now - pinger.endedUs)
    pinger.endedUs = undefined
  }
}
