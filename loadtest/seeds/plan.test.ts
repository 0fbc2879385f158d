import { parseRun } from '../command-line/cli.ts'
import { seeds } from './index.ts'
import { commandOf, planOf, planText, spanText } from './plan.ts'
import type { Size } from './seed.ts'

const sizes: Size[] = ['full', 'medium', 'quick']

test.each(sizes)('at %s size every run is a command line that the load test takes', async size => {
  for (const { args, system } of planOf(seeds, size)) {
    const { options } = await parseRun(args)
    expect(`${commandOf(args)}: ${options.start === 'keycast'}`).toBe(`${commandOf(args)}: ${system.isKeycast}`)
  }
})

test.each(sizes)('at %s size every workload is run against Keycast and against another', size => {
  for (const seed of seeds) {
    const plan = planOf([seed], size)
    for (const table of seed.tables(size)) {
      for (const { label } of table.rows) {
        const runs = plan.filter(planned => planned.table.name === table.name && planned.row.label === label)
        expect([seed.id, label, new Set(runs.map(({ system }) => system.isKeycast)).size]).toEqual([seed.id, label, 2])
        expect(runs.every(({ seconds }) => seconds > 0)).toBe(true)
      }
    }
  }
})

test('names are unique: of systems in a table, of rows in a table, of tables and charts in a seed', () => {
  const isUnique = (names: string[]) => new Set(names).size === names.length
  for (const seed of seeds) {
    const tables = seed.tables('full')
    expect(isUnique(tables.map(({ name }) => name))).toBe(true)
    expect(
      isUnique(seed.charts(tables.map(table => ({ table, runOf: () => undefined }))).map(({ name }) => name)),
    ).toBe(true)
    for (const { systems, rows, measures } of tables) {
      for (const names of [
        systems.map(({ name }) => name),
        rows.map(({ label }) => label),
        measures.map(m => m.name),
      ]) {
        expect(isUnique(names)).toBe(true)
      }
    }
  }
})

test('what stands beside each other is run in turns, and each system is the first once', () => {
  const webChats = seeds.filter(({ id }) => id === '001')
  const plan = planOf(webChats, 'medium')
  const [first, second] = [plan.slice(0, 6), plan.slice(6, 12)]

  expect(new Set(first.map(({ row }) => row.label)).size).toBe(1)
  expect(second.map(({ system }) => system.name)).toEqual([1, 2, 3, 4, 5, 0].map(at => first[at].system.name))
})

test('the whole of it is of full size, and said to be long', () => {
  const plan = planOf(seeds, 'full')
  const commands = plan.map(({ args }) => commandOf(args))

  for (const command of [
    'http --connections 10000 --seconds 30 --start http',
    'chat --clients 1000 --publishers 100 --messages 20 --every 1000ms --start keycast --gateways 4',
    'chat --clients 100 --rooms 4 --messages 500 --every 10ms --names --settle 8m --start socketcluster',
    'capacity --study --faster-after 333 --clients 18000 --hold 10s --time-max 40m --tls --start keycast --gateways 2',
    'ticker --clients 25000 --ramp 834 --keys 100 --changes 120 --change 500ms --processes 2 --start keycast --gateways 2',
    'pingpong --clients 100 --ramp 1 --rate 1700 --seconds 20 --start socketcluster',
    'pingpong --clients 42000 --ramp 160 --every 6000ms --seconds 60 --processes 3 --start keycast --gateways 3',
    'crash --clients 5000 --every 500ms --calm 5000ms --start keycast --gateways 2',
  ]) {
    expect(commands).toContain(`npm run loadtest -- ${command}`)
  }
  expect(planText(plan)).toMatch(/in all \d+ runs, about \d h/)
})

test.each([
  [4, '4 s'],
  [89, '89 s'],
  [90, '2 min'],
  [3_540, '59 min'],
  [7_500, '2 h 5 min'],
])('%d seconds are %s', (seconds, text) => {
  expect(spanText(seconds)).toBe(text)
})
