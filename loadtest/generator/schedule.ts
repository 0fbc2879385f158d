// An open-loop schedule: each client's requests are due at fixed times, whether or not the system keeps up, and latency
// counts from the time a request was due. A schedule that waits for answers hides every stall (coordinated omission).

/** A request is due at a whole millisecond: as fine as a timer. */
const SLOT_US = 1_000

/** The fractional part of its multiples fills an interval evenly, however many there are (a low-discrepancy sequence). */
const GOLDEN_RATIO = (Math.sqrt(5) - 1) / 2

/**
 * @template T
 * @typedef {ReturnType<typeof createSchedule<T>>} Schedule
 */

/**
 * @template T the scheduled items
 * @typedef {{ item: T, firstUs: number, slot: number }} Entry `firstUs`: when its first request is due
 */

/**
 * @template T
 * @param {object} options
 * @param {number} options.intervalMs between two requests of one client; whole milliseconds
 * @param {number} [options.phase] 0 to 1: what sets this process's clients apart from another's
 * @param {() => number} options.nowUs
 * @param {(entry: Entry<T>, dueUs: number) => void} options.onDue
 * @param {(lateUs: number, requests: number) => void} options.onLate is told how late the generator itself was
 */
export function createSchedule({ intervalMs, phase = 0, nowUs, onDue, onLate }) {
  /** @type {Entry<T>[][]} */
  const slots = Array.from({ length: intervalMs }, () => [])
  let added = 0
  /** The slot, counted from the clock's zero, up to which all is done. */
  let done = Math.floor(nowUs() / SLOT_US)
  /** @type {NodeJS.Timeout | undefined} */
  let timer

  const run = () => {
    const reached = Math.floor(nowUs() / SLOT_US)
    while (done < reached) {
      done += 1
      const due = slots[done % intervalMs]
      if (due.length === 0) continue
      const dueUs = done * SLOT_US
      let requests = 0
      const lateUs = nowUs() - dueUs
      for (const entry of due) {
        if (entry.firstUs > dueUs) continue
        requests += 1
        onDue(entry, dueUs)
      }
      if (requests > 0) onLate(lateUs, requests)
    }
  }

  return {
    /** Its first request is due within one interval from now. @param {T} item @returns {Entry<T>} */
    add(item) {
      added += 1
      const slot = Math.floor(((added * GOLDEN_RATIO + phase) % 1) * intervalMs)
      const next = Math.floor(nowUs() / SLOT_US) + 1
      const first = next + ((slot - (next % intervalMs) + intervalMs) % intervalMs)
      const entry = { item, slot, firstUs: first * SLOT_US }
      slots[slot].push(entry)
      return entry
    },

    /** @param {Entry<T>} entry */
    remove(entry) {
      const entries = slots[entry.slot]
      const at = entries.indexOf(entry)
      if (at !== -1) entries.splice(at, 1)
    },

    start() {
      done = Math.floor(nowUs() / SLOT_US)
      timer = setInterval(run, 1)
    },

    stop() {
      clearInterval(timer)
    },

    /** One tick of the timer; for tests. */
    run,
  }
}
