// An open-loop schedule: each client's requests are due at fixed times, whether or not the system keeps up, and latency
// counts from the time a request was due. A schedule that waits for answers hides every stall (coordinated omission).

/** A request is due at a whole millisecond: as fine as a timer. */
const SLOT_US = 1_000

/** The fractional part of its multiples fills an interval evenly, however many there are (a low-discrepancy sequence). */
const GOLDEN_RATIO = (Math.sqrt(5) - 1) / 2

export type Schedule<T> = ReturnType<typeof createSchedule<T>>

/** `firstUs`: when its first request is due. */
export interface Entry<T> {
  item: T
  firstUs: number
  slot: number
}

/** `dueUs`: from then on latency counts. */
export type Due<T> = (entry: Entry<T>, dueUs: number) => void

interface Options<T> {
  /** Between two requests of one client; whole milliseconds. */
  intervalMs: number
  /** 0 to 1: what sets this process's clients apart from another's. */
  phase?: number
  nowUs: () => number
  onDue: Due<T>
  /** Is told how late the generator itself was. */
  onLate: (lateUs: number, requests: number) => void
}

export function createSchedule<T>({ intervalMs, phase = 0, nowUs, onDue, onLate }: Options<T>) {
  const slots: Entry<T>[][] = Array.from({ length: intervalMs }, () => [])
  let added = 0
  /** The slot, counted from the clock's zero, up to which all is done. */
  let done = Math.floor(nowUs() / SLOT_US)
  let timer: NodeJS.Timeout | undefined

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
    /** Its first request is due within one interval from now. */
    add(item: T): Entry<T> {
      added += 1
      const slot = Math.floor(((added * GOLDEN_RATIO + phase) % 1) * intervalMs)
      const next = Math.floor(nowUs() / SLOT_US) + 1
      const first = next + ((slot - (next % intervalMs) + intervalMs) % intervalMs)
      const entry = { item, slot, firstUs: first * SLOT_US }
      slots[slot].push(entry)
      return entry
    },

    remove(entry: Entry<T>) {
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
