// The address that limits are counted by: the connection's own, or the last one in `X-Forwarded-For` that no trusted proxy
// has.
import type { IncomingHttpHeaders } from 'node:http'
import { BlockList, isIP, type Socket, SocketAddress } from 'node:net'
import { excerpt } from '@keycast/protocol'

/**
 * The other end of a connection. Attempts are counted by its `address`. `isNamed` is false for a trusted proxy or a
 * program on its host that names no client: counted as one client, it would shut out all the others behind it.
 */
export interface Peer {
  address: string
  isNamed: boolean
}

/** Shared by connections without an address, such as one that is gone already. */
const UNKNOWN = 'unknown'

/** IPv4 in IPv6 (RFC 4291 section 2.5.5.2), in the one way in which it should be written (RFC 5952 section 5). */
const mappedGrammar = /^::ffff:([\d.]+)$/

/**
 * Finds what is wrong with a list of networks, if anything.
 *
 * @param text comma-separated addresses and networks, as in `10.0.0.0/8, fd00::/8`; empty: none
 */
export function trustedProxiesProblem(text: string) {
  for (const written of listOf(text)) {
    if (networkOf(written) === undefined) {
      return `${excerpt(written)} is no address or network, as in 10.0.0.7, 10.0.0.0/8 or fd00::/8`
    }
  }
  return undefined
}

/**
 * Reads whom limits count a connection or a request for. To be asked before anything was read, too.
 *
 * @param trustedProxies without a problem
 */
export function readPeer(
  trustedProxies: string,
): (from: { socket: Pick<Socket, 'remoteAddress'>; headers?: IncomingHttpHeaders }) => Peer {
  const isTrusted = readNetworks(trustedProxies)

  return ({ socket, headers = {} }) => {
    const forwarded = headers['x-forwarded-for']
    let address = plain(socket.remoteAddress ?? '')
    if (!address) return { address: UNKNOWN, isNamed: true }
    const isNamed = forwarded !== undefined || !isTrusted(address)
    // From the end, where the nearest proxy writes: what stands before the first stranger, a stranger wrote.
    let left = String(forwarded ?? '')
    while (left !== '' && isTrusted(address)) {
      const comma = left.lastIndexOf(',')
      const named = plain(withoutPort(left.slice(comma + 1).trim()))
      // A trusted proxy wrote what is no address: nothing before it can be believed.
      if (!named) break
      address = named
      left = comma === -1 ? '' : left.slice(0, comma)
    }
    return { address: limitKeyOf(address), isNamed }
  }
}

function readNetworks(trustedProxies: string): (address: string) => boolean {
  const networks = new BlockList()
  for (const written of listOf(trustedProxies)) {
    const network = networkOf(written)
    if (network) networks.addSubnet(network.address, network.prefix, network.family)
  }
  return address => networks.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4')
}

/**
 * The name that limits are counted under: an IPv4 address, or the /64 of an IPv6 one, for a single line is given a
 * whole /64.
 *
 * @param address as {@link plain} gives it
 */
export function limitKeyOf(address: string) {
  if (isIP(address) !== 6) return address
  const [head, tail] = address.split('::', 2)
  const groups = head === '' ? [] : head.split(':')
  if (tail !== undefined) {
    const after = tail === '' ? [] : tail.split(':')
    // An IPv4 address at the end stands for two groups.
    const width = after.length + (tail.includes('.') ? 1 : 0)
    groups.push(...Array(Math.max(0, 8 - groups.length - width)).fill('0'), ...after)
  }
  return `${groups
    .slice(0, 4)
    .map(group => Number.parseInt(group, 16).toString(16))
    .join(':')}::/64`
}

/** @returns the one way to write it: an IPv4 one never as IPv6, and none with a zone; empty where it is none */
export function plain(address: string): string {
  const [bare] = address.split('%', 1)
  const version = isIP(bare)
  if (version !== 6) return version === 4 ? bare : ''
  const written = new SocketAddress({ address: bare, family: 'ipv6' }).address
  return mappedGrammar.exec(written)?.[1] ?? written
}

/** Some proxies add the port: `192.0.2.1:4711`, `[2001:db8::1]:4711`. */
function withoutPort(text: string) {
  return /^\[([^\]]*)\](?::\d+)?$/.exec(text)?.[1] ?? /^([\d.]+):\d+$/.exec(text)?.[1] ?? text
}

function listOf(text: string) {
  return text.trim() === '' ? [] : text.split(',').map(each => each.trim())
}

function networkOf(written: string): { address: string; prefix: number; family: 'ipv4' | 'ipv6' } | undefined {
  const [address, prefix, ...rest] = written.split('/')
  const version = isIP(address)
  if (version === 0 || rest.length > 0 || address.includes('%')) return undefined
  const bits = version === 4 ? 32 : 128
  if (prefix !== undefined && !/^\d{1,3}$/.test(prefix)) return undefined
  const width = prefix === undefined ? bits : Number(prefix)
  return width <= bits ? { address, prefix: width, family: version === 4 ? 'ipv4' : 'ipv6' } : undefined
}
