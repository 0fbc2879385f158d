// The time up to which all was read that had come over the network. A process may stand still, and reads later what comes
// meanwhile. Nobody can say when that came; this clock says when it had not come yet.
import type { World } from '@keycast/service'

/** Precision. */
const READ_MS = 20

export function createReadClock({ every, turn, hostNow }: Pick<World, 'every' | 'turn' | 'hostNow'>) {
  let users = 0
  let readAt = Number.NEGATIVE_INFINITY
  let stop = () => {}

  return {
    /** It goes only while somebody uses it. */
    use() {
      if (users++ > 0) return
      stop = every(READ_MS, () => {
        // Sockets are read after timers and before the next turn.
        const at = hostNow()
        turn(() => {
          readAt = at
        })
      })
    },

    release() {
      if (--users === 0) stop()
    },

    readAt: () => readAt,
  }
}
