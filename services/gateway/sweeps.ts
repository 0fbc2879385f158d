// Looks at what has to be looked at now and then: what is due often, whole lists seldom.
import { SWEEP_MS } from '@keycast/service'

/** Between two walks over whole lists. */
const SELDOM_MS = 10_000

interface Deps {
  often: (() => void)[]
  seldom: (() => void)[]
  /** Monotonic, in milliseconds. */
  now: () => number
}

export function createSweeps({ often, seldom, now }: Deps) {
  let timer: NodeJS.Timeout | undefined
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
      timer = setInterval(sweep, SWEEP_MS)
    },
    stop: () => clearInterval(timer),
  }
}
