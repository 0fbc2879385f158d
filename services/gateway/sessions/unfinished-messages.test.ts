import type { Session } from './session.ts'
import { createUnfinished } from './unfinished-messages.ts'

const createSession = (id: string, payer?: string) => ({ id, payer, ended: false }) as Session

test('past the total the session whose unfinished message takes most is to be ended', () => {
  const unfinished = createUnfinished({ messageBytesMax: 1_024, bytesMax: 1_000 })
  const [small, large, last] = ['small', 'large', 'last'].map(id => createSession(id))
  expect(unfinished.report(small, 100)).toBeUndefined()
  expect(unfinished.report(large, 800)).toBeUndefined()
  expect(unfinished.report(last, 101)).toBe(large)
  unfinished.forget(large)
  expect(unfinished.bytes()).toBe(201)
})

test('sessions that take little each, but most together, cost another client nothing', () => {
  const unfinished = createUnfinished({ messageBytesMax: 1_024, bytesMax: 1_000 })
  const flood = Array.from({ length: 9 }, (_, number) => createSession(`flood ${number}`, `g.N1.A${number % 3}`))
  for (const [number, session] of flood.entries()) expect(unfinished.report(session, 100 + number)).toBeUndefined()
  const user = createSession('user', 'n2.a2.u2')
  expect(unfinished.report(user, 300)).toBe(flood[8])
  unfinished.forget(flood[8])
  unfinished.forget(user)
  expect(unfinished.report(createSession('guest', 'g.N2.A4'), 300)).toBe(flood[7])
})

test('it is found at once, however many sessions there are: strangers choose how often it is looked for', () => {
  const unfinished = createUnfinished({ messageBytesMax: 1_024, bytesMax: 9_000_000 })
  const payer = (number: number) => `g.N1.A${number % 9}`
  const sessions = Array.from({ length: 9_000 }, (_, number) => createSession(`${number}`, payer(number)))
  for (const session of sessions) expect(unfinished.report(session, 1_000)).toBeUndefined()
  const beganAt = performance.now()
  for (let number = 0; number < 1_000; number++) {
    const session = unfinished.report(createSession(`next ${number}`, payer(number)), 1_000) as Session
    expect(session).toBeDefined()
    unfinished.forget(session)
  }
  // A look at all of them took ten seconds.
  expect(performance.now() - beganAt).toBeLessThan(1_000)
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
