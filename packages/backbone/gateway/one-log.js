// Keeps a gateway to one log. Nodes that answer from different logs have different histories: a gateway that used both
// would number the messages of a room twice, and tell half of its readers nothing.

export function createOneLog() {
  /** What each node said last, by name; a node that is dead has said it. @type {Map<string, string>} */
  const said = new Map()
  /** @type {string | undefined} */
  let inUse

  return {
    /**
     * Whether a node may be used that answers from this log. The first log that is heard of stays in use for as long as a
     * node had it last: a restart of its nodes does not move all rooms to another log. At the start nodes are heard in
     * any order, and all gateways must come to the same log: there the node whose name is first has its way.
     *
     * @param {string} node its name
     * @param {string | undefined} log of an older release: `undefined`
     * @param {boolean} isStarting some nodes were not heard yet
     */
    admits(node, log, isStarting) {
      if (log === undefined) return true
      said.set(node, log)
      const holders = [...said].filter(([, each]) => each === inUse).map(([name]) => name)
      if (holders.length === 0 || (isStarting && holders.every(name => node < name))) inUse = log
      return log === inUse
    },

    /** @param {string} node that is gone for good */
    forget: node => said.delete(node),

    /** Nodes that have another log than the one in use. */
    others: () => [...said].filter(([, log]) => log !== inUse).map(([name]) => name),

    /** `undefined` until a node said one. */
    get inUse() {
      return inUse
    },
  }
}
