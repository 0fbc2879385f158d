// A network inside one process, for unit tests: a stand-in for ZeroMQ's sockets, on a clock that the test turns. It can
// lose messages on purpose.
import { randomBytes } from 'node:crypto'
import type { Every, World } from '@keycast/service'
import type { Dial } from '../gateway/link.ts'
import type { Bind, FromGateways } from '../hub/hub.ts'

/** Two that answer each other without end would never settle. */
const SETTLE_TURNS_MAX = 20

const IDLE_TURNS = 2

interface Timer {
  ms: number
  nextAt: number
  tick: () => void
}

/** The one that is due first, and of several the one that was set first. */
function nextOf(timers: Iterable<Timer>) {
  let next: Timer | undefined
  for (const timer of timers) if (!next || timer.nextAt < next.nextAt) next = timer
  return next
}

/** Links and hubs join it with `dialOf` and `bindOf`; `settle` lets everything under way arrive. */
export function createMemoryNetwork() {
  let at = 0
  const timers = new Set<Timer>()
  /** `waiting`: requests to be read, of each socket; a node reads one of each in turn. */
  interface Bound {
    from: FromGateways
    sockets: Map<string, (parts: Buffer[]) => void>
    waiting: Map<string, Buffer[][]>
    stopReading: () => void
  }
  const bound = new Map<string, Bound>()
  /** The kinds of messages that get lost: `node requests`, `node beats` or `node answers`. */
  const swallowed = new Set<string>()
  /** Whether one more message gets lost. */
  const chance: { loses: (what: string) => boolean } = { loses: () => false }
  /** Nodes whose receipts are held back: their gateways read nothing. */
  const unread = new Set<string>()
  /** Nodes whose answers arrive as bytes that cannot be read; their beats arrive whole. */
  const damaged = new Set<string>()
  /** The time that a node takes to read each request; 0 if it is not listed. */
  const readMs = new Map<string, number>()
  /** The largest part of a request so far. */
  let requestBytes = 0
  let socketCount = 0

  const now = () => at

  const isLost = (what: string) => swallowed.has(what) || chance.loses(what)

  const every: Every = (ms, tick) => {
    const timer = { ms, nextAt: at + ms, tick }
    timers.add(timer)
    return () => timers.delete(timer)
  }

  const after = (ms: number, run: () => void) => {
    const stop = every(ms, () => {
      stop()
      run()
    })
    return stop
  }

  /** Turns of the event loop that the network has something for. */
  let underWay = 0

  const turn = (run: () => void) => {
    underWay += 1
    setImmediate(() => {
      underWay -= 1
      run()
    })
  }

  /** Until nothing is under way, and what waits for a promise alone had its turn. */
  async function settle() {
    for (let turns = 0, idle = 0; turns < SETTLE_TURNS_MAX && idle < IDLE_TURNS; turns++) {
      await new Promise(resolve => setImmediate(resolve))
      idle = underWay === 0 ? idle + 1 : 0
    }
  }

  /** Lets time pass, with every timer on time. */
  async function pass(ms: number) {
    const end = at + ms
    while (true) {
      const due = nextOf(timers)
      if (!due || due.nextAt > end) break
      at = due.nextAt
      due.nextAt += due.ms
      due.tick()
      await settle()
    }
    at = end
    await settle()
  }

  /** Lets time pass while nothing runs, as in a stopped process: afterwards every timer comes late, once. */
  async function freeze(ms: number) {
    at += ms
    for (const timer of timers) {
      timer.nextAt = at + timer.ms
      timer.tick()
    }
    await settle()
  }

  /** @param parts of a request */
  function arrive(node: string, socket: string, parts: Buffer[]) {
    const hub = bound.get(node)
    const ms = readMs.get(node)
    if (!hub || !ms) return hub?.from.request(parts)
    if (hub.waiting.size === 0) hub.stopReading = every(ms, () => readNext(hub))
    const own = hub.waiting.get(socket)
    if (own) own.push(parts)
    else hub.waiting.set(socket, [parts])
  }

  function readNext(hub: Bound) {
    const [[socket, own]] = hub.waiting
    const parts = own.shift() as Buffer[]
    hub.waiting.delete(socket)
    if (own.length > 0) hub.waiting.set(socket, own)
    if (hub.waiting.size === 0) hub.stopReading()
    hub.from.request(parts)
  }

  const bindOf =
    (node: string): Bind =>
    async from => {
      const sockets = new Map<string, (parts: Buffer[]) => void>()
      bound.set(node, { from, sockets, waiting: new Map(), stopReading() {} })
      return {
        hasReadAll: async () => !bound.get(node)?.waiting.size,
        send(routingId, parts, failed) {
          const deliver = sockets.get(routingId.toString())
          if (!deliver) return queueMicrotask(failed)
          if (isLost(`${node} answers`)) return
          const isDamaged = damaged.has(node) && JSON.parse(parts[0].toString()).type === 'answers'
          turn(() => deliver(isDamaged ? [parts[0].subarray(1), ...parts.slice(1)] : parts))
        },
        async close() {
          if (bound.get(node)?.sockets === sockets) bound.delete(node)
        },
      }
    }

  const dialOf =
    (node: string): Dial =>
    message => {
      const routingId = Buffer.from(`socket-${++socketCount}`)
      let open = true
      const queued: Buffer[][] = []
      const deliver = (parts: Buffer[]) => {
        if (!open) return
        if (unread.has(node)) return void queued.push(parts)
        for (const each of [...queued.splice(0), parts]) message(each)
      }
      return {
        async request(parts) {
          requestBytes = Math.max(requestBytes, ...parts.map(part => part.length))
          if (!isLost(`${node} requests`)) turn(() => arrive(node, routingId.toString(), parts))
          return true
        },
        beat(part) {
          if (isLost(`${node} beats`)) return
          turn(() => {
            const hub = bound.get(node)
            hub?.sockets.set(routingId.toString(), deliver)
            hub?.from.beat(part, routingId)
          })
        },
        close() {
          open = false
          turn(() => bound.get(node)?.sockets.delete(routingId.toString()))
        },
      }
    }

  const world: World = {
    now,
    hostNow: now,
    wallNow: now,
    every,
    after,
    turn,
    random: Math.random,
    randomBytes: size => randomBytes(size),
  }
  return {
    ...world,
    world,
    bindOf,
    dialOf,
    pass,
    freeze,
    settle,
    swallowed,
    unread,
    damaged,
    readMs,
    chance,
    requestBytes: () => requestBytes,
  }
}
