import { createFlusher } from './flusher.ts'

/** @param options how long each flush takes */
function setup({ flushMs = 0 }: { flushMs?: number } = {}) {
  let nowMs = 0
  const turns: (() => void)[] = []
  const flushed: string[] = []
  const flusher = createFlusher({
    flush: ({ id }) => {
      flushed.push(id)
      nowMs += flushMs
    },
    now: () => nowMs,
    nextTurn: run => turns.push(run),
  })
  const session = (id: string) => ({ id, dirty: false }) as any
  const turn = () => turns.shift()?.()
  return { ...flusher, session, flushed, turn, turns }
}

test('a session is flushed once a turn, however often it was marked', () => {
  const { mark, session, flushed, turn, turns } = setup()
  const a = session('a')
  mark(a)
  mark(a)
  mark(session('b'))
  expect(turns).toHaveLength(1)
  turn()
  expect(flushed).toEqual(['a', 'b'])
  mark(a)
  turn()
  expect(flushed).toEqual(['a', 'b', 'a'])
})

test('a fan-out to thousands yields after 10 ms, and goes on in the next turn', () => {
  const { mark, session, flushed, turn, turns } = setup({ flushMs: 1 })
  for (let n = 0; n < 3_000; n++) mark(session(`${n}`))
  turn()
  expect(flushed).toHaveLength(16)
  expect(turns).toHaveLength(1)
  mark(session('later'))
  expect(turns).toHaveLength(1)
  while (turns.length > 0) turn()
  expect(flushed).toHaveLength(3_001)
  expect(flushed.at(-1)).toBe('later')
  expect(new Set(flushed).size).toBe(3_001)
})

test('a fence is reached when all marked before it were flushed', () => {
  const { mark, fence, session, turn, turns } = setup({ flushMs: 1 })
  const reached: string[] = []
  for (let n = 0; n < 20; n++) mark(session(`${n}`))
  fence(() => reached.push('first'))
  mark(session('after'))
  fence(() => reached.push('second'))
  turn()
  expect(reached).toEqual([])
  turn()
  turn()
  expect(reached).toEqual(['first', 'second'])
  expect(turns).toHaveLength(0)
})

test('a fence with nothing before it is reached in the next turn', () => {
  const { fence, turn } = setup()
  let reached = false
  fence(() => {
    reached = true
  })
  expect(reached).toBe(false)
  turn()
  expect(reached).toBe(true)
})
