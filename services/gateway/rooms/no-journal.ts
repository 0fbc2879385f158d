// Stands for the backbone of rooms where keycast.yaml has none: no key passes as a room's, so it is never asked.
import type { RoomsBackbone } from '@keycast/backbone'

export function createNoJournal(): RoomsBackbone {
  const error = { error: 'unknown_namespace' as const, message: 'there are no rooms here' }
  return {
    async start() {},
    async stop() {},
    watch() {},
    unwatch() {},
    publish: async () => error,
    history: async () => error,
    isAvailable: () => false,
    ownerOf: () => ({ node: undefined, alive: false }),
    // Not 0: that would say that a journal is lost, and wake somebody.
    nodesAlive: () => Number.NaN,
    nodesHeld: () => 0,
    join: () => ({ tab: '', joined: Promise.resolve(error) }),
    leave() {},
    watchMembers() {},
    unwatchMembers() {},
    membersOf: async () => error,
    logs: () => ({ inUse: undefined, others: [] }),
    healed: () => 0,
  }
}
