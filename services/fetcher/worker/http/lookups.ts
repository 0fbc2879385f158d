// Looks up each name once at a time, for all connections that wait for its addresses.
import dns from 'node:dns'
import type { LookupFunction as Lookup } from 'node:net'

export type { LookupFunction as Lookup } from 'node:net'

type Found = Parameters<Lookup>[2]

/**
 * A lookup cannot be given up. A connection that meets its deadline leaves it behind, for another 10 s or more, in one of
 * the few threads a process has for that. If each connection made its own, a single name whose servers are silent would
 * take all these threads, and no other name would be found.
 *
 * @param lookup to which all ask with the same options, as all connections of a worker do
 */
export function createLookups(lookup: Lookup = dns.lookup): Lookup {
  /** By name. */
  const underWay = new Map<string, Found[]>()

  return (hostname, options, found) => {
    const others = underWay.get(hostname)
    if (others) {
      others.push(found)
      return
    }
    const all = [found]
    underWay.set(hostname, all)
    lookup(hostname, options, (...answer) => {
      underWay.delete(hostname)
      for (const each of all) each(...answer)
    })
  }
}
