// Keeps the log readable while a peer repeats something at every beat: each subject is let through once a minute.

const AGAIN_MS = 60_000

/** Subjects remembered: link ids are a peer's to choose. */
const SUBJECTS_MAX = 1_000

export function createOnceAMinute(now: () => number) {
  /** The time at which each subject was last let through, the latest last. */
  const passedAt = new Map<string, number>()

  /** @returns whether it may be logged now */
  return (subject: string): boolean => {
    const at = passedAt.get(subject)
    if (at !== undefined && now() - at < AGAIN_MS) return false
    passedAt.delete(subject)
    passedAt.set(subject, now())
    if (passedAt.size > SUBJECTS_MAX) passedAt.delete(passedAt.keys().next().value as string)
    return true
  }
}
