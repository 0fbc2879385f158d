// The backbones of values and of rooms over ZeroMQ, as gateways and nodes create them. Everything but the sockets is in
// gateway/ and hub/.
import { isIP } from 'node:net'
import { type Containment, realWorld } from '@keycast/service'
import type { Backbone, BackboneEvents } from '../backbone.ts'
import { createNodeSource, endpointsOf, type NodeAddress, readNodes } from '../gateway/discovery.ts'
import type { Log } from '../gateway/link.ts'
import { createRoomsBackbone, type RoomsBackbone, type RoomsEvents } from '../gateway/rooms/rooms-backbone.ts'
import { createValuesBackbone } from '../gateway/values/values-backbone.ts'
import { createHub, type Hub } from '../hub/hub.ts'
import type { Codec, Service } from '../wire/codec.ts'
import { HISTORY_BYTES_MAX, type Rooms, roomsCodec } from '../wire/rooms-codec.ts'
import { type Values, valuesCodec } from '../wire/values-codec.ts'
import { bindZeromq, type HubCurve } from './bind.ts'
import { type LinkCurve, linkSecurity } from './curve.ts'
import { dialZeromq } from './dial.ts'

interface ZeromqBackboneOptions {
  /** `host[:requests:answers]`, comma-separated. */
  nodes: string
  /** Largest message taken from a node: above the largest value there may be. */
  messageBytesMax: number
  events: BackboneEvents
  containment?: Containment
  log: Log
  /** As the nodes have it; absent: plaintext. */
  curve?: LinkCurve
}

/**
 * The gateway's side.
 *
 * @throws {Error} when `nodes` or a key cannot be read, or a node is beyond this host and there is no CURVE
 */
export function createZeromqBackbone({
  nodes,
  messageBytesMax,
  events,
  containment,
  log,
  curve,
}: ZeromqBackboneOptions): Backbone {
  const security = curve && linkSecurity(curve)
  return createValuesBackbone({
    nodeSource: createNodeSource({ nodes: nodesToLink(readNodes(nodes), curve), every: realWorld.every, log }),
    dialOf: name => dialZeromq(endpointsOf(name), { messageBytesMax, security }),
    events,
    containment,
    ...realWorld,
    log,
  })
}

/** Largest part taken from a journal: a history, and as much again for what says whose each message is. */
const ROOMS_PART_BYTES_MAX = 2 * HISTORY_BYTES_MAX

interface ZeromqRoomsOptions {
  /** `host[:publications:deliveries]` of the journal, comma-separated. */
  nodes: string
  events: RoomsEvents
  containment?: Containment
  log: Log
  /** As the nodes have it; absent: plaintext. */
  curve?: LinkCurve
}

/**
 * The gateway's side of rooms.
 *
 * @throws {Error} when `nodes` or a key cannot be read, or a node is beyond this host and there is no CURVE
 */
export function createZeromqRooms({ nodes, events, containment, log, curve }: ZeromqRoomsOptions): RoomsBackbone {
  const security = curve && linkSecurity(curve)
  return createRoomsBackbone({
    nodeSource: createNodeSource({
      nodes: nodesToLink(readNodes(nodes, 'journal'), curve),
      every: realWorld.every,
      log,
    }),
    dialOf: name => dialZeromq(endpointsOf(name), { messageBytesMax: ROOMS_PART_BYTES_MAX, security }),
    events,
    containment,
    ...realWorld,
    log,
  })
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
