// Viewers that wait for changes over plain HTTP, as docs/deploy/cdn.md has it: each asks again with what it was answered.
// The scenario says each change before it makes it, so that a viewer knows what must come, and when it was made.
import { connect, type Socket } from 'node:net'
import type { CreateWorkload } from '../workload.ts'

/** Opened together: with more a listener's queue would overflow, and the kernel try again only after a second. */
const GROUP = 250
const GROUP_MS = 50
/** A viewer that was answered with an error, or dropped, asks again after this time and at most as much again. */
const PAUSE_MS = 1_000
const HEAD_END = '\r\n\r\n'

export const counts = [
  'connected',
  'requested',
  'received',
  'unchanged',
  'skipped',
  'wentBack',
  'refusals',
  'dropped',
] as const
/** From a change at the backend to the last byte at a viewer. */
export const histograms = ['latency'] as const

interface WaitSettings {
  host: string
  port: number
  viewers: number
  /** Where all begin: by key, its version and cursor. Viewers share them evenly. */
  starts: Record<string, { version: string; cursor: string; revision: number }>
}

/** A key has another revision from then on. */
export interface Change {
  key: string
  revision: number
  atUs: number
}

/** From now on what comes at edges is listed, or no longer. */
export interface Listing {
  listed: boolean
}

/** `edges`: those that were listed, with their keys; `missing`: changes that viewers had not seen when it ended. */
export interface WaitOutcome {
  edges: string[]
  missing: number
}

interface Viewer {
  key: string
  version: string
  cursor: string
  /** In the key's changes. */
  place: number
  socket: Socket
  text: string
}

export const createWorkload: CreateWorkload<WaitSettings, typeof counts, typeof histograms> = ({
  settings: { host, port, viewers: count, starts },
  tally,
  nowUs,
  index,
  processes,
}) => {
  const tallied = tally.counts
  const keys = Object.keys(starts)
  /** By key, what it has been; the first is where all begin. */
  const changes = new Map(keys.map(key => [key, [{ revision: starts[key].revision, atUs: 0 }]]))
  const viewers: Viewer[] = []
  const edges = new Set<string>()
  let isListed = false
  let isStopped = false
  let next = index

  function startGroup() {
    for (let opened = 0; opened < GROUP && next < count; opened++, next += processes) {
      const key = keys[next % keys.length]
      const { version, cursor } = starts[key]
      const viewer: Viewer = { key, version, cursor, place: 0, socket: undefined as unknown as Socket, text: '' }
      viewers.push(viewer)
      dial(viewer)
    }
    if (next >= count) clearInterval(starting)
  }
  const starting = setInterval(startGroup, GROUP_MS)

  function dial(viewer: Viewer) {
    viewer.text = ''
    viewer.socket = connect({ host, port, noDelay: true })
    viewer.socket.setEncoding('latin1')
    viewer.socket.once('connect', () => {
      tallied.connected += 1
      ask(viewer)
    })
    viewer.socket.on('data', (chunk: string) => {
      viewer.text += chunk
      read(viewer)
    })
    viewer.socket.on('error', error => tally.because(`connection: ${(error as NodeJS.ErrnoException).code}`))
    viewer.socket.once('close', () => {
      if (isStopped) return
      tallied.dropped += 1
      setTimeout(() => dial(viewer), pauseMs())
    })
  }

  function ask({ socket, key, version, cursor }: Viewer) {
    if (isStopped || socket.destroyed) return
    tallied.requested += 1
    socket.write(`GET /v1/wait/${key}?after=${version}&cursor=${cursor} HTTP/1.1\r\nhost: ${host}\r\n\r\n`)
  }

  /** One answer at a time: nothing is asked before it came. */
  function read(viewer: Viewer) {
    const { text } = viewer
    const end = text.indexOf(HEAD_END)
    if (end === -1) return
    const head = text.slice(0, end)
    const status = Number(head.slice(9, 12))
    const length = status === 204 ? 0 : Number(headerOf(head, 'content-length'))
    const body = text.slice(end + HEAD_END.length)
    if (body.length < length) return
    viewer.text = ''
    if (status === 200) {
      viewer.version = headerOf(head, 'etag').replace(/^(?:W\/)?"|"$/g, '')
      see(viewer, Number(/"revision":(\d+)/.exec(body)?.[1]))
    } else if (status === 204) {
      tallied.unchanged += 1
    } else {
      tallied.refusals += 1
      tally.because(`request: ${status}`)
      setTimeout(() => ask(viewer), pauseMs())
      return
    }
    viewer.cursor = headerOf(head, 'keycast-cursor')
    if (status === 204 && isListed) edges.add(`${viewer.key} ${viewer.cursor}`)
    ask(viewer)
  }

  /** What comes must be one of the changes that the viewer has not seen. */
  function see(viewer: Viewer, revision: number) {
    const past = changes.get(viewer.key) as { revision: number; atUs: number }[]
    const place = past.findIndex((change, at) => at > viewer.place && change.revision === revision)
    if (place === -1) {
      tallied.wentBack += 1
      return
    }
    tallied.received += 1
    tallied.skipped += place - viewer.place - 1
    viewer.place = place
    tally.recorders.latency(nowUs() - past[place].atUs)
  }

  return {
    tell(message: Change | Listing) {
      if ('listed' in message) isListed = message.listed
      else changes.get(message.key)?.push(message)
    },
    stop() {
      isStopped = true
      clearInterval(starting)
      for (const { socket } of viewers) socket.destroy()
    },
    outcome: (): WaitOutcome => ({
      edges: [...edges],
      missing: viewers.reduce((sum, { key, place }) => sum + (changes.get(key)?.length ?? 0) - 1 - place, 0),
    }),
  }
}

const pauseMs = () => PAUSE_MS * (1 + Math.random())

/** A header's value, from a head of latin1 text. */
function headerOf(head: string, name: string): string {
  return new RegExp(`\r\n${name}: *([^\r]*)`, 'i').exec(head)?.[1] ?? ''
}
