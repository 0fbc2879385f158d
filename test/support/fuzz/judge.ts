// Sends absurd input through a door of the code for some time, and judges each: it is taken, or refused with an error of
// the documented kind, whose text is short; it takes no long work, and changes nothing that others use.
import { setImmediate } from 'node:timers/promises'
import fc from 'fast-check'
import { show } from '../figures.ts'

/** A function that is given what others sent. */
export interface Door<T> {
  name: string
  inputs: fc.Arbitrary<T>
  /** Throws, or rejects, with one of `errors` at most. */
  take: (input: T) => unknown
  errors?: (abstract new (...given: never[]) => Error)[]
  /** The error names everything that is wrong: it is for an operator, about a file or settings of its own. */
  namesAll?: boolean
}

/** A list of doors has doors of many inputs. */
export type AnyDoor = Door<any>

/** Errors are sent and logged. The longest there may be names ten keys of 300 characters. */
const ERROR_CHARACTERS_MAX = 4_096

/**
 * CPU time of this thread, so that a busy machine fails nothing. A thousand times what a message of 200 KB takes: only
 * work that grows faster than its input gets there.
 */
const CPU_MS_MAX = 1_000

/** Inputs after which timers and rejections have their turn. */
const TURN = 20

const objectNames = Reflect.ownKeys(Object.prototype).length

/** @returns how many inputs there were */
export async function judge<T>(
  { name, inputs, take, errors = [], namesAll }: Door<T>,
  run: { seconds: number; seed: number },
) {
  let count = 0
  const property = fc.asyncProperty(inputs, async input => {
    if (++count % TURN === 0) await setImmediate()
    const before = process.threadCpuUsage()
    try {
      await take(input)
    } catch (error) {
      if (!errors.some(each => error instanceof each)) throw error
      const { length } = (error as Error).message
      if (!namesAll && length > ERROR_CHARACTERS_MAX) throw new Error(`the error has ${length} characters`)
    }
    const { user, system } = process.threadCpuUsage(before)
    const cpuMs = (user + system) / 1_000
    if (cpuMs > CPU_MS_MAX) throw new Error(`it took ${cpuMs} ms of CPU time`)
    if (Reflect.ownKeys(Object.prototype).length !== objectNames) throw new Error('every object has another field now')
  })
  const startedAt = performance.now()
  const { failed, counterexample, errorInstance } = await fc.check(property, {
    seed: run.seed,
    numRuns: Number.MAX_SAFE_INTEGER,
    interruptAfterTimeLimit: run.seconds * 1_000,
    markInterruptAsFailure: false,
  })
  // On a busy machine the time may be over within the first input: that is no failure, and has no example.
  if (failed && counterexample) {
    const shown = fc.stringify(counterexample[0]).slice(0, 2_000)
    throw new Error(`with seed ${run.seed}, ${name} was given ${shown}`, { cause: errorInstance })
  }
  const took = (performance.now() - startedAt) / 1_000
  show(`${name}: ${count} absurd inputs, ${Math.round(count / took)} a second, seed ${run.seed}`)
  return count
}
