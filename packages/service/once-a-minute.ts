// Keeps the log readable while a peer repeats something at every beat: each subject is let through once a minute.
import { createRecent } from './collections/recent.ts'

const AGAIN_MS = 60_000

/** Subjects remembered: link ids are a peer's to choose. */
const SUBJECTS_MAX = 1_000

export function createOnceAMinute(now: () => number) {
  /** The time at which each subject was last let through. */
  const passedAt = createRecent<string, number>(SUBJECTS_MAX)

  /** @returns whether it may be logged now */
  return (subject: string): boolean => {
    const at = passedAt.get(subject)
    if (at !== undefined && now() - at < AGAIN_MS) return false
    passedAt.set(subject, now())
    return true
  }
}
