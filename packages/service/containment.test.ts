import { createContainment, noContainment } from './containment.ts'
import { createLog } from './log.ts'
import { createMetrics } from './metrics/metrics.ts'

/** A containment whose log, clock and restarts the test sees. */
function setup() {
  const lines: Record<string, any>[] = []
  const log = createLog({ name: 'keycast-test', destination: { write: line => lines.push(JSON.parse(line)) } })
  const clock = { ms: 1_000 }
  const containment = createContainment({ ends: ['session', 'link'], log, now: () => clock.ms })
  const restarts: [string, boolean][] = []
  containment.onRestart((why, isInDoubt) => restarts.push([why, isInDoubt]))
  const counts = () => ({ ...containment.counts })
  return { containment, lines, clock, restarts, counts }
}

const bug = () => {
  throw new TypeError('a bug')
}

test('what works is passed through, with its result', async () => {
  const { containment, counts } = setup()
  const guarded = containment.guard('session', (a: number, b: number) => a + b, bug)
  expect(guarded(1, 2)).toBe(3)
  expect(await containment.guard('session', async () => 4, bug)()).toBe(4)
  expect(counts()).toEqual({ session: 0, link: 0, process: 0 })
})

test('an error ends what it came with, is counted and logged, and the caller goes on', () => {
  const { containment, lines, restarts, counts } = setup()
  const ended: string[] = []
  const handle = containment.guard(
    'session',
    (who: string) => (who === 'bad' ? bug() : who),
    who => ended.push(who),
  )
  expect(['good', 'bad', 'good'].map(who => handle(who))).toEqual(['good', undefined, 'good'])
  expect(ended).toEqual(['bad'])
  expect(counts()).toEqual({ session: 1, link: 0, process: 0 })
  expect(lines).toMatchObject([{ level: 'error', ended: 'session', total: 1, err: { type: 'TypeError' } }])
  expect(lines[0].err.stack).toContain('containment.test.ts')
  expect(restarts).toEqual([])
})

test('so does a promise that rejects', async () => {
  const { containment, counts } = setup()
  const ended: string[] = []
  const handle = containment.guard(
    'link',
    async (_: string) => bug(),
    who => ended.push(who),
  )
  expect(await handle('bad')).toBeUndefined()
  expect(ended).toEqual(['bad'])
  expect(counts().link).toBe(1)
})

test('if the end fails too, what others share is in doubt: the process restarts, once', () => {
  const { containment, restarts, counts } = setup()
  const handle = containment.guard('session', bug, bug)
  handle()
  handle()
  expect(counts()).toEqual({ session: 2, link: 0, process: 2 })
  expect(restarts).toEqual([[expect.stringContaining('half changed'), true]])
})

test('an error while something is applied for all has the process restart', () => {
  const { containment, restarts } = setup()
  let ended = 0
  containment.guard('link', bug, () => ended++, { isForAll: true })()
  expect(ended).toBe(1)
  expect(restarts).toEqual([[expect.stringContaining('half changed'), true]])
})

test('ten within a minute have the process restart; nine do not, however often', () => {
  const { containment, clock, restarts } = setup()
  const handle = containment.guard('session', bug, () => {})
  for (let minute = 0; minute < 5; minute++) {
    for (let error = 0; error < 9; error++) handle()
    clock.ms += 60_000
  }
  expect(restarts).toEqual([])
  for (let error = 0; error < 10; error++) {
    clock.ms += 5_000
    handle()
  }
  expect(restarts).toEqual([['10 unforeseen errors within a minute', false]])
})

test('a flood of errors is counted in full, and logged ten times a minute', () => {
  const { containment, lines, clock, counts } = setup()
  const handle = containment.guard('session', bug, () => {})
  for (let error = 0; error < 1_000; error++) handle()
  expect(lines).toHaveLength(10)
  clock.ms += 60_000
  handle()
  expect(lines).toHaveLength(11)
  expect(lines[10].total).toBe(1_001)
  expect(counts().session).toBe(1_001)
})

test('every count is exported from the start, at zero', async () => {
  const { containment } = setup()
  const metrics = createMetrics({ service: 'test' })
  containment.export(metrics)
  containment.caught('link', new Error('a bug'))
  const exposition = await metrics.registry.metrics()
  for (const line of ['{ended="session"} 0', '{ended="link"} 1', '{ended="process"} 0']) {
    expect(exposition).toContain(`keycast_test_unexpected_errors_total${line}`)
  }
})

test('without containment an error goes on to the caller', () => {
  expect(() => noContainment.guard('session', bug, () => {})()).toThrow('a bug')
  expect(() => noContainment.caught('session', new Error('a bug'))).toThrow('a bug')
})
