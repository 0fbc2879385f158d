// For tests: processes, their clocks and what goes between them, in one process. Time has fractions of milliseconds, goes on
// while a process works, and a process may stand still in the middle of anything, between two looks at the clock.
import type { World } from '@keycast/service'
import { randomNumbers } from '../../test/support/random.js'

/** Each look at a clock is this much later than the one before. */
const LOOK_MS = 0.0007

/** Since 1970, at the beginning. */
export const STARTS_AT = 1_800_000_000_000.25

export interface Process {
  name: string
  world: World
  isAlive: boolean
  /** Stands still until then. */
  stall: (ms: number) => void
  /** The share of looks at the clock at which it stands still, and for how long at most. */
  stalls: { share: number; msMax: number }
  /** When it last stood still. */
  stalledUntil: number
  end: () => void
}

interface Event {
  atMs: number
  seq: number
  process: Own
  run: () => void
  isOff: boolean
}

type Own = Process & { localMs: number; busyUntil: number }

export type Kernel = ReturnType<typeof createKernel>

/** What a random life is made of: its chances, its time, and what was seen amiss. */
export function createRun(seed: number) {
  const random = randomNumbers(seed)
  const below = (most: number) => Math.floor(random() * most)
  const pick = <T>(list: readonly T[]): T => list[below(list.length)]
  const kernel = createKernel(random)
  const outside = kernel.create('outside')
  const later = (ms: number, run: () => void) => kernel.schedule(outside, kernel.now() + ms, run)
  const amiss: string[] = []
  const wrong = (what: string) => amiss.length < 10 && amiss.push(`${kernel.now().toFixed(1)} ${what}`)
  return { random, below, pick, kernel, later, amiss, wrong }
}

function createKernel(random: () => number) {
  let nowMs = 1_000.123
  let seq = 0
  const heap: Event[] = []

  const isBefore = (one: Event, other: Event) =>
    one.atMs < other.atMs || (one.atMs === other.atMs && one.seq < other.seq)

  function push(event: Event) {
    let at = heap.push(event) - 1
    while (at > 0) {
      const parent = (at - 1) >> 1
      if (!isBefore(heap[at], heap[parent])) break
      ;[heap[at], heap[parent]] = [heap[parent], heap[at]]
      at = parent
    }
  }

  function pop(): Event {
    const first = heap[0]
    const last = heap.pop() as Event
    if (heap.length > 0) {
      heap[0] = last
      for (let at = 0; ; ) {
        let least = at
        for (const child of [2 * at + 1, 2 * at + 2]) {
          if (child < heap.length && isBefore(heap[child], heap[least])) least = child
        }
        if (least === at) break
        ;[heap[at], heap[least]] = [heap[least], heap[at]]
        at = least
      }
    }
    return first
  }

  function schedule(process: Process, atMs: number, run: () => void): Event {
    const event = { atMs, seq: ++seq, process: process as Own, run, isOff: false }
    push(event)
    return event
  }

  const drained = () => new Promise<void>(resolve => setImmediate(resolve))

  async function enter(process: Own, run: () => void) {
    process.localMs = Math.max(nowMs, process.busyUntil)
    run()
    await drained()
    process.busyUntil = Math.max(process.localMs, process.busyUntil)
  }

  function create(name: string): Process {
    const look = () => {
      const { stalls } = process
      process.localMs = Math.max(process.localMs, nowMs) + LOOK_MS
      if (stalls.share > 0 && random() < stalls.share) {
        process.localMs += random() * stalls.msMax
        process.stalledUntil = process.localMs
      }
      return process.localMs
    }
    const later = (ms: number, run: () => void) => schedule(process, look() + Math.max(ms, 0.01), run)
    const process: Own = {
      name,
      isAlive: true,
      localMs: nowMs,
      busyUntil: nowMs,
      stalls: { share: 0, msMax: 0 },
      stalledUntil: 0,
      stall(ms) {
        process.busyUntil = Math.max(process.busyUntil, nowMs) + ms
        process.stalledUntil = process.busyUntil
      },
      end() {
        process.isAlive = false
      },
      world: {
        now: look,
        hostNow: look,
        wallNow: () => Math.floor(STARTS_AT + look()),
        random,
        randomBytes: size => Buffer.from(Array.from({ length: size }, () => Math.floor(random() * 256))),
        every(ms, tick) {
          let event: Event
          const set = () => {
            event = later(ms, () => {
              set()
              tick()
            })
          }
          set()
          return () => {
            event.isOff = true
          }
        },
        after(ms, run) {
          const event = later(Math.min(ms, 2 ** 31), run)
          return () => {
            event.isOff = true
          }
        },
        turn: run => void later(0, run),
      },
    }
    return process
  }

  return {
    now: () => nowMs,
    create,
    schedule,
    /** Does something in a process, now. */
    async within(process: Process, run: () => void) {
      await enter(process as Own, run)
    },
    async passUntil(untilMs: number) {
      while (heap.length > 0 && heap[0].atMs <= untilMs) {
        const event = pop()
        const { process } = event
        if (event.isOff || !process.isAlive) continue
        if (process.busyUntil > event.atMs) {
          event.atMs = process.busyUntil
          push(event)
          continue
        }
        nowMs = Math.max(nowMs, event.atMs)
        await enter(process, event.run)
      }
      nowMs = Math.max(nowMs, untilMs)
    },
  }
}
