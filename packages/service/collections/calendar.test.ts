import { createCalendar, SWEEP_MS } from './calendar.ts'

interface Entry {
  key: string
  calendarPage: number
}

const createEntry = (key: string): Entry => ({ key, calendarPage: Number.POSITIVE_INFINITY })

function setup() {
  const deadlines = createCalendar<Entry>()
  const entry = createEntry('tick:1')
  const sweep = (nowMs: number): string[] => {
    const due: string[] = []
    for (let entry = deadlines.takeDue(nowMs); entry; entry = deadlines.takeDue(nowMs)) due.push(entry.key)
    return due
  }
  return { deadlines, entry, sweep }
}

test('an entry comes up once, at the first sweep after its time', () => {
  const { deadlines, entry, sweep } = setup()
  deadlines.schedule(entry, 1_001)
  expect(sweep(1_000)).toEqual([])
  expect(sweep(1_001 + SWEEP_MS)).toEqual(['tick:1'])
  expect(sweep(10_000)).toEqual([])
})

test('the earliest of several times counts', () => {
  const { deadlines, entry, sweep } = setup()
  deadlines.schedule(entry, 5_000)
  deadlines.schedule(entry, 1_000)
  deadlines.schedule(entry, 3_000)
  expect(sweep(1_000)).toEqual(['tick:1'])
  expect(sweep(9_000)).toEqual([])
})

test('an entry that is looked at may be scheduled anew, also in the past', () => {
  const { deadlines, entry, sweep } = setup()
  deadlines.schedule(entry, 1_000)
  expect(deadlines.takeDue(1_000)).toBe(entry)
  deadlines.schedule(entry, 500)
  expect(deadlines.takeDue(1_000)).toBeUndefined()
  expect(sweep(1_000 + SWEEP_MS)).toEqual(['tick:1'])
})

test('a clock that stood still for long loses nothing', () => {
  const { deadlines, entry, sweep } = setup()
  const other = createEntry('tick:2')
  deadlines.schedule(other, 2_000)
  deadlines.schedule(entry, 1_000)
  expect(sweep(1e9)).toEqual(['tick:1', 'tick:2'])
})

test('a cancelled entry does not come up, and is not kept', () => {
  const { deadlines, entry, sweep } = setup()
  deadlines.schedule(entry, 1_000)
  deadlines.cancel(entry)
  expect(deadlines.pageCount()).toBe(0)
  expect(sweep(9_000)).toEqual([])
  deadlines.schedule(entry, 10_000)
  expect(sweep(10_000)).toEqual(['tick:1'])
})

test('what is cancelled or scheduled anew between two looks does not come up too early', () => {
  const { deadlines, sweep } = setup()
  const [first, second, third] = ['tick:1', 'tick:2', 'tick:3'].map(createEntry)
  for (const entry of [first, second, third]) deadlines.schedule(entry, 1_000)

  expect(deadlines.takeDue(1_000)).toBe(first)
  deadlines.cancel(second)
  deadlines.cancel(third)
  deadlines.schedule(third, 5_000)

  expect(sweep(1_000)).toEqual([])
  expect(sweep(5_000)).toEqual(['tick:3'])
})

test('a clock that is set back brings up what it comes to again', () => {
  const { deadlines, entry, sweep } = setup()
  expect(sweep(10_000)).toEqual([])
  expect(sweep(4_000)).toEqual([])
  deadlines.schedule(entry, 5_000)
  expect(sweep(4_750)).toEqual([])
  expect(sweep(5_000)).toEqual(['tick:1'])
})
