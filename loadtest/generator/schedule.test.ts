import { createSchedule, type Schedule } from './schedule.ts'

const setup = ({ intervalMs = 1_000, phase = 0 } = {}) => {
  let nowUs = 5_000_000
  const due: { item: string; dueUs: number }[] = []
  const late: number[] = []
  const schedule: Schedule<string> = createSchedule({
    intervalMs,
    phase,
    nowUs: () => nowUs,
    onDue: ({ item }, dueUs) => due.push({ item, dueUs }),
    onLate: lateUs => late.push(lateUs),
  })
  return {
    schedule,
    due,
    late,
    pass(ms: number) {
      nowUs += ms * 1_000
      schedule.run()
    },
  }
}

test('a client is due once an interval, at the same distance', () => {
  const { schedule, due, pass } = setup()
  const { firstUs } = schedule.add('a')

  for (let ms = 0; ms < 5_000; ms += 7) pass(7)

  expect(due.map(({ dueUs }) => dueUs)).toEqual([0, 1, 2, 3, 4].map(number => firstUs + number * 1_000_000))
})

test('what a pause made late is still due at its own time, and the lateness is told', () => {
  const { schedule, due, late, pass } = setup({ intervalMs: 100 })
  const { firstUs } = schedule.add('a')

  pass(450)

  expect(due.map(({ dueUs }) => dueUs - firstUs)).toEqual([0, 100_000, 200_000, 300_000])
  expect(late).toEqual([0, 1, 2, 3].map(number => 5_450_000 - firstUs - number * 100_000))
})

test('clients are spread evenly over the interval, however many there are', () => {
  const { schedule, due, pass } = setup()
  for (let number = 0; number < 500; number++) schedule.add(`client ${number}`)

  pass(1_000)

  const perTenth = Array(10).fill(0)
  for (const { dueUs } of due) perTenth[Math.floor((dueUs % 1_000_000) / 100_000)] += 1
  expect(due).toHaveLength(500)
  for (const count of perTenth) expect(Math.abs(count - 50)).toBeLessThanOrEqual(2)
})

test('processes with different phases do not send at the same instant', () => {
  const one = setup({ phase: 0 })
  const other = setup({ phase: 0.5 })

  expect(one.schedule.add('a').slot).not.toBe(other.schedule.add('b').slot)
})

test('a client that left is due no more', () => {
  const { schedule, due, pass } = setup()
  const entry = schedule.add('a')
  schedule.add('b')

  schedule.remove(entry)
  pass(1_000)

  expect(due.map(({ item }) => item)).toEqual(['b'])
})
