import { createAwakeClock, SILENT_MS } from '@keycast/service'
import { createLeases, LEASE_GRACE_MS } from './leases.ts'
import { createWatchdog, LOST_LEASE_MS, SILENT_OVERDUE_MS, STARTUP_MS, SWEEP_MS } from './watchdog.ts'
import { createWorkerClock, type ThreadState } from './worker-clock.ts'
import type { Worker } from './workers.ts'

const holder = { ended() {}, lost() {} }

/** Workers 1, 2, …, which speak when the test says so. */
function setup(count: number) {
  let at = 10_000
  let sweep = () => {}
  let thread: ThreadState = { isRunnable: false, cpuMs: 0 }
  const clock = createAwakeClock({
    periodMs: SWEEP_MS,
    every: (_, tick) => {
      sweep = tick
      return () => {}
    },
    now: () => at,
  })
  const leases = createLeases({ now: id => workerOf(id).clock.nowMs })
  const workers = new Map<number, Worker>()
  const silent: number[] = []
  for (let id = 1; id <= count; id++) {
    const worker = {
      process: { id },
      routingId: Buffer.from(`route ${id}`),
      clock: createWorkerClock({ read: () => thread, now: clock.now }),
      heardAt: 0,
    }
    workers.set(id, worker as unknown as Worker)
  }
  const workerOf = (id: number) => workers.get(id) as Worker
  const watch = createWatchdog({
    workers,
    leases,
    onSilent: ({ process }) => {
      silent.push(process.id)
      workers.delete(process.id)
      leases.takeFrom(process.id)
    },
  })
  clock.start(watch)
  return {
    leases,
    silent,
    workerOf,
    /** @param beating ids of workers that beat meanwhile */
    pass(ms: number, beating: number[] = []) {
      for (const until = at + ms; at < until; ) {
        at += SWEEP_MS
        sweep()
        if (at % 1_000 !== 0) continue
        for (const worker of workers.values())
          if (beating.includes(worker.process.id)) worker.heardAt = worker.clock.nowMs
      }
    },
    /** What the system says of each worker from now on: it wants a CPU, and is given this much of one. */
    starve(share: number) {
      thread = {
        isRunnable: true,
        get cpuMs() {
          return at * share
        },
      }
    },
    /** Time passes, and nothing runs: then everything at once. */
    freeze(ms: number) {
      at += ms
      sweep()
    },
  }
}

test('a worker is not waited for after three seconds of silence', () => {
  const { silent, pass } = setup(2)
  pass(SILENT_MS - SWEEP_MS, [2])
  expect(silent).toEqual([])
  pass(2 * SWEEP_MS, [2])
  expect(silent).toEqual([1])
})

test('one with a lease past its deadline is given less time to be silent', () => {
  const { leases, silent, pass } = setup(1)
  leases.grant(1, 2_000, holder, 'late')
  pass(3_000, [1])
  pass(SILENT_OVERDUE_MS - SWEEP_MS)
  expect(silent).toEqual([])
  pass(2 * SWEEP_MS)
  expect(silent).toEqual([1])
})

test('one that is behind but speaks is left to its work, until a lease must be lost', () => {
  const { leases, silent, pass } = setup(1)
  const late = leases.grant(1, 2_000, holder, 'late')
  pass(9_000, [1])
  expect(silent).toEqual([])
  leases.end(late, 1)

  leases.grant(1, 2_000, holder, 'dropped')
  pass(2_000 + LEASE_GRACE_MS + LOST_LEASE_MS - SWEEP_MS, [1])
  expect(silent).toEqual([])
  pass(SWEEP_MS, [1])
  expect(silent).toEqual([1])
})

test('a primary that stood still judges nobody: first it listens', () => {
  const { leases, silent, freeze, pass } = setup(1)
  const lease = leases.grant(1, 2_000, holder, 'a')
  freeze(60_000)
  expect(silent).toEqual([])
  leases.end(lease, 1)
  pass(SILENT_MS - 2 * SWEEP_MS)
  expect(silent).toEqual([])
  pass(2 * SWEEP_MS)
  expect(silent).toEqual([1])
})

test('one that never announces itself is given the time it takes to start', () => {
  const { silent, workerOf, pass } = setup(1)
  workerOf(1).routingId = undefined
  pass(STARTUP_MS - SWEEP_MS)
  expect(silent).toEqual([])
  pass(2 * SWEEP_MS)
  expect(silent).toEqual([1])
})

test('a primary that stands still again and again finds a silent worker all the same', () => {
  const { silent, freeze } = setup(1)
  for (let stalls = 0; stalls < SILENT_MS / SWEEP_MS; stalls++) freeze(1_000)
  expect(silent).toEqual([1])
})

test('a worker that waits for a CPU is not silent for that, nor late with its lease', () => {
  const { leases, silent, starve, pass } = setup(2)
  leases.grant(2, 2_000, holder, 'late')
  starve(0.01)
  pass(60_000)
  expect(silent).toEqual([])
})

test('a worker that hangs in a loop on a busy host is killed once it was given as much CPU as it has on an idle one', () => {
  const { silent, starve, pass } = setup(1)
  starve(0.25)
  pass(4 * (SILENT_MS - SWEEP_MS))
  expect(silent).toEqual([])
  pass(4 * 2 * SWEEP_MS)
  expect(silent).toEqual([1])
})

test('a start takes as long as it needs for want of a CPU', () => {
  const { silent, workerOf, starve, pass } = setup(1)
  workerOf(1).routingId = undefined
  starve(0.1)
  pass(9 * STARTUP_MS)
  expect(silent).toEqual([])
  pass(2 * STARTUP_MS)
  expect(silent).toEqual([1])
})
