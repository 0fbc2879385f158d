import { createPlaces } from './places.ts'

test('there are so many places, and those given back are free again', () => {
  const { take } = createPlaces(10)
  const giveBack = take(undefined, 6)
  expect(take(undefined, 5)).toBeUndefined()
  giveBack?.()
  expect(take(undefined, 10)).toBeDefined()
})

test('an account has a share, of which it has as much again once it gives back', () => {
  const { take } = createPlaces(90)
  const all = Array.from({ length: 90 }, () => take('uann', 1)).filter(each => each !== undefined)
  expect(all).toHaveLength(10)
  expect(take('ubob', 1)).toBeDefined()
  all[0]()
  expect(take('uann', 1)).toBeDefined()
})
