// Whose positions go with a link's beat: rooms of which something was sent lately, so that the last message lost is
// noticed, and in turn some of the others.

/** Rooms of one beat that were sent nothing lately. */
const IN_TURN = 200

/** @param {{ keys: () => Iterator<string> }} watches all rooms of the link */
export function createBeatKeys(watches) {
  /** Since the last beat. @type {Set<string>} */
  let sent = new Set()
  /** Since the one before that. @type {Set<string>} */
  let sentBefore = new Set()
  /** @type {Iterator<string> | undefined} */
  let rotation

  return {
    /** Something was sent of the room, or the next beat shall look at it. @param {string} key */
    add: key => void sent.add(key),

    /** @param {string} key */
    forget(key) {
      sent.delete(key)
      sentBefore.delete(key)
    },

    /** For the beat that is now. @returns {Set<string>} */
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
