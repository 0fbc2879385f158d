import { createAccounts } from './accounts.ts'

function setup() {
  const clock = { nowMs: 0 }
  const accounts = createAccounts({
    sessionsPerUserMax: 2,
    sessionsPerAddressMax: 3,
    requestsPerSecondMax: 100,
    keysPerSessionMax: 50,
    now: () => clock.nowMs,
  })
  return { ...accounts, clock }
}

const peer = { address: '192.0.2.7', isNamed: true }

const session = (keys = 0): any => ({ account: undefined, subscriptions: { size: keys } })

test('a user has one account wherever from, and an address one for all without a user', () => {
  const { of } = setup()
  expect(of('ann', peer)).toBe(of('ann', { address: '192.0.2.8', isNamed: true }))
  expect(of(undefined, peer)).toBe(of(undefined, peer))
  expect(of(undefined, peer)).not.toBe(of('192.0.2.7', peer))
  expect(of(undefined, { ...peer, isNamed: false })).toBeUndefined()
})

test('sessions beyond the limit find no room, until one ends or becomes another account', () => {
  const { of, hasRoom, move } = setup()
  const account = of(undefined, peer)
  const sessions = [session(5), session(), session()]
  for (const each of sessions) {
    expect(hasRoom(account)).toBe(true)
    move(each, account)
  }
  expect(hasRoom(account)).toBe(false)
  expect(account).toMatchObject({ sessions: 3, keys: 5 })
  move(sessions[0], of('ann', peer))
  expect(hasRoom(account)).toBe(true)
  expect(account).toMatchObject({ sessions: 2, keys: 0 })
  expect(of('ann', peer)).toMatchObject({ sessions: 1, keys: 5 })
})

test('connections together have the allowance of a few, which refills', () => {
  const { of, charge, clock } = setup()
  const account = of('ann', peer)
  for (let n = 0; n < 400; n++) expect(charge(account, 1)).toBe(0)
  expect(charge(account, 1)).toBe(3)
  clock.nowMs = 10
  expect(charge(account, 4)).toBe(0)
  expect(charge(account, 1)).toBeGreaterThan(0)
})

test('what is refused costs nothing, and what is larger than the bucket is served when that is full', () => {
  const { of, charge, clock } = setup()
  const account = of('ann', peer)
  expect(charge(account, 1_000)).toBe(0)
  expect(charge(account, 1)).toBe(1_503)
  clock.nowMs = 1_503
  expect(charge(account, 1)).toBe(0)
})

test('keys are charged for all sessions together', () => {
  const { of, keysWaitMs, chargeKeys, clock } = setup()
  const account = of('ann', peer)
  chargeKeys(account, 410)
  expect(keysWaitMs(account)).toBeGreaterThan(0)
  clock.nowMs = 50
  expect(keysWaitMs(account)).toBe(0)
})

test('an account that nobody uses is kept until it has its allowance again: to reconnect buys nothing', () => {
  const { of, charge, move, sweep, size, clock } = setup()
  const account = of('ann', peer)
  const one = session()
  move(one, account)
  charge(account, 400)
  move(one, undefined)
  sweep()
  expect(charge(of('ann', peer), 1)).toBeGreaterThan(0)
  clock.nowMs = 1_000
  sweep()
  expect(size()).toBe(0)
})

test('without an account nothing is counted', () => {
  const { charge, keysWaitMs, chargeKeys, hasRoom } = setup()
  chargeKeys(undefined, 1_000_000)
  expect([charge(undefined, 1_000_000), keysWaitMs(undefined), hasRoom(undefined)]).toEqual([0, 0, true])
})
