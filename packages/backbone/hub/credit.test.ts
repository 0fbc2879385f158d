import { type Account, CREDIT_BYTES, CREDIT_TOTAL_BYTES, createCredit } from './credit.ts'

const MESSAGE_BYTES = 2 ** 16

/** Sends each account one message in turn, until none has room. */
function sendAll(accounts: Account[]) {
  const sent = new Map<Account, number>(accounts.map(account => [account, 0]))
  let open = accounts
  while (open.length > 0) {
    for (const account of open) {
      if (!account.hasRoom()) continue
      account.send(MESSAGE_BYTES)
      sent.set(account, (sent.get(account) ?? 0) + MESSAGE_BYTES)
    }
    open = open.filter(account => account.hasRoom())
  }
  return [...sent.values()]
}

const accountsOf = (credit: ReturnType<typeof createCredit>, count: number) =>
  Array.from({ length: count }, credit.open)

test('one gateway is sent its own credit, and goes on as it takes', () => {
  const credit = createCredit()
  const [account] = accountsOf(credit, 1)
  expect(sendAll([account])).toEqual([CREDIT_BYTES])
  account.take(MESSAGE_BYTES)
  expect(account.hasRoom()).toBe(true)
  expect(credit.bytes()).toBe(CREDIT_BYTES - MESSAGE_BYTES)
})

test('a hundred gateways that take nothing share what there is for all, and leave a share for the next', () => {
  const credit = createCredit()
  const shares = sendAll(accountsOf(credit, 100))
  expect(Math.max(...shares) - Math.min(...shares)).toBeLessThanOrEqual(MESSAGE_BYTES)
  expect(credit.bytes()).toBeLessThanOrEqual(CREDIT_TOTAL_BYTES)
  expect(credit.bytes()).toBeGreaterThan(0.9 * CREDIT_TOTAL_BYTES)
  expect(sendAll(accountsOf(credit, 1))[0]).toBeGreaterThanOrEqual(4 * MESSAGE_BYTES)
})

test('gateways that stall one after the other leave something to each that comes later', () => {
  const credit = createCredit()
  for (const account of accountsOf(credit, 100)) sendAll([account])
  expect(credit.bytes()).toBeLessThanOrEqual(CREDIT_TOTAL_BYTES + 100 * MESSAGE_BYTES)
  const [late] = accountsOf(credit, 1)
  for (let messages = 1; messages <= 10; messages++) {
    expect(late.hasRoom()).toBe(true)
    sendAll([late])
    late.take(Number.MAX_SAFE_INTEGER)
  }
})

test('a gateway that is gone, or reports more than it was sent, gives back no more than it had', () => {
  const credit = createCredit()
  const [liar, leaver] = accountsOf(credit, 2)
  for (const account of [liar, leaver]) account.send(1_000)
  liar.take(5_000)
  liar.take(2_000)
  leaver.close()
  leaver.take(1_000)
  expect(credit.bytes()).toBe(0)
  liar.send(1_000)
  expect(credit.bytes()).toBe(1_000)
})
