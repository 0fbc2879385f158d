// Keeps the log readable while a peer repeats something at every beat: each subject is let through once a minute.

const AGAIN_MS = 60_000

/** Subjects remembered: link ids are a peer's to choose. */
const SUBJECTS_MAX = 1_000

/** @param {() => number} now */
export function createOnceAMinute(now) {
  /** The time at which each subject was last let through, the latest last. @type {Map<string, number>} */
  const passedAt = new Map()

  /** @param {string} subject @returns {boolean} whether it may be logged now */
  return subject => {
    const at = passedAt.get(subject)
    if (at !== undefined && now() - at < AGAIN_MS) return false
    passedAt.delete(subject)
    passedAt.set(subject, now())
    if (passedAt.size > SUBJECTS_MAX) passedAt.delete(/** @type {string} */ (passedAt.keys().next().value))
    return true
  }
}
