import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createWorkerClock, readMainThread, type ThreadState } from './worker-clock.ts'

const PERIOD_MS = 100

/** A clock over a thread that does what the test says. */
function setup() {
  let at = 5_000
  let thread: ThreadState | undefined = { isRunnable: false, cpuMs: 700 }
  const clock = createWorkerClock({ read: () => thread, now: () => at })
  return {
    clock,
    /** @param each what each period gives the thread */
    pass(periods: number, each?: { isRunnable: boolean; cpuMs: number }) {
      for (let period = 0; period < periods; period++) {
        at += PERIOD_MS
        thread = each && { isRunnable: each.isRunnable, cpuMs: (thread?.cpuMs ?? 0) + each.cpuMs }
        clock.advance()
      }
    },
  }
}

test.each([
  ['sleeps, or was stopped', { isRunnable: false, cpuMs: 0 }, 1_000],
  ['has a CPU all the time', { isRunnable: true, cpuMs: PERIOD_MS }, 1_000],
  ['waits for a CPU', { isRunnable: true, cpuMs: 0 }, 0],
  ['is given a tenth of a CPU, and wants more', { isRunnable: true, cpuMs: 10 }, 100],
  ['of which the system says nothing', undefined, 1_000],
])('in a second, the clock of a worker that %s', (_, each, expected) => {
  const { clock, pass } = setup()
  pass(10, each)
  expect(clock.nowMs).toBe(expected)
})

test('more CPU than time has passed, as after a standstill of the primary, counts as that time', () => {
  const { clock, pass } = setup()
  pass(1, { isRunnable: true, cpuMs: 60_000 })
  expect(clock.nowMs).toBe(PERIOD_MS)
})

if (process.platform === 'linux') {
  const until = async (pid: number, condition: (state: ThreadState | undefined) => boolean) => {
    while (!condition(readMainThread(pid))) await new Promise(resolve => setTimeout(resolve, 10))
  }

  test('of a real process the system says whether it runs, and how much CPU it was given', async () => {
    const child = spawn(process.execPath, ['-e', "process.title = 'a) R 1 (b'; for (;;);"])
    const pid = child.pid as number
    try {
      await until(pid, state => state?.isRunnable === true && state.cpuMs >= 200)
      child.kill('SIGSTOP')
      await until(pid, state => state?.isRunnable === false)
    } finally {
      child.kill('SIGKILL')
    }
    await once(child, 'exit')
    expect(readMainThread(pid)).toBeUndefined()
  })
}
