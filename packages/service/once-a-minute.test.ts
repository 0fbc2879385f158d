import { createOnceAMinute } from './once-a-minute.ts'

test('each subject is let through once a minute', () => {
  let at = 0
  const isLogDue = createOnceAMinute(() => at)
  expect([isLogDue('a'), isLogDue('a'), isLogDue('b')]).toEqual([true, false, true])
  at = 59_999
  expect(isLogDue('a')).toBe(false)
  at = 60_000
  expect(isLogDue('a')).toBe(true)
})
