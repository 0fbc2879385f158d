import { createRecentRefreshes } from './recent-refreshes.ts'

test('keys are remembered for half a minute from their last refresh on', () => {
  let at = 0
  const recent = createRecentRefreshes({ now: () => at })
  recent.add(['a:1', 'a:2'])
  at = 20_000
  recent.add(['a:1'])
  at = 30_001
  expect(recent.keysFor('n1')).toEqual(['a:1'])
  at = 50_001
  expect(recent.keysFor('n1')).toEqual([])
})

test('of too many the oldest are forgotten', () => {
  const recent = createRecentRefreshes({ now: () => 0 })
  recent.add(Array.from({ length: 100_001 }, (_, i) => `a:${i}`))
  expect(recent.keysFor('n1')).toHaveLength(100_000)
  expect(recent.keysFor('n1')).not.toContain('a:0')
})

test('a node that took the new value itself is not told, but of later changes', () => {
  const recent = createRecentRefreshes({ now: () => 0 })
  recent.add(['a:1', 'a:2'], 'n1')
  recent.add(['a:2'])
  expect([recent.keysFor('n1'), recent.keysFor('n2')]).toEqual([['a:2'], ['a:1', 'a:2']])
})
