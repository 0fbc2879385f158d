// When sessions expire: one calendar for all of them, looked at by the gateway's sweep, in place of a timer each.
import { createCalendar } from '@keycast/service'

/** A session may go on for this long after its token has expired. It was told, and can renew it. */
export const GRACE_MS = 25_000

/**
 * Times are wall-clock ones, as `exp` is. A clock that is set back makes sessions live on until it comes to their time
 * again; one that is set forward ends them.
 */
interface Entry<T> {
  item: T
  expiresAtMs: number
  told: boolean
  calendarPage: number
}

interface Events<T extends object> {
  /** Once per token: to be told `token_expired`; may schedule or cancel. */
  expired: (item: T) => void
  /** The grace is over: to be closed with 4001; it stands in the calendar no more. */
  over: (item: T) => void
}

export function createExpiries<T extends object>({ expired, over }: Events<T>) {
  const entries = new Map<T, Entry<T>>()
  const calendar = createCalendar<Entry<T>>()

  function cancel(item: T) {
    const entry = entries.get(item)
    if (!entry) return
    entries.delete(item)
    calendar.cancel(entry)
  }

  function look(entry: Entry<T>, nowMs: number) {
    const { item, expiresAtMs } = entry
    if (nowMs >= expiresAtMs + GRACE_MS) {
      entries.delete(item)
      if (!entry.told) expired(item)
      // Telling may have brought another token.
      if (!entries.has(item)) over(item)
      return
    }
    entry.told = true
    calendar.schedule(entry, expiresAtMs + GRACE_MS)
    expired(item)
  }

  return {
    /** A session has a token, or another one. */
    schedule(item: T, expiresAtMs: number) {
      cancel(item)
      const entry = { item, expiresAtMs, told: false, calendarPage: Number.POSITIVE_INFINITY }
      entries.set(item, entry)
      calendar.schedule(entry, expiresAtMs)
    },

    /** A session ended: the calendar holds it no longer. */
    cancel,

    sweep(nowMs: number) {
      for (let due = calendar.takeDue(nowMs); due; due = calendar.takeDue(nowMs)) look(due, nowMs)
    },

    get size() {
      return entries.size
    },
  }
}

export type Expiries<T extends object> = ReturnType<typeof createExpiries<T>>
