// Stands for the backbone of rooms where keycast.yaml has none: no key passes as a room's, so it is never asked.
import type { RoomsBackbone } from '@keycast/backbone'
import type { Problem } from '@keycast/protocol'

export function createNoJournal(): RoomsBackbone {
  const problem: Problem = { code: 'unknown_namespace', message: 'there are no rooms here' }
  return {
    async start() {},
    async stop() {},
    watch() {},
    unwatch() {},
    publish: (_, __, done) => done(problem),
    deleteMessages: async () => problem,
    history: async () => problem,
    isAvailable: () => false,
    ownerOf: () => ({ node: undefined, alive: false }),
    // Not 0: that would say that a journal is lost, and wake somebody.
    nodesAlive: () => Number.NaN,
    nodesHeld: () => 0,
    join: () => ({ tab: '', joined: Promise.resolve(problem) }),
    leave() {},
    watchMembers() {},
    unwatchMembers() {},
    membersOf: async () => problem,
    logs: () => ({ inUse: undefined, others: [] }),
    healed: () => 0,
    values: {
      watch() {},
      unwatch() {},
      get() {},
      cancelGet() {},
      renewWatch() {},
      handOver: async () => problem,
      ownerOf: () => ({ node: undefined, alive: false }),
      nodesAlive: () => 0,
    },
  }
}
