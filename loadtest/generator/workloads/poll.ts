// The polling that Keycast replaces: viewers ask the backend itself, over HTTP, every second. autocannon sends the
// requests; this file only watches the responses that its clients see.
import type { EventEmitter } from 'node:events'
import autocannon from 'autocannon'
import { createStaleness } from '../staleness.ts'
import type { CreateWorkload } from '../workload.ts'

/** autocannon's clients all ask at the same instant. Real viewers do not: they come in so many groups over a second. */
const GROUPS = 10
const SECOND_MS = 1_000
/** HTTP headers and the document's first fields. */
const HEAD_BYTES = 2_048
/** autocannon ends within this time of its last answer, or of being told to. */
const SAMPLE_MS = 100
/** More than any run has: what ends it is the number of requests. */
const DURATION_S = 86_400

export const counts = ['requested', 'answered', 'refusals', 'lost', 'notModified', 'news', 'bytesIn'] as const
export const histograms = ['latency'] as const

/**
 * `polls`: how many each viewer makes; `conditional`: with If-None-Match, so that what has not changed is not sent
 * again.
 */
interface PollSettings {
  origin: string
  paths: string[]
  viewers: number
  polls: number
  changeMs: number
  conditional: boolean
}

export const createWorkload: CreateWorkload<PollSettings, typeof counts, typeof histograms> = ({
  settings,
  tally,
  index,
  processes,
}) => {
  const { origin, paths, viewers, polls, changeMs, conditional } = settings
  const tallied = tally.counts
  const staleness = createStaleness({ changeMs, histogram: tally.histograms.latency })
  const mine = Math.floor(viewers / processes) + (index < viewers % processes ? 1 : 0)
  const groups: autocannon.Instance[] = []
  let watched = index
  let outstanding = 0
  let stopped = false

  const startGroup = (connections: number) => {
    const group = autocannon(
      {
        url: origin,
        connections,
        overallRate: connections,
        maxConnectionRequests: polls,
        duration: DURATION_S,
        sampleInt: SAMPLE_MS,
        setupClient: watch,
      },
      () => {},
    )
    group.on('reqError', error => {
      outstanding -= 1
      tallied.lost += 1
      tally.because(`poll: ${error.message}`)
    })
    groups.push(group)
  }

  function watch(client: autocannon.Client) {
    const seen = staleness.viewer()
    client.setRequests([{ path: paths[watched % paths.length] }])
    watched += processes
    let awaited = true
    let etag = ''
    let asked = ''
    const any = client as unknown as EventEmitter
    any.on('request', () => {
      tallied.requested += 1
      outstanding += 1
    })
    any.on('headers', ({ headers }) => {
      awaited = true
      const at = headers.findIndex((name: string) => /^etag$/i.test(name))
      etag = at === -1 ? '' : headers[at + 1]
    })
    any.on('body', (chunk: Buffer) => {
      if (!awaited) return
      awaited = false
      if (staleness.sawDocument(seen, chunk.toString('latin1', 0, HEAD_BYTES))) tallied.news += 1
    })
    any.on('response', (status, bytes) => {
      outstanding -= 1
      tallied.bytesIn += bytes
      if (status === 304) tallied.notModified += 1
      if (status === 200 || status === 304) tallied.answered += 1
      else {
        tallied.refusals += 1
        tally.because(`poll: ${status}`)
      }
      if (!conditional || etag === '' || etag === asked || stopped) return
      asked = etag
      client.setHeaders({ 'if-none-match': etag })
    })
  }

  for (let group = 0; group < GROUPS; group++) {
    const connections = Math.floor(mine / GROUPS) + (group < mine % GROUPS ? 1 : 0)
    if (connections > 0) setTimeout(() => !stopped && startGroup(connections), (group * SECOND_MS) / GROUPS)
  }

  return {
    outstanding: () => (stopped ? 0 : outstanding),
    stop() {
      stopped = true
      for (const group of groups) group.stop()
    },
    outcome() {
      tallied.lost += outstanding
      return undefined
    },
  }
}
