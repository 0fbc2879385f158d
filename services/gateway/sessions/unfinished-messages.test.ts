import type { Session } from './session.ts'
import { createUnfinished } from './unfinished-messages.ts'

const createSession = (id: string) => ({ id, ended: false }) as Session

test('past the total the session whose unfinished message takes most is to be ended', () => {
  const unfinished = createUnfinished({ messageBytesMax: 1_024, bytesMax: 1_000 })
  const [small, large, last] = ['small', 'large', 'last'].map(createSession)
  expect(unfinished.report(small, 100)).toBeUndefined()
  expect(unfinished.report(large, 800)).toBeUndefined()
  expect(unfinished.report(last, 101)).toBe(large)
  unfinished.forget(large)
  expect(unfinished.bytes()).toBe(201)
})

test('a message that became whole takes nothing any more', () => {
  const unfinished = createUnfinished({ messageBytesMax: 1_024, bytesMax: 1_000 })
  const session = createSession('any')
  for (let count = 0; count < 10; count++) {
    expect(unfinished.report(session, 500)).toBeUndefined()
    expect(unfinished.report(session, 900)).toBeUndefined()
    unfinished.report(session, 0)
  }
  unfinished.forget(session)
  expect(unfinished.bytes()).toBe(0)
})

test('what comes from a session that ended is not counted', () => {
  const unfinished = createUnfinished({ messageBytesMax: 1_024, bytesMax: 1_000 })
  const session = createSession('gone')
  session.ended = true
  expect(unfinished.report(session, 5_000)).toBeUndefined()
  expect(unfinished.bytes()).toBe(0)
})
