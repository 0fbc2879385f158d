import { createAccounts } from './accounts.ts'

function setup() {
  const clock = { nowMs: 0 }
  const accounts = createAccounts({
    accountsSecret: '',
    hasUsers: () => true,
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

test('an account that nobody uses is kept until it has its allowance again: to reconnect buys nothing', () => {
  const { of, move, sweep, size, clock } = setup()
  const account = of('ann', peer)
  const one = session()
  move(one, account)
  if (account) account.requestAllowance.left = 0
  move(one, undefined)
  sweep()
  expect(of('ann', peer)).toBe(account)
  clock.nowMs = 1_000
  sweep()
  expect(size()).toBe(0)
})

test('an account whose requests wait for keys is kept: else it could open as many again', () => {
  const { of, sweep, size } = setup()
  const account = of(undefined, peer)
  if (account) account.keys = 1
  sweep()
  expect(of(undefined, peer)).toBe(account)
  if (account) account.keys = 0
  sweep()
  expect(size()).toBe(0)
})

test('without an account there is always room', () => {
  expect(setup().hasRoom(undefined)).toBe(true)
})
