// The fetcher nodes there are: read from a setting, looked up by name again and again, since containers come and go.
import { lookup } from 'node:dns/promises'

/** How often names are looked up: a new node is found, and one that left is forgotten, within this time. */
const LOOKUP_MS = 5_000

/**
 * @typedef {{ host: string, requestsPort: number, answersPort: number }} NodeAddress
 */

/**
 * Reads `host[:requests:answers]`, comma-separated.
 *
 * @param {string} text e.g. `fetcher` or `10.0.0.1:7001:7002,10.0.0.2:7001:7002`
 * @returns {NodeAddress[]}
 * @throws {Error} naming the part that is wrong
 */
export function readNodes(text) {
  return text.split(',').map(part => {
    const match = /^([A-Za-z0-9._-]+)(?::(\d{1,5}):(\d{1,5}))?$/.exec(part.trim())
    const [, host, requests = '7001', answers = '7002'] = match ?? []
    const [requestsPort, answersPort] = [Number(requests), Number(answers)]
    if (!host || !isPort(requestsPort) || !isPort(answersPort)) {
      throw new Error(`${JSON.stringify(part.trim())} is no fetcher node: write host or host:requestsPort:answersPort`)
    }
    return { host, requestsPort, answersPort }
  })
}

/** @param {number} port */
const isPort = port => port >= 1 && port <= 65_535

/**
 * A node's name is its address, so that all gateways call it the same. `10.0.0.1:7001:7002`
 *
 * @param {string} name
 */
export function endpointsOf(name) {
  const [address, requestsPort, answersPort] = name.split(':')
  return { requests: `tcp://${address}:${requestsPort}`, answers: `tcp://${address}:${answersPort}` }
}

/**
 * @param {object} options
 * @param {NodeAddress[]} options.nodes
 * @param {import('./punctual.js').Every} options.every
 * @param {import('./link.js').Log} options.log
 * @param {(host: string) => Promise<string[]>} [options.resolve] a name's IPv4 addresses
 * @returns {import('./backbone-links.js').NodeSource}
 */
export function createNodeSource({ nodes, every, log, resolve = resolveIpv4 }) {
  /** The last good answer for each host: a name server that fails does not end links. @type {Map<string, string[]>} */
  const addresses = new Map()
  let stop = () => {}

  /** @param {(names: string[]) => void} found */
  async function look(found) {
    const hosts = new Set(nodes.map(({ host }) => host))
    await Promise.all(
      [...hosts].map(async host => {
        try {
          addresses.set(host, await resolve(host))
        } catch (error) {
          log.warn({ host, error: /** @type {Error} */ (error).message }, 'a fetcher host cannot be looked up')
        }
      }),
    )
    found(
      nodes.flatMap(({ host, requestsPort, answersPort }) =>
        (addresses.get(host) ?? []).map(address => `${address}:${requestsPort}:${answersPort}`),
      ),
    )
  }

  return {
    async start(found) {
      await look(found)
      let looking = false
      stop = every(LOOKUP_MS, async () => {
        if (looking) return // a name server slower than the period is asked one question at a time
        looking = true
        await look(found)
        looking = false
      })
    },
    stop: () => stop(),
  }
}

/** @param {string} host */
async function resolveIpv4(host) {
  const found = await lookup(host, { all: true, family: 4 })
  return found.map(({ address }) => address)
}
