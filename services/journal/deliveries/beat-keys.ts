// Chooses the rooms whose positions go with a link's beat: rooms with recent messages, so that a lost last message is
// noticed, and in turn some of the others.

/** Quiet rooms per beat. */
const IN_TURN = 200

/** @param {{ keys: () => Iterator<string> }} watches all rooms of the link */
export function createBeatKeys(watches) {
  /** Rooms with news since the last beat. @type {Set<string>} */
  let sent = new Set()
  /** Rooms with news since the beat before that. @type {Set<string>} */
  let sentBefore = new Set()
  /** @type {Iterator<string> | undefined} */
  let rotation

  return {
    /** The room had news, or the next beat must include it. @param {string} key */
    add: key => void sent.add(key),

    /** @param {string} key */
    forget(key) {
      sent.delete(key)
      sentBefore.delete(key)
    },

    /** The rooms for the present beat. @returns {Set<string>} */
    next() {
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
