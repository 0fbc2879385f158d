import { errorCodes } from './codes.js'
import { isProblem, problemText, retryAfterMsOf } from './problem.ts'

test('a problem says what its code says, unless it says more', () => {
  expect(problemText({ code: 'capacity' })).toBe(errorCodes.capacity)
  expect(problemText({ code: 'capacity', message: 'no room for rooms' })).toBe('no room for rooms')
})

test('whatever is full, who finds no room is told when to come back', () => {
  expect(retryAfterMsOf({ code: 'capacity' })).toBe(5_000)
  expect(retryAfterMsOf({ code: 'capacity', retryAfterMs: 7 })).toBe(7)
  expect(retryAfterMsOf({ code: 'forbidden' })).toBeUndefined()
})

test('an answer with a code is a problem', () => {
  expect(isProblem({ code: 'capacity' })).toBe(true)
  expect(isProblem({ seq: 1 })).toBe(false)
})
