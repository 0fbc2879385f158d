// Chooses the rooms whose positions go with a link's beat: rooms with recent messages, so that a lost last message is
// noticed, and in turn some of the others.

/** Quiet rooms per beat. */
const IN_TURN = 200

/** @param watches all rooms of the link */
export function createBeatKeys(watches: { keys: () => Iterator<string> }) {
  /** Rooms with news since the last beat. */
  let sent = new Set<string>()
  /** Rooms with news since the beat before that. */
  let sentBefore = new Set<string>()
  let rotation: Iterator<string> | undefined

  return {
    /** The room had news, or the next beat must include it. */
    add: (key: string) => void sent.add(key),

    forget(key: string) {
      sent.delete(key)
      sentBefore.delete(key)
    },

    /** The rooms for the present beat. */
    next(): Set<string> {
      const keys = new Set([...sentBefore, ...sent])
      sentBefore = sent
      sent = new Set()
      for (let n = 0; n < IN_TURN; n++) {
        rotation ??= watches.keys()
        const { value, done } = rotation.next()
        if (done) {
          rotation = undefined
          break
        }
        keys.add(value)
      }
      return keys
    },
  }
}
