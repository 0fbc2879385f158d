// A node's progress, told to a link once the link was sent everything due until then. A mark stands in the queue of the
// link's due keys: when it comes up, everything before it has left.

/** No key can equal it: keys have no control characters. */
export const MARK = '\0mark'

interface Deps {
  tell: (link: string, key: string) => void
  /** By namespace. */
  lagsMs: () => Record<string, number> | undefined
  now: () => number
}

export function createMarks({ tell, lagsMs, now }: Deps) {
  interface Mark {
    atMs: number
    lagsMs: Record<string, number>
  }
  /** `queued`: the mark in the link's queue; `passed`: the last one that came up. */
  const byLink = new Map<string, { queued?: Mark; passed?: Mark }>()

  return {
    /** Begins the next mark of a link, unless one is under way. Returns the progress of the last one, as of now. */
    headsFor(link: string) {
      let marks = byLink.get(link)
      if (!marks) {
        marks = {}
        byLink.set(link, marks)
      }
      if (!marks.queued) {
        const lags = lagsMs()
        if (!lags) return undefined
        marks.queued = { atMs: now(), lagsMs: lags }
        tell(link, MARK)
      }
      const { passed } = marks
      if (!passed) return undefined
      const sinceMs = now() - passed.atMs
      return {
        lagsMs: Object.fromEntries(Object.entries(passed.lagsMs).map(([name, ms]) => [name, Math.ceil(ms + sinceMs)])),
      }
    },

    /** The mark of a link came up. */
    pass(link: string) {
      const marks = byLink.get(link)
      if (marks) byLink.set(link, { passed: marks.queued })
    },

    /** @param link the link is lost */
    drop(link: string) {
      byLink.delete(link)
    },
  }
}
