// For tests: processes on the in-process network that may stand still, or die.
import type { createMemoryNetwork } from '@keycast/backbone/memory'
import type { World } from '@keycast/service'

type Network = ReturnType<typeof createMemoryNetwork>

export type Process = ReturnType<typeof createProcess>

/** @param world of all: each has its timers and turns in its own way */
export function createProcess(network: Network, world: World = network.world) {
  let state: 'runs' | 'stands' | 'is dead' = 'runs'
  /** Events that came meanwhile, and timers that are late. */
  let waiting: (() => void)[] = []
  const late = new Set<() => void>()

  function run(what: () => void) {
    if (state === 'runs') what()
    else if (state === 'stands') waiting.push(what)
  }
  function every(ms: number, tick: () => void) {
    const stop = network.every(ms, () => {
      if (state === 'runs') tick()
      else if (state === 'stands') late.add(tick)
    })
    return () => {
      stop()
      late.delete(tick)
    }
  }
  return {
    run,
    world: {
      ...world,
      every,
      after(ms: number, what: () => void) {
        const stop = every(ms, () => {
          stop()
          what()
        })
        return stop
      },
      turn: (what: () => void) => network.turn(() => run(what)),
    },
    stand() {
      if (state === 'runs') state = 'stands'
    },
    /** @param isTimersFirst or what came meanwhile */
    goOn(isTimersFirst: boolean) {
      if (state !== 'stands') return
      state = 'runs'
      const tick = () => {
        for (const each of [...late]) if (late.delete(each)) each()
      }
      const read = () => {
        const came = waiting
        waiting = []
        for (const each of came) each()
      }
      for (const each of isTimersFirst ? [tick, read] : [read, tick]) each()
    },
    die() {
      state = 'is dead'
    },
    get runs() {
      return state === 'runs'
    },
    get isDead() {
      return state === 'is dead'
    },
  }
}
