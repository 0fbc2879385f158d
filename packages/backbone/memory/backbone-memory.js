// The backbone inside one process, for unit tests: the same links and hub as over ZeroMQ, joined by arrays instead of
// sockets, on a clock the test turns. It can lose messages on purpose.
import { createBackboneOverLinks } from '../gateway/router.js'
import { bytesOf, createHub } from '../hub/hub.js'
import { decodeBeat, decodeFromHub, decodeRequest } from '../wire/envelope.js'

/** @type {import('../gateway/link.js').Log} */
const silent = { debug() {}, info() {}, warn() {}, error() {} }

/**
 * A network of nodes and gateways. `settle` lets everything under way arrive.
 *
 * @param {{ log?: import('../gateway/link.js').Log }} [options]
 */
export function createMemoryBackbone({ log = silent } = {}) {
  let at = 0
  /** @type {Set<{ ms: number, nextAt: number, tick: () => void }>} */
  const timers = new Set()
  /** @type {Map<string, { from: import('../hub/hub.js').FromGateways, sockets: Map<string, (parts: Buffer[]) => void> }>} */
  const bound = new Map()
  /** What gets lost: `node requests`, `node beats` or `node answers`. @type {Set<string>} */
  const swallowed = new Set()
  /** Nodes whose receipts are held back: their gateways read nothing. @type {Set<string>} */
  const unread = new Set()
  /** What the name server tells gateways of its nodes. @type {((names: string[]) => void)[]} */
  const listeners = []
  let socketCount = 0

  const now = () => at

  /** @type {import('@keycast/service').Every} */
  const every = (ms, tick) => {
    const timer = { ms, nextAt: at + ms, tick }
    timers.add(timer)
    return () => timers.delete(timer)
  }

  async function settle() {
    for (let turn = 0; turn < 20; turn++) await new Promise(resolve => setImmediate(resolve))
  }

  /** Lets time pass, with every timer on time. @param {number} ms */
  async function pass(ms) {
    const end = at + ms
    while (true) {
      const due = [...timers].filter(({ nextAt }) => nextAt <= end).sort((a, b) => a.nextAt - b.nextAt)[0]
      if (!due) break
      at = due.nextAt
      due.nextAt += due.ms
      due.tick()
      await settle()
    }
    at = end
    await settle()
  }

  /** Lets time pass while nothing runs, as for a stopped process: afterwards every timer comes late, once. @param {number} ms */
  async function freeze(ms) {
    at += ms
    for (const timer of timers) {
      timer.nextAt = at + timer.ms
      timer.tick()
    }
    await settle()
  }

  /** @param {string} node @returns {import('../backbone.js').Hub} */
  function hub(node) {
    return createHub({
      now,
      every,
      log,
      bind: async from => {
        /** @type {Map<string, (parts: Buffer[]) => void>} */
        const sockets = new Map()
        bound.set(node, { from, sockets })
        return {
          send(routingId, parts, failed) {
            const deliver = sockets.get(routingId.toString())
            if (!deliver) return queueMicrotask(failed)
            if (swallowed.has(`${node} answers`)) return
            setImmediate(deliver, parts)
          },
          async close() {
            if (bound.get(node)?.sockets === sockets) bound.delete(node)
          },
        }
      },
    })
  }

  /** @param {string} node @returns {import('../gateway/link.js').Dial} */
  const dialOf = node => events => {
    const routingId = Buffer.from(`socket-${++socketCount}`)
    let open = true
    /** @type {Buffer[][]} */
    const held = []
    /** @param {Buffer[]} parts */
    const deliver = parts => {
      if (!open) return
      if (unread.has(node)) return void held.push(parts)
      for (const waiting of held.splice(0)) events.message(decodeFromHub(waiting), bytesOf(waiting))
      events.message(decodeFromHub(parts), bytesOf(parts))
    }
    return {
      async request(part) {
        if (swallowed.has(`${node} requests`)) return
        setImmediate(() => bound.get(node)?.from.request(decodeRequest(part)))
      },
      beat(part) {
        if (swallowed.has(`${node} beats`)) return
        setImmediate(() => {
          const hub = bound.get(node)
          hub?.sockets.set(routingId.toString(), deliver)
          hub?.from.beat(decodeBeat(part), routingId)
        })
      },
      close() {
        open = false
        setImmediate(() => bound.get(node)?.sockets.delete(routingId.toString()))
      },
    }
  }

  /** @param {string[]} nodes @param {import('../backbone.js').BackboneEvents} events */
  function backbone(nodes, events) {
    return createBackboneOverLinks({
      nodeSource: {
        async start(found) {
          listeners.push(found)
          found(nodes)
        },
        stop() {},
      },
      dialOf,
      events,
      now,
      every,
      log,
    })
  }

  /** From now on the name server lists these nodes. @param {string[]} names */
  async function list(names) {
    for (const found of listeners) found(names)
    await settle()
  }

  return { hub, backbone, list, now, pass, freeze, settle, swallowed, unread }
}
