// Clients that ping at fixed times, and dial again when they are dropped: how long each is without an answer. A ping that
// was due meanwhile, or that had no answer yet, goes out once its client is back, and counts from when it was due.
import { afterHello } from '../dialects/after-hello.ts'
import { dialects } from '../dialects/index.ts'
import { encodeFrame } from '../frames.ts'
import { createSchedule } from '../schedule.ts'

const HEAD_BYTES = 32

export const counts = /** @type {const} */ ([
  'entered',
  'requested',
  'answered',
  'refusals',
  'lost',
  'back',
  'unexpected',
])
/** `latency`: from the time a ping was due to its pong; `outage`: from the end of a connection to the next pong. */
export const histograms = /** @type {const} */ (['latency', 'outage'])

/**
 * @typedef {{ dialect: string, intervalMs: number, redialMs: number }} OutageSettings
 *
 * `client`: undefined while it is away; `dueUs`: of the pings without an answer, oldest first; `endedUs`: when its
 * connection ended, until it is answered again.
 * @typedef {{ client?: import('../client.ts').Client, dueUs: number[], endedUs?: number }} Pinger
 */

/** @type {import('../workload.ts').CreateWorkload<OutageSettings, typeof counts[number], typeof histograms[number]>} */
export function createWorkload({ settings, tally, usage, nowUs, index, processes }) {
  const dialect = dialects[settings.dialect]
  const tallied = tally.counts
  const ping = encodeFrame(dialect.ping)
  /** By number. @type {Map<number, Pinger>} */
  const pingers = new Map()
  /** @type {import('../schedule.ts').Schedule<Pinger>} */
  const schedule = createSchedule({
    intervalMs: settings.intervalMs,
    phase: index / processes,
    nowUs,
    onLate: usage.onLate,
    onDue({ item }, dueUs) {
      tallied.requested += 1
      item.dueUs.push(dueUs)
      item.client?.send(ping)
    },
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

  /** @type {import('../clients.ts').Behaviour['open']} */
  function open(client, number) {
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

  /** @param {number} number */
  function newPinger(number) {
    /** @type {Pinger} */
    const pinger = { dueUs: [] }
    pingers.set(number, pinger)
    schedule.add(pinger)
    tallied.entered += 1
    return pinger
  }

  /** @param {Pinger} pinger */
  function onPong(pinger) {
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
