// Timers that rest while the page is hidden: a tab that nobody looks at wakes no processor.

/**
 * One thing waited for. Setting it again puts off what was set before.
 *
 * @typedef {{ set: (task: () => void, ms: number) => void, clear: () => void, isSet: () => boolean }} Alarm
 */

/** @param {Pick<import('./environment.js').Environment, 'setTimeout' | 'clearTimeout'>} environment */
export function createTimers({ setTimeout, clearTimeout }) {
  /** @type {Set<{ arm: () => void, disarm: () => void }>} */
  const set = new Set()
  let resting = false

  return {
    /** @returns {Alarm} */
    alarm() {
      /** @type {any} */
      let timer
      let task = () => {}
      let ms = 0
      const place = {
        arm() {
          timer = setTimeout(() => {
            set.delete(place)
            task()
          }, ms)
        },
        disarm: () => clearTimeout(timer),
      }
      const clear = () => {
        place.disarm()
        set.delete(place)
      }
      return {
        set(nextTask, nextMs) {
          clear()
          task = nextTask
          ms = nextMs
          set.add(place)
          if (!resting) place.arm()
        },
        clear,
        isSet: () => set.has(place),
      }
    },
    rest() {
      resting = true
      for (const { disarm } of set) disarm()
    },
    /** Each alarm takes its whole time anew: what it waits for may lie unread in the tab that just came back. */
    go() {
      if (!resting) return
      resting = false
      for (const { arm } of set) arm()
    },
  }
}
