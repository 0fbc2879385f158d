// Long work in short pieces, so that beats, results and gateways do not wait for 100,000 keys to be gone through.
import { workTurn } from '@keycast/service'

export type InTurns = (step: () => boolean) => void

interface Deps {
  wheel: { set: (atMs: number, run: () => void) => unknown }
  now: () => number
}

/**
 * Returns a function that works step by step: at once, as many steps as a turn has room for; the rest in later ticks of
 * the wheel. `step` does a little and returns whether there is more. Anything may have changed between two steps.
 */
export function createInTurns({ wheel, now }: Deps): InTurns {
  return function inTurns(step) {
    if (workTurn(now, step)) wheel.set(now(), () => inTurns(step))
  }
}
