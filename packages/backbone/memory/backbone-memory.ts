// The backbone of values inside one process, for unit tests: the same links and hub as over ZeroMQ, on the memory
// network.
import { createValuesBackbone } from '../gateway/values/values-backbone.ts'
import { createValuesHub } from '../hub/values-hub.ts'
import { createMemoryNetwork } from './network.ts'

/** @type {import('../gateway/link.ts').Log} */
const silent = { debug() {}, info() {}, warn() {}, error() {} }

/**
 * A network of nodes and gateways.
 *
 * @param {{ log?: import('../gateway/link.ts').Log }} [options]
 */
export function createMemoryBackbone({ log = silent } = {}) {
  const network = createMemoryNetwork()
  const { now, every, bindOf, dialOf, settle } = network
  /** The listeners to the name server's lists of nodes. @type {((names: string[]) => void)[]} */
  const listeners = []

  /** @param {string} node @returns {import('../backbone.ts').Hub} */
  const hub = node => createValuesHub({ bind: bindOf(node), now, every, log })

  /** @param {string[]} nodes @param {import('../backbone.ts').BackboneEvents} events */
  function backbone(nodes, events) {
    return createValuesBackbone({
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

  return { ...network, hub, backbone, list }
}
