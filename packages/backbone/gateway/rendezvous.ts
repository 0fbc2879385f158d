// Finds the node that owns a key, by rendezvous hashing (Thaler and Ravishankar, 1998). Every gateway that sees the
// same nodes picks the same owner, and when a node comes or goes only the keys it gains or loses move.
import { fnv1a } from '../fnv1a.ts'

/**
 * @param nodes names of the nodes there are
 * @returns tells a key's owner; `undefined` without nodes
 */
export function ownersAmong(nodes: Iterable<string>): (key: string) => string | undefined {
  // Nodes are compared by name: that decides between equal weights, so that the order in which nodes were found does
  // not.
  const hashed = [...nodes].sort().map(node => ({ node, hash: fnv1a(node) }))
  return key => {
    const keyHash = fnv1a(key)
    let owner
    let highest = -1
    for (const { node, hash } of hashed) {
      const weight = mix(keyHash ^ hash)
      if (weight <= highest) continue
      highest = weight
      owner = node
    }
    return owner
  }
}

/** MurmurHash3's finaliser: FNV alone leaves keys that differ in one digit too close. */
function mix(hash: number) {
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return (hash ^ (hash >>> 16)) >>> 0
}
