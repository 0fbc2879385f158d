import { createReadingTurns } from './reading-turns.ts'

/** Sessions with more to be read than one turn has time for: each message takes half of it. */
function setup({ bytesEach = 10_000, msEach = 5 } = {}) {
  let nowMs = 0
  let turns: (() => void)[] = []
  const turn = (run: () => void) => void turns.push(run)
  const { mayReadOn, forget } = createReadingTurns({ now: () => nowMs, turn })
  const read: string[] = []
  const session = (name: string, payer: string | undefined, messages: number) => {
    let left = messages
    const readOn = () => {
      do {
        if (of.ended) return void read.push('what is ignored')
        if (left === 0) return
        left--
        nowMs += msEach
        read.push(name)
      } while (left === 0 || mayReadOn(of, left * bytesEach))
    }
    const of = { payer, transport: { readOn } } as any
    return of
  }
  const nextTurn = () => {
    const due = turns
    turns = []
    for (const run of due) run()
    return due.length
  }
  return { session, nextTurn, read, forget }
}

const counts = (read: string[]) => [...new Set(read)].map(name => [name, read.filter(each => each === name).length])

test('accounts take turns, however many sessions one of them has', () => {
  const { session, nextTurn, read } = setup()
  const hogs = Array.from({ length: 20 }, (_, id) => session(`hog ${id}`, 'a1.u1', 100))
  for (const { transport } of [...hogs, session('another', 'a2.u2', 10)]) transport.readOn()
  for (let turns = 0; turns < 10; turns++) nextTurn()
  expect(read.filter(name => name === 'another')).toHaveLength(10)
  expect(read.length).toBeLessThan(45)
})

test('whoever is alone is read on to the end, and then nothing is left to do', () => {
  const { session, nextTurn, read } = setup()
  session('one', undefined, 50).transport.readOn()
  let turns = 0
  while (nextTurn() > 0) turns++
  expect([counts(read), turns]).toEqual([[['one', 50]], 25])
})

test('whoever has a few requests under way is read to the end, but of an account one session alone', () => {
  const { session, nextTurn, read } = setup({ bytesEach: 100, msEach: 0.1 })
  const others = [session('one', 'a1.u1', 16), session('two', 'a1.u1', 16), session('another', 'a2.u2', 16)]
  const free = [session('free', undefined, 16), session('free too', undefined, 16)]
  const { transport } = session('first', 'a0.u0', 101)
  transport.readOn()
  for (const { transport } of [...others, ...free]) transport.readOn()
  expect(counts(read)).toEqual([
    ['first', 101],
    ['one', 16],
    ['two', 1],
    ['another', 16],
    ['free', 16],
    ['free too', 16],
  ])
  nextTurn()
  expect(counts(read)[2]).toEqual(['two', 16])
})

test('where many accounts have a few requests under way, that too ends', () => {
  const { session, nextTurn, read } = setup({ bytesEach: 100, msEach: 1 })
  session('first', 'a0.u0', 11).transport.readOn()
  for (let id = 0; id < 100; id++) session(`another ${id}`, `n1.a${id}`, 16).transport.readOn()
  const { length } = read
  expect(length).toBeLessThan(11 + 16 + 100)
  nextTurn()
  expect(read.length).toBeLessThan(length + 30)
})

test('each that is read on has a part of the turn', () => {
  const { session, nextTurn, read } = setup({ msEach: 1 })
  const all = ['one', 'two', 'three', 'four'].map(name => session(name, name, 100))
  for (const { transport } of all) transport.readOn()
  read.length = 0
  nextTurn()
  expect(counts(read)).toHaveLength(4)
})

test('a session that has ended has no turn, and the others go on', () => {
  const { session, nextTurn, read, forget } = setup()
  const [one, two] = [session('one', 'u1', 20), session('two', 'u2', 20)]
  for (const { transport } of [one, two]) transport.readOn()
  one.ended = true
  forget(one)
  expect(read.at(-1)).toBe('what is ignored')
  while (nextTurn() > 0);
  expect(counts(read)).toEqual([
    ['one', 3],
    ['two', 20],
    ['what is ignored', 1],
  ])
})
