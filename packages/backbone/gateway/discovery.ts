// Finds the nodes of a service: a setting names their hosts, which are looked up again and again, since containers come and
// go.
import { lookup } from 'node:dns/promises'
import { excerpt } from '@keycast/protocol'
import type { Every } from '@keycast/service'
import type { Log } from './link.ts'
import type { NodeSource } from './router.ts'

/** Names are looked up at this interval: a new node is found within it. */
const LOOKUP_MS = 5_000

/** Look-ups in a row that must lack an address before its node is given up: a name server may be wrong once. */
const LOOKUPS_MISSED_MAX = 3

export interface NodeAddress {
  host: string
  requestsPort: number
  answersPort: number
}

/** The ports of a node, unless the setting says otherwise. */
const PORTS = { fetcher: ['7001', '7002'], journal: ['7003', '7004'] }

/**
 * Reads `host[:requests:answers]`, comma-separated.
 *
 * @param text e.g. `fetcher` or `10.0.0.1:7001:7002,10.0.0.2:7001:7002`
 * @throws {Error} naming the part that is wrong
 */
export function readNodes(text: string, service: keyof typeof PORTS = 'fetcher'): NodeAddress[] {
  return text.split(',').map(part => {
    const match = /^([A-Za-z0-9._-]+)(?::(\d{1,5}):(\d{1,5}))?$/.exec(part.trim())
    const [, host, requests = PORTS[service][0], answers = PORTS[service][1]] = match ?? []
    const [requestsPort, answersPort] = [Number(requests), Number(answers)]
    if (!host || !isPort(requestsPort) || !isPort(answersPort)) {
      throw new Error(`${excerpt(part.trim())} is no ${service} node: write host or host:requestsPort:answersPort`)
    }
    return { host, requestsPort, answersPort }
  })
}

const isPort = (port: number) => port >= 1 && port <= 65_535

/** A node's name is its address, so that all gateways call it the same. `10.0.0.1:7001:7002` */
export function endpointsOf(name: string) {
  const [address, requestsPort, answersPort] = name.split(':')
  return { requests: `tcp://${address}:${requestsPort}`, answers: `tcp://${address}:${answersPort}` }
}

interface Options {
  nodes: NodeAddress[]
  every: Every
  log: Log
  /** A name's IPv4 addresses. */
  resolve?: (host: string) => Promise<string[]>
}

export function createNodeSource({ nodes, every, log, resolve = resolveIpv4 }: Options): NodeSource {
  /** Each host's addresses, with the number of look-ups in a row that lacked them. */
  const hosts = new Map<string, Map<string, number>>(nodes.map(({ host }) => [host, new Map()]))
  let stop = () => {}

  /** A failed look-up changes nothing: a name server that is down does not end links. */
  async function lookUp(host: string) {
    let found
    try {
      found = await resolve(host)
    } catch (error) {
      log.warn({ host, error: (error as Error).message }, 'a host cannot be looked up')
      return
    }
    const addresses = hosts.get(host) as Map<string, number>
    for (const [address, missed] of addresses) {
      if (missed + 1 === LOOKUPS_MISSED_MAX) addresses.delete(address)
      else addresses.set(address, missed + 1)
    }
    for (const address of found) addresses.set(address, 0)
  }

  async function look(): Promise<string[]> {
    await Promise.all([...hosts.keys()].map(lookUp))
    return nodes.flatMap(({ host, requestsPort, answersPort }) =>
      [...(hosts.get(host)?.keys() ?? [])].map(address => `${address}:${requestsPort}:${answersPort}`),
    )
  }

  return {
    async start(found) {
      let names = await look()
      found(names)
      let looking = false
      stop = every(LOOKUP_MS, async () => {
        if (looking) return // a name server slower than the period is asked one question at a time
        looking = true
        const before = names
        names = await look()
        looking = false
        if (names.toSorted().join() !== before.toSorted().join()) found(names)
      })
    },
    stop: () => stop(),
  }
}

async function resolveIpv4(host: string) {
  const found = await lookup(host, { all: true, family: 4 })
  return found.map(({ address }) => address)
}
