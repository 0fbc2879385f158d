import { resultOf } from '../test-support.ts'
import { linesOf, markdownOf, marksOf, measuredOf, ratioText, verdictOf } from './measured.ts'
import type { Run, Seed } from './seed.ts'
import { figure, keycast, reference } from './systems.ts'

const seed = {
  id: '009',
  tables: () => [
    {
      name: 'table',
      title: 'A table',
      systems: [reference('naive'), reference('socket.io'), keycast(), keycast(2), keycast(1, { log: 'memory' })],
      measures: [figure('mean', 'mean, ms', 'lower'), figure('rate', 'a second', 'higher'), figure('cpu', 'CPU')],
      rows: [
        { label: 'few', published: { mean: '43' }, args: () => [], seconds: () => 1 },
        { label: 'many', args: () => [], seconds: () => 1 },
      ],
    },
  ],
} as unknown as Seed

const run = (system: string, figures: Record<string, number>, given: object = {}): Run => ({
  seed: '009',
  table: 'table',
  row: 'few',
  system,
  command: 'npm run loadtest',
  result: resultOf({
    figures: Object.fromEntries(
      Object.entries(figures).map(([name, value]) => [name, { label: name, value, unit: '' }]),
    ),
    ...given,
  }),
})
const lines = (...runs: Run[]) => linesOf(measuredOf(seed, 'full', runs)[0])

test('each row has what was published, each system, and how many times better the best of ours is', () => {
  const [mean, rate, cpu] = lines(
    run('naive-1', { mean: 30, rate: 100, cpu: 5 }),
    run('socket.io-1', { mean: 20, rate: 80, cpu: 5 }),
    run('keycast-1', { mean: 10, rate: 50, cpu: 5 }),
    run('keycast-2', { mean: 8, rate: 40, cpu: 5 }),
  )

  expect(mean).toMatchObject({ label: 'few', measure: 'mean, ms', published: '43', ratio: 2.5 })
  expect(mean.cells.map(({ text, isBest }) => [text, isBest])).toEqual([
    ['30', false],
    ['20', false],
    ['10', false],
    ['8', true],
  ])
  expect(rate).toMatchObject({ published: '', ratio: 0.5 })
  expect(rate.cells.map(({ isBest }) => isBest)).toEqual([true, false, false, false])
  expect(cpu.ratio).toBeUndefined()
})

test('rows and systems that were not run are left out', () => {
  expect(lines(run('naive-1', { mean: 1 })).map(({ label, cells }) => [label, cells.length])).toEqual([
    ['few', 1],
    ['few', 1],
    ['few', 1],
  ])
})

test('a run that does not add up, and one that stands aside, are nobody’s best', () => {
  const [mean] = lines(
    run('naive-1', { mean: 1 }, { addsUp: false }),
    run('socket.io-1', { mean: 20 }),
    run('keycast-1', { mean: 10 }),
    run('keycast-1-memory', { mean: 2 }),
  )

  expect(mean.ratio).toBe(2)
})

test('a system that failed says so, and the others are compared', () => {
  const [mean] = lines(
    { ...run('naive-1', {}), result: undefined, failure: 'naive did not start' },
    run('keycast-1', { mean: 10 }),
  )

  expect(mean.cells[0]).toMatchObject({ text: 'failed', marks: [] })
  expect(mean.ratio).toBeUndefined()
})

test.each([
  [{}, []],
  [{ limit: { limiter: 'generator', text: '', othersRatio: 0 } }, ['g']],
  [{ limit: { limiter: 'both', text: '', othersRatio: 0.5 } }, ['g', 'o']],
  [{ counts: { lost: 3 } }, ['l']],
  [{ addsUp: false, endedBy: 'time' }, ['x', 't']],
])('a run with %j is marked %j', (given, marks) => {
  expect(marksOf(run('naive-1', {}, given))).toEqual(marks)
})

test.each([
  [1.04, 'equal'],
  [0.96, 'equal'],
  [1.2, 'better'],
  [0.8, 'worse'],
  [undefined, 'equal'],
])('a ratio of %p is %s', (ratio, verdict) => {
  expect(verdictOf(ratio)).toBe(verdict)
})

test('ratios are as exact as they are worth', () => {
  expect([0.456, 2.3456, 23.456, 234.56, undefined].map(ratioText)).toEqual(['0.46 ×', '2.35 ×', '23.5 ×', '235 ×', ''])
})

test('a page can have the table as Markdown', () => {
  const [measured] = measuredOf(seed, 'full', [
    run('socket.io-1', { mean: 20 }, { addsUp: false }),
    run('keycast-1', { mean: 10 }),
  ])

  expect(markdownOf(measured).split('\n').slice(0, 3)).toEqual([
    '|  | published | Socket.IO | Keycast | ratio |',
    '| --- | --- | --- | --- | --- |',
    '| few: mean, ms | 43 | 20 (x) | 10 |  |',
  ])
})
