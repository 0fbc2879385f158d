import { realWorld, SILENT_MS } from '@keycast/service'
import type { Credit } from '../../worker-messages.ts'
import { createTimerWheel, TICK_MS } from '../timing/timer-wheel.ts'
import type { Leaseholder } from './leases.ts'
import { SWEEP_MS } from './watchdog.ts'
import { type Connection, createWorkers } from './workers.ts'

interface FakeProcess {
  id: number
  pid: number
  killed: boolean
  exit: (code?: number) => void
}

/** Workers whose processes do what the test says. */
function setup(count: number) {
  let at = 10_000
  const now = () => at
  let turn = () => {}
  const wheel = createTimerWheel({
    now,
    every: (_, tick) => {
      turn = tick
      return () => {}
    },
  })
  const processes: FakeProcess[] = []
  const sent: { to: string; lease: number; key: string }[] = []
  const results: { key: string; kind: string }[] = []
  const lost: string[] = []
  const counted: string[] = []
  let sweep = () => {}
  let sweeping = false
  let credits = 0

  const connection: Connection = {
    fork(onExit) {
      const process = {
        id: processes.length + 1,
        pid: 1_000 + processes.length,
        killed: false,
        exit: (code = 1) => onExit({ code, signal: null }),
      }
      processes.push(process)
      return {
        ...process,
        disconnect: () => process.exit(0),
        kill: () => {
          process.killed = true
        },
      }
    },
    send: (routingId, { lease, key }) => sent.push({ to: routingId.toString(), lease, key }),
  }
  const holder: Leaseholder<string> = {
    ended: (key, { kind }) => void results.push({ key, kind }),
    lost: key => void lost.push(key),
  }
  const workers = createWorkers({
    ...realWorld,
    count,
    random: () => 1,
    wheel,
    every: (_, tick) => {
      sweep = tick
      sweeping = true
      return () => {
        sweeping = false
      }
    },
    metrics: { workerLost: reason => counted.push(reason), lateResult: () => counted.push('late') },
    log: { info() {}, warn() {}, error() {} },
    now,
    readThread: () => undefined, // the pids here are made up
  })

  const setup = {
    workers,
    processes,
    sent,
    results,
    lost,
    counted,
    credits: () => credits,
    sweeping: () => sweeping,
    /** @param beating ids of workers that beat meanwhile */
    pass(ms: number, beating: number[] = []) {
      for (const until = at + ms; at < until; ) {
        at += TICK_MS
        turn()
        if (at % 1_000 === 0) for (const id of beating) setup.beat(id)
        if (at % SWEEP_MS === 0) sweep()
      }
    },
    beat: (id: number, said?: Partial<Credit>, route: string = `route ${id}`) =>
      workers.onMessage(
        Buffer.from(route),
        { type: 'credit', worker: id, credit: 256, cpuMs: 0, residentBytes: 0, ...said },
        undefined,
      ),
    lease(key: string, timeoutMs = 2_000) {
      workers.lease(holder, key, { key, url: '', headers: {}, timeoutMs, bytesMax: 1, delta: false })
      return sent[sent.length - 1]
    },
    result: ({ to, lease }: { to: string; lease: number }, from: string = to) =>
      workers.onMessage(
        Buffer.from(from),
        { type: 'result', lease, kind: 'current', status: 304, store: true },
        undefined,
      ),
  }
  workers.start(connection, () => {
    credits++
  })
  return setup
}

/** Workers that announced themselves. */
function ready(count: number) {
  const started = setup(count)
  for (const { id } of [...started.processes]) started.beat(id)
  return started
}

test('as many workers are started as told, and none takes a lease before it says so', () => {
  const { workers, processes, beat, lease, sent, credits } = setup(2)
  expect(processes).toHaveLength(2)
  expect(workers.hasCredit()).toBe(false)
  expect(() => lease('doc:1')).toThrow('without credit')
  beat(1)
  expect(credits()).toBe(1)
  expect(workers.hasCredit()).toBe(true)
  expect(workers.stats()).toMatchObject({ ready: 1, credit: 256 })
  expect(workers.pids()).toEqual([1_000])
  lease('doc:1')
  expect(sent).toMatchObject([{ to: 'route 1', key: 'doc:1' }])
})

test('what workers use is summed up, and what those used that ended is not forgotten', () => {
  const { workers, processes, beat } = setup(2)
  beat(1, { cpuMs: 100, residentBytes: 1_000 })
  beat(2, { cpuMs: 50, residentBytes: 2_000 })
  beat(1, { cpuMs: 110, residentBytes: 900 })
  expect(workers.stats()).toMatchObject({ cpuMs: 160, residentBytes: 2_900 })
  processes[0].exit()
  expect(workers.stats()).toMatchObject({ cpuMs: 160, residentBytes: 2_000 })
})

test('a result goes to whoever handed out the lease, once', () => {
  const { lease, result, results, counted, workers } = ready(1)
  const given = lease('doc:1')
  expect(workers.stats().credit).toBe(255)
  result(given)
  result(given)
  expect(results).toEqual([{ key: 'doc:1', kind: 'current' }])
  expect(counted).toEqual(['late'])
  expect(workers.stats().credit).toBe(256)
})

test('a key goes to the same worker, many keys to all of them', () => {
  const { lease, result } = ready(4)
  const keys = Array.from({ length: 400 }, (_, id) => `doc:${id}`)
  const workerOf = keys.map(key => {
    const given = lease(key)
    result(given)
    return given.to
  })
  keys.forEach((key, index) => {
    const given = lease(key)
    result(given)
    expect(given.to).toBe(workerOf[index])
  })
  for (let id = 1; id <= 4; id++) {
    expect(workerOf.filter(to => to === `route ${id}`).length).toBeGreaterThan(60)
  }
})

test('a worker is given no more than its credit; the freest takes what it cannot', () => {
  const { workers, processes, beat, lease, result } = setup(2)
  for (const { id } of [...processes]) beat(id, { credit: 3 })
  const given = Array.from({ length: 6 }, () => lease('doc:same'))
  expect(given.map(({ to }) => to).sort()).toEqual([...Array(3).fill('route 1'), ...Array(3).fill('route 2')])
  expect(workers.hasCredit()).toBe(false)
  result(given[4])
  expect(workers.hasCredit()).toBe(true)
})

test('the leases of a worker that ends are taken from it, and its successor takes its keys', () => {
  const { processes, lease, result, results, lost, counted, beat, pass, workers } = ready(2)
  const first = Array.from({ length: 20 }, (_, id) => lease(`doc:${id}`))
  const dead = first.filter(({ to }) => to === 'route 1')
  processes[0].exit()
  expect(lost).toEqual(dead.map(({ key }) => key))
  expect(counted).toEqual(['exit'])
  expect(workers.stats().ready).toBe(1)
  expect(lease(dead[0].key).to).toBe('route 2')
  result(dead[0]) // leases under way when it died
  expect(results).toEqual([])
  pass(260, [2])
  expect(processes).toHaveLength(3)
  beat(3)
  expect(lease(dead[0].key).to).toBe('route 3')
})

test('a worker that is silent for three seconds is killed, and replaced when it has ended', () => {
  const { processes, lease, lost, result, results, counted, pass, workers, beat } = ready(2)
  const given = Array.from({ length: 20 }, (_, id) => lease(`doc:${id}`, 60_000)).filter(({ to }) => to === 'route 1')
  pass(SILENT_MS - SWEEP_MS, [2])
  expect(processes[0].killed).toBe(false)
  pass(2 * SWEEP_MS, [2])
  expect(processes[0].killed).toBe(true)
  expect(processes[1].killed).toBe(false)
  expect(lost).toEqual(given.map(({ key }) => key))
  expect(counted).toEqual(['silent'])
  // The worker was only slow, and still sends before the signal arrives.
  beat(1)
  result(given[0])
  expect(results).toEqual([])
  expect(workers.stats().ready).toBe(1)
  expect(processes).toHaveLength(2)
  processes[0].exit()
  pass(260, [2])
  expect(processes).toHaveLength(3)
  expect(counted).toEqual(['silent', 'late'])
})

test('results count as beats', () => {
  const { processes, lease, result, pass } = ready(1)
  for (let i = 0; i < 10; i++) {
    const given = lease('doc:1')
    pass(1_000)
    result(given)
  }
  expect(processes[0].killed).toBe(false)
})

test('a worker that speaks by another connection is replaced at once: what the first one had under way is lost', () => {
  const { processes, beat, lease, result, results, lost, counted, workers, pass } = ready(2)
  const given = Array.from({ length: 20 }, (_, id) => lease(`doc:${id}`)).filter(({ to }) => to === 'route 1')
  beat(1, {}, 'route 1 again')
  expect(processes[0].killed).toBe(true)
  expect(processes[1].killed).toBe(false)
  expect(lost).toEqual(given.map(({ key }) => key))
  expect(counted).toEqual(['silent'])
  for (const { key } of given) expect(lease(key).to).toBe('route 2')
  // The worker still sends, by either way, before the signal arrives.
  beat(1, {}, 'route 1 again')
  result(given[0], 'route 1 again')
  expect(results).toEqual([])
  expect(workers.stats().ready).toBe(1)
  processes[0].exit()
  pass(260, [2])
  expect(processes).toHaveLength(3)
})

test('stopping ends all, counts none as lost, and looks for silence no more', async () => {
  const { workers, processes, sweeping, counted, pass } = ready(2)
  await workers.stop()
  expect(sweeping()).toBe(false)
  expect(counted).toEqual([])
  pass(60_000)
  expect(processes).toHaveLength(2)
})

test('a worker whose word could not be taken is killed: others get its leases, and it is replaced', () => {
  const { workers, processes, lost, lease, counted, pass } = ready(2)
  const { to } = lease('doc:1')
  const offender = Number(to.replace('route ', ''))
  workers.end(Buffer.from(to))
  expect(processes.find(({ id }) => id === offender)?.killed).toBe(true)
  expect(lost).toHaveLength(1)
  expect(counted).toEqual(['silent'])
  expect(workers.stats().ready).toBe(1)
  pass(1_000)
  workers.end(Buffer.from('route of nobody'))
  expect(workers.stats().ready).toBe(1)
})
