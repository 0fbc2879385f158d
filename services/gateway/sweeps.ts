// Looks at what has to be looked at now and then: what is due often, whole lists seldom.
import { SWEEP_MS, type World } from '@keycast/service'

/** Between two walks over whole lists. */
const SELDOM_MS = 10_000

interface Deps {
  often: (() => void)[]
  seldom: (() => void)[]
  now: () => number
  every: World['every']
}

export function createSweeps({ often, seldom, now, every }: Deps) {
  let stop = () => {}
  let sweptSeldomAtMs = now()

  function sweep() {
    for (const each of often) each()
    if (now() - sweptSeldomAtMs < SELDOM_MS) return
    sweptSeldomAtMs = now()
    for (const each of seldom) each()
  }

  return {
    sweep,
    start() {
      stop = every(SWEEP_MS, sweep)
    },
    stop: () => stop(),
  }
}
