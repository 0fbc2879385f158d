// Keeps a gateway to one log. Nodes that answer from different logs have different histories: a gateway that used both
// would number the messages of a room twice, and tell half of its readers nothing.

/** Logs of which it is known how far they were, the latest ones: each but the last was replaced. */
const LOGS_MAX = 16

export function createOneLog() {
  /** What each node said last, by name; a node that is dead has said it. */
  const said = new Map<string, string>()
  /** How far each log was, of those that say it. */
  const furthest = new Map<string, number>()
  /** Nodes whose log has gone back. */
  const behind = new Set<string>()
  let inUse: string | undefined

  function note(log: string, at: number) {
    if (at <= (furthest.get(log) ?? -1)) return
    furthest.delete(log)
    furthest.set(log, at)
    for (const oldest of furthest.keys()) {
      if (furthest.size <= LOGS_MAX) break
      furthest.delete(oldest)
    }
  }

  return {
    /**
     * Whether a node may be used that answers from this log. The first log that is heard of stays in use for as long as a
     * node had it last: a restart of its nodes does not move all rooms to another log. At the start nodes are heard in
     * any order, and all gateways must come to the same log: there the node whose name is first has its way.
     *
     * @param node its name
     * @param log of an older release: `undefined`
     * @param at how far the log is. A log that has gone back was replaced by an older state of itself, such as a
     *   snapshot of its disk: its numbers come again, so it must take another id first
     * @param isStarting some nodes were not heard yet
     */
    admits(node: string, log: string | undefined, at: number | undefined, isStarting: boolean) {
      if (log === undefined) return true
      said.set(node, log)
      behind.delete(node)
      if (at !== undefined && at < (furthest.get(log) ?? 0)) {
        behind.add(node)
        return false
      }
      if (at !== undefined) note(log, at)
      const holders = [...said].filter(([, each]) => each === inUse).map(([name]) => name)
      if (holders.length === 0 || (isStarting && holders.every(name => node < name))) inUse = log
      return log === inUse
    },

    /** @param at its log has come so far */
    note(node: string, at: number) {
      const log = said.get(node)
      if (log !== undefined) note(log, at)
    },

    /** What a node must be told of its log, which has gone back. */
    before(node: string) {
      const log = behind.has(node) ? said.get(node) : undefined
      return log === undefined ? undefined : { log, logAt: furthest.get(log) ?? 0 }
    },

    /** @param node that is gone for good */
    forget(node: string) {
      said.delete(node)
      behind.delete(node)
    },

    /** Nodes that have another log than the one in use, with that. */
    others: () => [...said].filter(([, log]) => log !== inUse).map(([node, log]) => ({ node, log })),

    /** `undefined` until a node said one. */
    get inUse() {
      return inUse
    },
  }
}
