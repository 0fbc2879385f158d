import { slope } from './connections.ts'

test('memory per session is the slope, whatever a process takes without any', () => {
  expect(
    slope([
      [100, 80_800],
      [200, 81_600],
      [300, 82_400],
    ]),
  ).toBeCloseTo(8)
})

test('one look makes no line', () => {
  expect(slope([[100, 80_800]])).toBeUndefined()
  expect(
    slope([
      [100, 80_800],
      [100, 80_900],
    ]),
  ).toBeUndefined()
})
