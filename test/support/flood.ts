#!/usr/bin/env node
// Connections of one address that are never finished, many a second, and a bystander at another address who is to notice
// nothing. For tests, and as a program that measures how many a second a running proxy bears. On loopback alone.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { request as requestPlainly } from 'node:http'
import { request as requestSecurely } from 'node:https'
import { connect, type Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { connect as connectTls } from 'node:tls'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import WebSocket from 'ws'

interface Unfinished {
  port: 'http' | 'https'
  /** What a connection sends before it falls silent. */
  bytes: () => Buffer | Promise<Buffer>
  halfCloses?: boolean
  ends?: boolean
}

const kinds = {
  /** A request whose header never ends. */
  headers: { port: 'http', bytes: () => Buffer.from('GET /ws HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Never: ') },
  /** The start of a TLS handshake that does not go on. */
  tls: { port: 'https', bytes: async () => (await clientHello()).subarray(0, 100) },
  /** A whole ClientHello: the server computes its answer, and waits. */
  hello: { port: 'https', bytes: clientHello },
  /** Nothing at all. */
  silent: { port: 'https', bytes: () => Buffer.alloc(0) },
  /** As headers, and then the client's end of the connection is closed: half-open. */
  closing: {
    port: 'http',
    bytes: () => Buffer.from('GET /ws HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Never: '),
    halfCloses: true,
  },
  /** A whole ClientHello, and the end: as many handshakes a second as the server computes. */
  handshakes: { port: 'https', bytes: clientHello, ends: true },
} satisfies Record<string, Unfinished>

export type Kind = keyof typeof kinds

export interface Ports {
  httpPort: number
  httpsPort: number
}

interface FloodOptions extends Ports {
  kind: Kind
  /** Connections a second. */
  rate: number
  /** The address that they come from. */
  from: string
  /** At most so many at a time: open files are limited. */
  openMax?: number
}

/** Counts since the start, but for `open`. */
export interface FloodCounts {
  opened: number
  /** Ended by the other side. */
  ended: number
  /** Never opened. */
  failed: number
  /** The connections that are open at this time, as far as this side knows. */
  open: number
}

/** Runs in a process of its own: it is busy, and must not delay the bystander. */
export async function startFlood(options: FloodOptions) {
  const child = fork(fileURLToPath(import.meta.url), ['--flood', JSON.stringify(options)], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    execArgv: [],
  })
  let counts: FloodCounts = { opened: 0, ended: 0, failed: 0, open: 0 }
  child.on('message', message => {
    counts = message as FloodCounts
  })
  await once(child, 'message')
  return {
    counts: () => counts,
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return
      child.kill('SIGKILL')
      await once(child, 'exit')
    },
  }
}

const TICK_MS = 20

/** Of the flood's address, first and last. The kernel would search for a free one a millisecond long, among many taken. */
const PORTS = [2_000, 65_000]

async function flood({ kind, rate, from, openMax = 15_000, httpPort, httpsPort }: FloodOptions) {
  const what: Unfinished = kinds[kind]
  const bytes = await what.bytes()
  const port = what.port === 'http' ? httpPort : httpsPort
  const open = new Set<Socket>()
  const counts: FloodCounts = { opened: 0, ended: 0, failed: 0, open: 0 }

  // Floods of one address at the same time begin at ports of their own.
  let localPort = PORTS[0] + Math.floor(Math.random() * (PORTS[1] - PORTS[0]))
  function openOne() {
    localPort = localPort === PORTS[1] ? PORTS[0] : localPort + 1
    const socket = connect({ port, host: '127.0.0.1', localAddress: from, localPort })
    let isOpen = false
    open.add(socket)
    socket.on('connect', () => {
      isOpen = true
      counts.opened++
      socket.write(bytes)
      if (what.halfCloses) socket.end()
    })
    if (what.ends) socket.once('data', () => socket.resetAndDestroy())
    else socket.resume()
    socket.on('error', () => {})
    socket.on('close', () => {
      open.delete(socket)
      if (isOpen) counts.ended++
      else counts.failed++
    })
  }

  const startedAt = performance.now()
  let begun = 0
  setInterval(() => {
    const due = Math.floor(((performance.now() - startedAt) / 1_000) * rate)
    // It does not make up at once for a busy machine's delays: connections that are open must be heard between.
    begun = Math.max(begun, due - Math.ceil((rate * 5 * TICK_MS) / 1_000))
    for (; begun < due && open.size < openMax; begun++) openOne()
  }, TICK_MS)
  setInterval(() => process.send?.({ ...counts, open: open.size }), 100)
  process.on('disconnect', () => process.exit())
}

/** The first flight of a TLS client, as Node writes it. The same bytes serve for any number of connections. */
function clientHello(): Promise<Buffer> {
  return new Promise(resolve => {
    const socket = new Duplex({
      read() {},
      write(chunk) {
        resolve(chunk)
        socket.destroy()
      },
    })
    connectTls({ socket, rejectUnauthorized: false }).on('error', () => {})
  })
}

/** Gives up after this time, which is far beyond what a client would wait. */
const ROUND_MS_MAX = 20_000

export interface Figures {
  rounds: number
  /** What went wrong, by its words. */
  failures: Record<string, number>
  p50: number
  p99: number
  max: number
}

/**
 * A client that comes, reads, publishes, hears its message and leaves, again and again; and one that stays, and publishes
 * all the while.
 *
 * @param origin of a proxy or gateway with rooms `room:*`, as in https://127.0.0.1:8443
 * @param path of what it reads over HTTP
 */
export async function startBystander(origin: string, path = '/v1/values/conversation:1') {
  const rounds: number[] = []
  const publishes: number[] = []
  const failures: Record<string, number> = {}
  let isStopped = false

  const coming = (async () => {
    while (!isStopped) {
      const startedAt = performance.now()
      try {
        const client = await openClient(origin)
        await client.publish()
        await client.leave()
        await read(origin + path)
        rounds.push(performance.now() - startedAt)
      } catch (error) {
        const { message } = error as Error
        failures[message] = (failures[message] ?? 0) + 1
      }
      await pause(50)
    }
  })()

  const first = await openClient(origin)
  const staying = (async () => {
    while (!isStopped) {
      const startedAt = performance.now()
      try {
        await first.publish()
        publishes.push(performance.now() - startedAt)
      } catch (error) {
        failures[`staying: ${(error as Error).message}`] = 1
        return
      }
      await pause(20)
    }
    await first.leave()
  })()

  return {
    rounds: () => rounds.length,
    failures: () => failures,
    figures: (): { comes: Figures; stays: Figures } => ({
      comes: figuresOf(rounds, failures),
      stays: figuresOf(publishes, {}),
    }),
    async stop() {
      isStopped = true
      await Promise.all([coming, staying])
    },
  }
}

function figuresOf(samples: number[], failures: Record<string, number>): Figures {
  const sorted = [...samples].sort((a, b) => a - b)
  const at = (part: number) => Math.round(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0)
  return { rounds: sorted.length, failures, p50: at(0.5), p99: at(0.99), max: at(1) }
}

/** @returns once it is welcome in `room:bystander` */
async function openClient(origin: string) {
  const socket = new WebSocket(`${origin.replace('http', 'ws')}/ws`, {
    rejectUnauthorized: false,
    handshakeTimeout: ROUND_MS_MAX,
  })
  const lost = new Promise<never>((_, reject) => {
    socket.once('close', code => reject(new Error(`closed with ${code}`)))
    socket.on('error', reject)
  })
  lost.catch(() => {})
  let lastId = 0
  const heard = new Map<string, () => void>()
  socket.on('message', data => {
    const message = JSON.parse(String(data))
    if (message.type === 'message') heard.get(message.messageId)?.()
    if (message.type === 'error') heard.get('error')?.()
  })
  /** The message comes back as every reader hears it. */
  const publish = () => {
    const messageId = crypto.randomUUID()
    const came = new Promise<void>((resolve, reject) => {
      heard.set(messageId, resolve)
      heard.set('error', () => reject(new Error('answered with an error')))
    })
    socket.send(JSON.stringify({ type: 'publish', id: ++lastId, key: 'room:bystander', messageId, data: 1 }))
    return timely(Promise.race([came, lost]), 'a message')
  }
  await timely(Promise.race([once(socket, 'open'), lost]), 'a WebSocket')
  socket.send(JSON.stringify({ type: 'subscribe', id: ++lastId, keys: ['room:bystander'] }))
  return {
    publish,
    leave: async () => {
      const closed = once(socket, 'close')
      socket.close()
      await closed
    },
  }
}

async function read(url: string) {
  const options = { rejectUnauthorized: false, agent: false as const, timeout: ROUND_MS_MAX }
  const sent = url.startsWith('https:') ? requestSecurely(url, options) : requestPlainly(url, options)
  sent.on('timeout', () => sent.destroy(new Error('an answer over HTTP did not come')))
  sent.end()
  const [response] = await once(sent, 'response')
  response.resume()
  await once(response, 'end')
  if (response.statusCode !== 200) throw new Error(`over HTTP: ${response.statusCode}`)
}

async function timely<T>(promise: Promise<T>, what: string): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what} did not come`)), ROUND_MS_MAX)
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}

function pause(ms: number) {
  return new Promise(resolve => setTimeout(resolve, ms))
}

const usage = `Usage: node test/support/flood.ts [options]

Measures what a client at 127.0.0.1 notices of a proxy here, while 127.0.0.2 opens connections that it never finishes. For
the proxy of "npm start" and "npx keycast proxy".

  --kind KIND           ${Object.keys(kinds).join(', ')} (headers)
  --rates N,N,…         connections a second, one after another; 0 is the quiet system (0,1000,2000,4000)
  --seconds N           of each (20)
  --http-port PORT      (8000)
  --https-port PORT     (8443)
  --open-max N          connections of the flood at a time (15000)
  --floods N            processes that make the flood, each of this rate (1)`

async function measure() {
  const { values } = parseArgs({
    options: {
      kind: { type: 'string', default: 'headers' },
      rates: { type: 'string', default: '0,1000,2000,4000' },
      seconds: { type: 'string', default: '20' },
      'http-port': { type: 'string', default: '8000' },
      'https-port': { type: 'string', default: '8443' },
      'open-max': { type: 'string', default: '15000' },
      floods: { type: 'string', default: '1' },
      help: { type: 'boolean' },
    },
  })
  if (values.help || !(values.kind in kinds)) return console.log(usage)
  const ports = { httpPort: Number(values['http-port']), httpsPort: Number(values['https-port']) }
  const kind = values.kind as Kind
  const show = ({ rounds, p50, p99, max }: Figures) => `${rounds} times, p50 ${p50}, p99 ${p99}, max ${max} ms`
  for (const rate of values.rates.split(',').map(Number)) {
    const options = { ...ports, kind, rate, from: '127.0.0.2', openMax: Number(values['open-max']) }
    const count = rate > 0 ? Number(values.floods) : 0
    const floods = await Promise.all(Array.from({ length: count }, () => startFlood(options)))
    const bystander = await startBystander(`https://127.0.0.1:${ports.httpsPort}`)
    await pause(Number(values.seconds) * 1_000)
    const { comes, stays } = bystander.figures()
    const flooded = floods.map(({ counts }) => JSON.stringify(counts())).join(' ')
    console.log(`${kind}, ${rate} a second: who comes ${show(comes)}; who stays ${show(stays)}`)
    console.log(`  failures: ${JSON.stringify(comes.failures)}; flood: ${flooded}`)
    await Promise.all(floods.map(({ stop }) => stop()))
    await bystander.stop()
  }
}

if (process.argv[2] === '--flood') await flood(JSON.parse(process.argv[3]))
else if (process.argv[1] === fileURLToPath(import.meta.url)) await measure()
