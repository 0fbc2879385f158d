// Timers that rest while the page is hidden: a tab that nobody looks at wakes no processor.

/** Browsers and Node take a longer time for none at all. */
const TIMER_MAX_MS = 2 ** 31 - 1

/**
 * One thing waited for. Setting it again puts off what was set before.
 *
 * @typedef {{ set: (task: () => void, ms: number) => void, clear: () => void, isSet: () => boolean }} Alarm
 */

/** @param {Pick<import('./environment.js').Environment, 'setTimeout' | 'clearTimeout'>} environment */
export function createTimers({ setTimeout, clearTimeout }) {
  /** One wait. @typedef {{ task: () => void, ms: number, timer?: any }} Wait */
  /** @type {Set<Wait>} */
  const waits = new Set()
  let resting = false

  /** @param {Wait} wait */
  function arm(wait) {
    wait.timer = setTimeout(() => {
      waits.delete(wait)
      wait.task()
    }, wait.ms)
  }

  /** @param {Wait} wait */
  const disarm = ({ timer }) => clearTimeout(timer)

  return {
    /** @returns {Alarm} */
    alarm() {
      /** @type {Wait} */
      let wait
      const clear = () => {
        if (waits.delete(wait)) disarm(wait)
      }
      return {
        set(task, ms) {
          clear()
          wait = { task, ms: Math.min(ms, TIMER_MAX_MS) }
          waits.add(wait)
          if (!resting) arm(wait)
        },
        clear,
        isSet: () => waits.has(wait),
      }
    },
    rest() {
      resting = true
      waits.forEach(disarm)
    },
    /** Each alarm starts its whole time anew: the awaited message may lie unread in the tab that just came back. */
    go() {
      if (!resting) return
      resting = false
      waits.forEach(arm)
    },
  }
}
