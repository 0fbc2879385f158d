import { errorCodes } from './codes.js'
import { isProblem, problemText } from './problem.ts'

test('a problem says what its code says, unless it says more', () => {
  expect(problemText({ code: 'capacity' })).toBe(errorCodes.capacity)
  expect(problemText({ code: 'capacity', message: 'no room for rooms' })).toBe('no room for rooms')
})

test('an answer with a code is a problem', () => {
  expect(isProblem({ code: 'capacity' })).toBe(true)
  expect(isProblem({ seq: 1 })).toBe(false)
})
