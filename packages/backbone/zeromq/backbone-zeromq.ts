// The backbones of values and of rooms over ZeroMQ, as gateways and nodes create them. Everything but the sockets is in
// gateway/ and hub/.
import { isIP } from 'node:net'
import { everyInterval } from '@keycast/service'
import { createNodeSource, endpointsOf, readNodes } from '../gateway/nodes.ts'
import { createRoomsBackbone } from '../gateway/rooms/rooms-backbone.ts'
import { createValuesBackbone } from '../gateway/values/values-backbone.ts'
import { createHub } from '../hub/hub.ts'
import { createValuesHub } from '../hub/values-hub.ts'
import { HISTORY_BYTES_MAX, roomsCodec } from '../wire/rooms-codec.ts'
import { bindZeromq } from './bind.ts'
import { linkSecurity } from './curve.ts'
import { dialZeromq } from './dial.ts'

const now = () => performance.now()

/**
 * The gateway's side.
 *
 * @param {object} options
 * @param {string} options.nodes `host[:requests:answers]`, comma-separated
 * @param {number} options.messageBytesMax largest message taken from a node: above the largest value there may be
 * @param {import('../backbone.ts').BackboneEvents} options.events
 * @param {Pick<import('@keycast/service').Containment, 'guard' | 'caught'>} [options.containment]
 * @param {import('../gateway/link.ts').Log} options.log
 * @param {import('./curve.ts').LinkCurve} [options.curve] as the nodes have it; absent: plaintext
 * @returns {import('../backbone.ts').Backbone}
 * @throws {Error} when `nodes` or a key cannot be read, or a node is beyond this host and there is no CURVE
 */
export function createZeromqBackbone({ nodes, messageBytesMax, events, containment, log, curve }) {
  const security = curve && linkSecurity(curve)
  return createValuesBackbone({
    nodeSource: createNodeSource({ nodes: nodesToLink(readNodes(nodes), curve), every: everyInterval, log }),
    dialOf: name => dialZeromq(endpointsOf(name), { messageBytesMax, security }),
    events,
    containment,
    now,
    every: everyInterval,
    log,
  })
}

/** Largest part taken from a journal: a history, and as much again for what says whose each message is. */
const ROOMS_PART_BYTES_MAX = 2 * HISTORY_BYTES_MAX

/**
 * The gateway's side of rooms.
 *
 * @param {object} options
 * @param {string} options.nodes `host[:publications:deliveries]` of the journal, comma-separated
 * @param {import('../gateway/rooms/rooms-backbone.ts').RoomsEvents} options.events
 * @param {Pick<import('@keycast/service').Containment, 'guard' | 'caught'>} [options.containment]
 * @param {import('../gateway/link.ts').Log} options.log
 * @param {import('./curve.ts').LinkCurve} [options.curve] as the nodes have it; absent: plaintext
 * @returns {import('../gateway/rooms/rooms-backbone.ts').RoomsBackbone}
 * @throws {Error} when `nodes` or a key cannot be read, or a node is beyond this host and there is no CURVE
 */
export function createZeromqRooms({ nodes, events, containment, log, curve }) {
  const security = curve && linkSecurity(curve)
  return createRoomsBackbone({
    nodeSource: createNodeSource({ nodes: nodesToLink(readNodes(nodes, 'journal'), curve), every: everyInterval, log }),
    dialOf: name => dialZeromq(endpointsOf(name), { messageBytesMax: ROOMS_PART_BYTES_MAX, security }),
    events,
    containment,
    now,
    every: everyInterval,
    log,
  })
}

/**
 * Where a node binds. Port 0 takes a free one; `curve` encrypts, and admits only the clients it names.
 *
 * @typedef {{ host: string, requestsPort: number, answersPort: number, log: import('../gateway/link.ts').Log,
 *   containment?: Pick<import('@keycast/service').Containment, 'guard' | 'caught'>, curve?:
 *   import('./bind.ts').HubCurve }} NodeOptions
 * @typedef {{ ports: () => { requestsPort: number, answersPort: number } }} Ports
 */

/**
 * The fetcher's side.
 *
 * @param {NodeOptions} options
 * @returns {import('../backbone.ts').Hub & Ports}
 * @throws {Error} when the host is not a loopback address and there is no CURVE: every peer would be served
 */
export function createZeromqHub(options) {
  return hubOver(options, createValuesHub)
}

/**
 * The journal's side.
 *
 * @param {NodeOptions} options
 * @returns {import('../hub/hub.ts').Hub<import('../wire/rooms-codec.ts').Rooms> & Ports}
 * @throws {Error} as {@link createZeromqHub}
 */
export function createZeromqRoomsHub(options) {
  return hubOver(options, sockets => createHub({ codec: roomsCodec, ...sockets }))
}

/**
 * @template H
 * @param {NodeOptions} options
 * @param {(sockets: Omit<Parameters<typeof createValuesHub>[0], 'codec'>) => H} create
 * @returns {H & Ports}
 */
function hubOver({ host, requestsPort, answersPort, containment, log, curve }, create) {
  if (!curve && !isLoopback(host)) {
    throw new Error(`without CURVE the backbone binds loopback addresses only: ${host} is none`)
  }
  let ports = { requestsPort, answersPort }
  const bind = bindZeromq(
    { requests: endpoint(host, requestsPort), answers: endpoint(host, answersPort) },
    {
      log,
      curve,
      bound: bound => {
        ports = bound
      },
    },
  )
  const sockets = { bind, containment, now, wallNow: Date.now, every: everyInterval, log }
  return { ...create(sockets), ports: () => ports }
}

/** @param {string} host @param {number} port */
const endpoint = (host, port) => `tcp://${host}:${port === 0 ? '*' : port}`

/**
 * @param {import('../gateway/nodes.ts').NodeAddress[]} nodes
 * @param {import('./curve.ts').LinkCurve | undefined} curve
 */
function nodesToLink(nodes, curve) {
  const [host] = curve ? [] : hostsBeyondLoopback(nodes)
  if (host !== undefined) throw new Error(`without CURVE the backbone links loopback addresses only: ${host} is none`)
  return nodes
}

/**
 * The hosts that must not be linked to without CURVE. Names are among them: whoever answers for a name would be sent
 * viewers' tokens, and decide what viewers see.
 *
 * @param {import('../gateway/nodes.ts').NodeAddress[]} nodes
 */
export const hostsBeyondLoopback = nodes => nodes.flatMap(({ host }) => (isLoopback(host) ? [] : host))

/** @param {string} host @returns {boolean} whether the backbone may be plain there: a name is no address */
export const isLoopback = host => isIP(host) === 4 && host.startsWith('127.')
