import { costOf, createRateLimit } from './rate-limit.ts'

function create() {
  let nowMs = 0
  const ended: string[] = []
  const { allowances, ...limit } = createRateLimit({
    requestsPerSecondMax: 100,
    keysPerSessionMax: 1_000,
    accounts: { charge: () => 0, keysWaitMs: () => 0, chargeKeys() {} },
    end: (_, code) => ended.push(code),
    now: () => nowMs,
  })
  const at = <T>(atMs: number, run: () => T) => {
    nowMs = atMs
    return run()
  }
  return { ...limit, session: allowances() as any, at, ended }
}

function setup() {
  const { charge, session, at, ended } = create()
  const take = (nowMs: number, tokens = 1) => at(nowMs, () => charge(session, tokens))
  return Object.assign(take, { ended })
}

test("a second's allowance may be used at once, then it refills steadily", () => {
  const take = setup()
  for (let n = 0; n < 100; n++) expect(take(0)).toBe(0)
  expect(take(0)).toBe(20)
  expect(take(20)).toBe(0)
  expect(take(20)).toBe(20)
})

test('an unused allowance does not add up', () => {
  const take = setup()
  expect(take(1_000_000, 100)).toBe(0)
  expect(take(1_000_000)).toBeGreaterThan(0)
})

test('a session that waits as long as it was told is served', () => {
  const take = setup()
  take(0, 100)
  for (let nowMs = 0; nowMs < 10_000; ) {
    const waitMs = take(nowMs, 50)
    expect(take(nowMs + waitMs - 1, 0)).toBe(0)
    nowMs += waitMs
    expect(take(nowMs, 50)).toBe(0)
    take(nowMs, 50)
  }
})

test('a session that goes on far past the limit is ended', () => {
  const take = setup()
  take(0, 300)
  expect(take.ended).toEqual([])
  expect(take(0)).toBe(Number.POSITIVE_INFINITY)
  expect(take.ended).toEqual(['abusive'])
})

test('long messages cost more', () => {
  expect(costOf(10)).toBe(1)
  expect(costOf(1_024)).toBe(2)
  expect(costOf(256 * 1_024)).toBe(257)
})

function setupKeys() {
  const { keysWaitMs, chargeKeys, session, at } = create()
  return {
    wait: (nowMs: number) => at(nowMs, () => keysWaitMs(session)),
    subscribed: (watchedAnew: number, watchedBefore = 0) => chargeKeys(session, { watchedAnew, watchedBefore }),
  }
}

test('all the keys a session may have may be new at once, then as many a second as requests', () => {
  const { wait, subscribed } = setupKeys()
  let keys = 0
  for (let nowMs = 0; nowMs <= 60_000; nowMs += 10) {
    while (wait(nowMs) === 0) {
      subscribed(50)
      keys += 50
    }
  }
  expect(keys).toBeGreaterThanOrEqual(1_000 + 60 * 100)
  expect(keys).toBeLessThanOrEqual(1_000 + 60 * 100 + 50)
})

test('a session that waits as long as it was told may subscribe', () => {
  const { wait, subscribed } = setupKeys()
  subscribed(1_500)
  const waitMs = wait(0)
  expect(waitMs).toBe(5_001)
  expect(wait(waitMs - 2)).toBeGreaterThan(0)
  expect(wait(waitMs)).toBe(0)
})

test('keys that are watched already cost a tenth', () => {
  const { wait, subscribed } = setupKeys()
  subscribed(0, 9_990)
  expect(wait(0)).toBe(0)
  subscribed(0, 10)
  expect(wait(0)).toBe(1)
})
