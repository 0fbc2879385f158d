// The backbones of values and of rooms over ZeroMQ, as gateways and nodes create them. Everything but the sockets is in
// gateway/ and hub/.
import { isIP } from 'node:net'
import { type Containment, realWorld } from '@keycast/service'
import type { Backbone, BackboneEvents } from '../backbone.ts'
import { createNodeSource, endpointsOf, type NodeAddress, readNodes } from '../gateway/discovery.ts'
import type { Log } from '../gateway/link.ts'
import { createRoomsBackbone, type RoomsBackbone, type RoomsEvents } from '../gateway/rooms/rooms-backbone.ts'
import { createValuesBackbone } from '../gateway/values/values-backbone.ts'
import { createHub } from '../hub/hub.ts'
import type { Hub } from '../hub/node.ts'
import type { Codec, Service } from '../wire/codec.ts'
import { HISTORY_BYTES_MAX, type Rooms, roomsCodec } from '../wire/rooms-codec.ts'
import { type Values, valuesCodec } from '../wire/values-codec.ts'
import { bindZeromq, type HubCurve } from './bind.ts'
import { type LinkCurve, linkSecurity } from './curve.ts'
import { dialZeromq } from './dial.ts'

interface GatewayOptions<Events> {
  /** `host[:requests:answers]`, comma-separated. */
  nodes: string
  events: Events
  containment?: Containment
  log: Log
  /** As the nodes have it; absent: plaintext. */
  curve?: LinkCurve
}

/**
 * The gateway's side.
 *
 * @param messageBytesMax of a message taken from a node: above the largest value there may be
 * @throws {Error} when `nodes` or a key cannot be read, or a node is beyond this host and there is no CURVE
 */
export const createZeromqBackbone = ({
  messageBytesMax,
  ...options
}: GatewayOptions<BackboneEvents> & { messageBytesMax: number }): Backbone =>
  createValuesBackbone(linked('fetcher', options, messageBytesMax))

/** Largest part taken from a journal: a history, and as much again for what says whose each message is. */
const ROOMS_PART_BYTES_MAX = 2 * HISTORY_BYTES_MAX

/**
 * The gateway's side of rooms.
 *
 * @throws {Error} as {@link createZeromqBackbone}
 */
export const createZeromqRooms = (options: GatewayOptions<RoomsEvents>): RoomsBackbone =>
  createRoomsBackbone(linked('journal', options, ROOMS_PART_BYTES_MAX))

/** With links over ZeroMQ to the nodes of a service. */
function linked<Events>(
  service: 'fetcher' | 'journal',
  { nodes, curve, ...options }: GatewayOptions<Events>,
  messageBytesMax: number,
) {
  const security = curve && linkSecurity(curve)
  const { every } = realWorld
  const nodeSource = createNodeSource({ nodes: nodesToLink(readNodes(nodes, service), curve), every, log: options.log })
  const dialOf = (name: string) => dialZeromq(endpointsOf(name), { messageBytesMax, security })
  return { nodeSource, dialOf, ...realWorld, ...options }
}

/** Where a node binds. Port 0 takes a free one; `curve` encrypts, and admits only the clients it names. */
interface NodeOptions {
  host: string
  requestsPort: number
  answersPort: number
  log: Log
  containment?: Containment
  curve?: HubCurve
  /** Monotonic, in milliseconds. */
  now?: () => number
}

interface Ports {
  ports: () => { requestsPort: number; answersPort: number }
}

/**
 * The fetcher's side.
 *
 * @throws {Error} when the host is not a loopback address and there is no CURVE: every peer would be served
 */
export function createZeromqHub(options: NodeOptions): Hub<Values> & Ports {
  return hubOver(options, valuesCodec)
}

/**
 * The journal's side.
 *
 * @throws {Error} as {@link createZeromqHub}
 */
export function createZeromqRoomsHub(options: NodeOptions): Hub<Rooms> & Ports {
  return hubOver(options, roomsCodec)
}

function hubOver<S extends Service>(
  { host, requestsPort, answersPort, containment, log, curve, now = realWorld.now }: NodeOptions,
  codec: Codec<S>,
): Hub<S> & Ports {
  if (!curve && !isLoopback(host)) {
    throw new Error(`without CURVE the backbone binds loopback addresses only: ${host} is none`)
  }
  let ports = { requestsPort, answersPort }
  const bind = bindZeromq(
    { requests: endpoint(host, requestsPort), answers: endpoint(host, answersPort) },
    {
      log,
      now,
      curve,
      bound: bound => {
        ports = bound
      },
    },
  )
  const hub = createHub({ codec, bind, containment, ...realWorld, log })
  return { ...hub, ports: () => ports }
}

const endpoint = (host: string, port: number) => `tcp://${host}:${port === 0 ? '*' : port}`

function nodesToLink(nodes: NodeAddress[], curve: LinkCurve | undefined) {
  const [host] = curve ? [] : hostsBeyondLoopback(nodes)
  if (host !== undefined) throw new Error(`without CURVE the backbone links loopback addresses only: ${host} is none`)
  return nodes
}

/**
 * The hosts that must not be linked to without CURVE. Names are among them: whoever answers for a name would be sent
 * viewers' tokens, and decide what viewers see.
 */
export const hostsBeyondLoopback = (nodes: NodeAddress[]) => nodes.flatMap(({ host }) => (isLoopback(host) ? [] : host))

/** @returns whether the backbone may be plain there: a name is no address */
export const isLoopback = (host: string): boolean => isIP(host) === 4 && host.startsWith('127.')
