import { realWorld } from '@keycast/service'
import { createTimerWheel, TICK_MS } from '../timing/timer-wheel.ts'
import { createSupervisor } from './supervisor.ts'

interface FakeProcess {
  place: number
  killed: boolean
  disconnected: boolean
  exit: (code?: number) => void
  onKill: () => void
}

/** Processes that do what the test says. */
function setup(count: number) {
  let at = 10_000
  let turn = () => {}
  const now = () => at
  const processes: FakeProcess[] = []
  const ended: string[] = []
  const supervisor = createSupervisor({
    ...realWorld,
    count,
    fork(onExit) {
      const process = {
        place: -1,
        killed: false,
        disconnected: false,
        exit: (code = 1) => onExit({ code, signal: null }),
        onKill: () => {},
      }
      const id = processes.push(process)
      return {
        id,
        pid: 1_000 + id,
        disconnect: () => {
          process.disconnected = true
        },
        kill: () => {
          process.killed = true
          process.onKill()
        },
      }
    },
    onStart: (place, { id }) => {
      processes[id - 1].place = place
    },
    onEnd: ({ id }, { code }) => ended.push(`${id} by ${code}`),
    random: () => 1,
    wheel: createTimerWheel({
      now,
      every: (_, tick) => {
        turn = tick
        return () => {}
      },
    }),
    now,
  })
  supervisor.start()
  return {
    supervisor,
    processes,
    ended,
    pass(ms: number) {
      for (const until = at + ms; at < until; ) {
        at += TICK_MS
        turn()
      }
    },
  }
}

test('a process that ends is replaced, in its place', () => {
  const { processes, ended, pass } = setup(2)
  expect(processes.map(({ place }) => place)).toEqual([0, 1])
  processes[1].exit(3)
  expect(ended).toEqual(['2 by 3'])
  pass(260)
  expect(processes.map(({ place }) => place)).toEqual([0, 1, 1])
})

test('those that do not live are started ever more slowly, five seconds apart at most', () => {
  const { processes, pass } = setup(1)
  const gaps = []
  for (let i = 0; i < 9; i++) {
    processes[processes.length - 1].exit()
    let waited = 0
    while (processes.length === i + 1 && waited < 10_000) {
      pass(TICK_MS)
      waited += TICK_MS
    }
    gaps.push(waited)
  }
  expect(gaps).toEqual([250, 500, 1_000, 2_000, 4_000, 5_000, 5_000, 5_000, 5_000])
})

test('one that lived long is replaced at once, and what came before is forgotten', () => {
  const { processes, pass } = setup(1)
  processes[0].exit()
  pass(260)
  pass(60_000)
  processes[1].exit()
  expect(processes).toHaveLength(3)
  processes[2].exit()
  pass(240)
  expect(processes).toHaveLength(3)
  pass(20)
  expect(processes).toHaveLength(4)
})

test('stopping tells all to go, starts none anew, and ends when none is left', async () => {
  const { supervisor, processes, ended, pass } = setup(2)
  const stopped = supervisor.stop()
  expect(processes.every(({ disconnected }) => disconnected)).toBe(true)
  processes[0].exit(0)
  processes[1].exit(0)
  await stopped
  pass(60_000)
  expect(processes).toHaveLength(2)
  expect(ended).toEqual([])
})

test('one that does not go when told is killed', async () => {
  const { supervisor, processes } = setup(2)
  const stopped = supervisor.stop()
  processes[0].exit(0)
  processes[1].onKill = processes[1].exit
  await stopped
  expect(processes.map(({ killed }) => killed)).toEqual([false, true])
})

test('there is nothing to wait for where none runs', async () => {
  const { supervisor, processes } = setup(1)
  processes[0].exit()
  await supervisor.stop()
})
