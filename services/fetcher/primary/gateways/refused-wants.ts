// Wants that this node refuses, until each link is told the reason. Such a key has no entry. Mostly there is no room
// for one (`capacity`), or a gateway with a newer configuration names a namespace that this node does not know. Bounded
// like the hub's own set of due keys.
import type { FailedAnswer } from '@keycast/backbone'
import type { Want } from '../keys/interest.ts'

/** `wants`: a link may both watch a key and wait for it. */
interface Refusal {
  answer: FailedAnswer
  wants: Set<Want>
}

export type RefusedWants = ReturnType<typeof createRefusedWants>

export function createRefusedWants() {
  /** By link and key. */
  const byLink = new Map<string, Map<string, Refusal>>()

  function forget(link: string, key: string) {
    const refusals = byLink.get(link)
    if (refusals?.delete(key) && refusals.size === 0) byLink.delete(link)
  }

  return {
    /** @param want that is refused, beside one refused already */
    add(link: string, answer: FailedAnswer, want: Want) {
      const refusals = byLink.get(link) ?? new Map()
      byLink.set(link, refusals)
      const wants = refusals.get(answer.key)?.wants ?? new Set()
      refusals.set(answer.key, { answer, wants: wants.add(want) })
    },

    /** The link dropped this want: it is told nothing about it. */
    withdraw(link: string, key: string, want: Want) {
      const wants = byLink.get(link)?.get(key)?.wants
      if (wants?.delete(want) && wants.size === 0) forget(link, key)
    },

    /**
     * The key can be served after all: the link is not told of the refusal.
     *
     * @param want granted now
     * @returns whether the link's other want was refused before, and should be granted, too
     */
    forgive(link: string, key: string, want: Want): boolean {
      const wants = byLink.get(link)?.get(key)?.wants
      forget(link, key)
      return wants?.has(want === 'watch' ? 'get' : 'watch') === true
    },

    /** @returns to be sent now */
    take(link: string, key: string): FailedAnswer | undefined {
      const answer = byLink.get(link)?.get(key)?.answer
      forget(link, key)
      return answer
    },

    dropLink(link: string) {
      byLink.delete(link)
    },
  }
}
