// Looks up each name once at a time, for all connections that wait for its addresses.
import dns from 'node:dns'

/**
 * @typedef {import('node:net').LookupFunction} Lookup
 * @typedef {Parameters<Lookup>[2]} Found
 */

/**
 * A lookup cannot be given up. A connection that meets its deadline leaves it behind, for another 10 s or more, in one of
 * the few threads a process has for that. If each connection made its own, a single name whose servers are silent would
 * take all these threads, and no other name would be found.
 *
 * @param {Lookup} [lookup] to which all ask with the same options, as all connections of a worker do
 * @returns {Lookup}
 */
export function createLookups(lookup = dns.lookup) {
  /** By name. @type {Map<string, Found[]>} */
  const underWay = new Map()

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
