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
  return { ...accounts, accountOf: (...of: Parameters<typeof accounts.of>) => accounts.of(...of).account, clock }
}

const peer = { address: '192.0.2.7', isNamed: true }

const session = (keys = 0): any => ({ ...peer, account: undefined, subscriptions: { size: keys } })

test('a user has one account wherever from, and an address one for all without a user', () => {
  const { accountOf } = setup()
  expect(accountOf('ann', peer)).toBe(accountOf('ann', { address: '192.0.2.8', isNamed: true }))
  expect(accountOf(undefined, peer)).toBe(accountOf(undefined, peer))
  expect(accountOf(undefined, peer)).not.toBe(accountOf('192.0.2.7', peer))
  expect(accountOf(undefined, { ...peer, isNamed: false })).toBeUndefined()
})

test('sessions beyond the limit find no room, until one ends or becomes another account', () => {
  const { accountOf, hasRoom, enter } = setup()
  const account = accountOf(undefined, peer)
  const sessions = [session(5), session(), session()]
  for (const each of sessions) {
    expect(hasRoom(account)).toBe(true)
    enter(each, undefined)
  }
  expect(hasRoom(account)).toBe(false)
  expect(account).toMatchObject({ sessions: 3, keys: 5 })
  enter(sessions[0], 'ann')
  expect(hasRoom(account)).toBe(true)
  expect(account).toMatchObject({ sessions: 2, keys: 0 })
  expect(accountOf('ann', peer)).toMatchObject({ sessions: 1, keys: 5 })
})

test('an account that was refused as much as it may be gets no session, until that is over; to reconnect buys nothing', () => {
  const { accountOf, hasRoom, enter, leave, sweep, size, clock } = setup()
  const account = accountOf('ann', peer)
  const one = session()
  enter(one, 'ann')
  if (account) account.refusalAllowance.left = -100
  leave(one)
  sweep()
  expect(hasRoom(accountOf('ann', peer))).toBe(false)
  clock.nowMs = 250
  expect(hasRoom(account)).toBe(false)
  clock.nowMs = 251
  expect(hasRoom(account)).toBe(true)
  clock.nowMs = 1_250
  sweep()
  expect(size()).toBe(0)
})

test('an account that nobody uses is kept until it has its allowance again: to reconnect buys nothing', () => {
  const { accountOf, enter, leave, sweep, size, clock } = setup()
  const account = accountOf('ann', peer)
  const one = session()
  enter(one, 'ann')
  if (account) account.requestAllowance.left = 0
  leave(one)
  sweep()
  expect(accountOf('ann', peer)).toBe(account)
  clock.nowMs = 1_000
  sweep()
  expect(size()).toBe(0)
})

test('an account whose requests wait for keys is kept: else it could open as many again', () => {
  const { accountOf, sweep, size } = setup()
  const account = accountOf(undefined, peer)
  if (account) account.keys = 1
  sweep()
  expect(accountOf(undefined, peer)).toBe(account)
  if (account) account.keys = 0
  sweep()
  expect(size()).toBe(0)
})

test('without an account there is always room', () => {
  expect(setup().hasRoom(undefined)).toBe(true)
})
