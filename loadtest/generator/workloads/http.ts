// Connections that each ask for the same value again as soon as they are answered, over HTTP. autocannon sends the
// requests; this file counts and times the responses that its clients see.
import type { EventEmitter } from 'node:events'
import autocannon from 'autocannon'
import type { CreateWorkload } from '../workload.ts'
import { createPace } from './http-pace.ts'

/** Opened together: with more a listener's queue would overflow, and the kernel try again only after a second. */
const GROUP = 250
const GROUP_MS = 50
/** autocannon ends within this time of being told to. */
const SAMPLE_MS = 100
/** More than any run has. */
const DURATION_S = 86_400
const TIMEOUT_S = 60

export const counts = ['connected', 'requested', 'answered', 'refusals', 'lost', 'bytesIn'] as const
export const histograms = ['latency'] as const

interface HttpSettings {
  origins: string[]
  path: string
  connections: number
}

/** Requests without an answer when it ended. */
export interface HttpOutcome {
  underWay: number
}

export const createWorkload: CreateWorkload<HttpSettings, typeof counts, typeof histograms> = ({
  settings: { origins, path, connections },
  tally,
  index,
  processes,
}) => {
  const tallied = tally.counts
  let left = Math.floor(connections / processes) + (index < connections % processes ? 1 : 0)
  const groups: autocannon.Instance[] = []
  let underWay = 0
  const pace = createPace()

  const startGroup = () => {
    const group = autocannon(
      {
        url: origins[groups.length % origins.length] + path,
        connections: Math.min(left, GROUP),
        duration: DURATION_S,
        sampleInt: SAMPLE_MS,
        timeout: TIMEOUT_S,
        setupClient: watch,
      },
      () => {},
    )
    left -= GROUP
    group.on('reqError', error => {
      underWay -= 1
      tallied.lost += 1
      tally.because(`request: ${error.message}`)
    })
    groups.push(group)
    if (left <= 0) clearInterval(starting)
  }
  const starting = setInterval(startGroup, GROUP_MS)

  function watch(client: autocannon.Client) {
    pace.hold(client)
    let isConnected = false
    const any = client as unknown as EventEmitter
    any.on('request', () => {
      tallied.requested += 1
      underWay += 1
    })
    any.on('response', (status, bytes, ms) => {
      underWay -= 1
      tallied.bytesIn += bytes
      if (!isConnected) tallied.connected += 1
      isConnected = true
      if (status === 200) {
        tallied.answered += 1
        tally.recorders.latency(ms * 1_000)
        return
      }
      tallied.refusals += 1
      tally.because(`request: ${status}`)
    })
  }

  return {
    /** All are connected. */
    tell: pace.release,
    stop() {
      clearInterval(starting)
      for (const group of groups) group.stop()
    },
    outcome: (): HttpOutcome => ({ underWay }),
  }
}
