import { createAttempts } from './token-attempts.ts'

const setup = (options = {}) => {
  const clock = { nowMs: 0 }
  return { clock, attempts: createAttempts({ now: () => clock.nowMs, perSecond: 10, burst: 3, ...options }) }
}

test('an address that used up its attempts waits, and others do not', () => {
  const { attempts } = setup()
  expect([1, 2, 3].map(() => attempts.take('a'))).toEqual([0, 0, 0])
  expect(attempts.take('a')).toBe(100)
  expect(attempts.take('b')).toBe(0)
})

test('after the time it was told an address may try again', () => {
  const { attempts, clock } = setup()
  for (let n = 0; n < 3; n++) attempts.take('a')
  clock.nowMs += attempts.take('a')
  expect(attempts.take('a')).toBe(0)
  expect(attempts.take('a')).toBe(100)
})

test('to be refused costs nothing, and a rest makes up for no more than the burst', () => {
  const { attempts, clock } = setup()
  for (let n = 0; n < 1_000; n++) attempts.take('a')
  clock.nowMs += 3_600_000
  expect([1, 2, 3, 4].map(() => attempts.take('a'))).toEqual([0, 0, 0, 100])
})

test('good tokens cost nothing in the end', () => {
  const { attempts } = setup()
  for (let n = 0; n < 1_000; n++) {
    expect(attempts.take('a')).toBe(0)
    attempts.giveBack('a')
  }
})

test('what is given back never makes more than the burst', () => {
  const { attempts } = setup()
  for (let n = 0; n < 10; n++) attempts.giveBack('a')
  expect([1, 2, 3, 4].map(() => attempts.take('a'))).toEqual([0, 0, 0, 100])
})

test('an address that goes on trying is remembered while a stream of others passes', () => {
  const { attempts } = setup({ addressesMax: 100 })
  for (let n = 0; n < 3; n++) attempts.take('a')
  const told = new Set()
  for (let n = 0; n < 10_000; n++) {
    attempts.take(`other ${n}`)
    told.add(attempts.take('a'))
  }
  expect(told).toEqual(new Set([100]))
})
