// The backbone of values inside one process, for unit tests: the same links and hub as over ZeroMQ, on the memory
// network.
import type { BackboneEvents } from '../backbone.ts'
import type { Log } from '../gateway/link.ts'
import { createValuesBackbone } from '../gateway/values/values-backbone.ts'
import { createHub } from '../hub/hub.ts'
import { valuesCodec } from '../wire/values-codec.ts'
import { createMemoryNetwork } from './network.ts'

const silent: Log = { debug() {}, info() {}, warn() {}, error() {} }

/** A network of nodes and gateways. */
export function createMemoryBackbone({ log = silent }: { log?: Log } = {}) {
  const network = createMemoryNetwork()
  const { world, bindOf, dialOf, settle } = network
  /** The listeners to the name server's lists of nodes. */
  const listeners: ((names: string[]) => void)[] = []

  const hub = (node: string) => createHub({ codec: valuesCodec, bind: bindOf(node), ...world, log })

  function backbone(nodes: string[], events: BackboneEvents) {
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
      ...world,
      log,
    })
  }

  /** From now on the name server lists these nodes. */
  async function list(names: string[]) {
    for (const found of listeners) found(names)
    await settle()
  }

  return { ...network, hub, backbone, list }
}
