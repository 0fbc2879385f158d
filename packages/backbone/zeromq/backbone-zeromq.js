// The backbone of values over ZeroMQ, as a gateway and a fetcher's primary create it. Everything but the sockets is in
// gateway/ and hub/.
import { isIP } from 'node:net'
import { everyInterval } from '@keycast/service'
import { createNodeSource, endpointsOf, readNodes } from '../gateway/nodes.js'
import { createValuesBackbone } from '../gateway/values-backbone.js'
import { createValuesHub } from '../hub/values-hub.js'
import { bindZeromq } from './bind.js'
import { linkSecurity } from './curve.js'
import { dialZeromq } from './dial.js'

const now = () => performance.now()

/**
 * The gateway's side.
 *
 * @param {object} options
 * @param {string} options.nodes `host[:requests:answers]`, comma-separated
 * @param {number} options.messageBytesMax largest message taken from a node: above the largest value there may be
 * @param {import('../backbone.js').BackboneEvents} options.events
 * @param {import('../gateway/link.js').Log} options.log
 * @param {import('./curve.js').LinkCurve} [options.curve] as the nodes have it; absent: plaintext
 * @returns {import('../backbone.js').Backbone}
 * @throws {Error} when `nodes` or a key cannot be read
 */
export function createZeromqBackbone({ nodes, messageBytesMax, events, log, curve }) {
  const security = curve && linkSecurity(curve)
  return createValuesBackbone({
    nodeSource: createNodeSource({ nodes: readNodes(nodes), every: everyInterval, log }),
    dialOf: name => dialZeromq(endpointsOf(name), { messageBytesMax, security }),
    events,
    now,
    every: everyInterval,
    log,
  })
}

/**
 * The fetcher's side. Port 0 takes a free one.
 *
 * @param {object} options
 * @param {string} options.host
 * @param {number} options.requestsPort
 * @param {number} options.answersPort
 * @param {import('../gateway/link.js').Log} options.log
 * @param {import('./bind.js').HubCurve} [options.curve] encrypts, and admits only the clients it names
 * @returns {import('../backbone.js').Hub & { ports: () => { requestsPort: number, answersPort: number } }}
 * @throws {Error} when the host is not a loopback address and there is no CURVE: every peer would be served
 */
export function createZeromqHub({ host, requestsPort, answersPort, log, curve }) {
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
  return { ...createValuesHub({ bind, now, every: everyInterval, log }), ports: () => ports }
}

/** @param {string} host @param {number} port */
const endpoint = (host, port) => `tcp://${host}:${port === 0 ? '*' : port}`

/** @param {string} host @returns {boolean} whether a hub without CURVE may bind it */
export const isLoopback = host => isIP(host) === 4 && host.startsWith('127.')
