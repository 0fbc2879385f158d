import {
  costOf,
  createRateLimit,
  fullBucket,
  fullBuckets,
  noteRefusal,
  ratesOf,
  refill,
  waitMsFor,
} from './rate-limit.ts'

function create() {
  let nowMs = 0
  const ended: string[] = []
  const { allowances, ...limit } = createRateLimit({
    requestsPerSecondMax: 100,
    keysPerSessionMax: 1_000,
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

test('what costs more than the whole allowance takes all of it, and is served where nothing was used', () => {
  const take = setup()
  expect(take(0, 10_000)).toBe(0)
  const waitMs = take(0, 10_000)
  expect(waitMs).toBe(2_000)
  expect(take(waitMs, 10_000)).toBe(0)
  expect(take.ended).toEqual([])
})

test('a session that goes on far past the limit is ended', () => {
  const take = setup()
  for (let n = 0; n < 3; n++) take(0, 100)
  expect(take.ended).toEqual([])
  expect(take(0)).toBe(Number.POSITIVE_INFINITY)
  expect(take.ended).toEqual(['abusive'])
})

test.each([
  ['capacity', 'join', undefined, 'subscribe', 'publish'],
  ['capacity', 'subscribe', undefined, 'get', 'unsubscribe'],
  ['capacity', 'publish', 'publish', 'publish', 'join'],
  ['rate_limited', 'publish', 'publish', 'publish', 'subscribe'],
] as const)('after %s for a %s (%s) a %s costs ten more until its time, a %s nothing', (code, _, of, early, other) => {
  const { chargeEarly, session, at } = create()
  noteRefusal(session, { type: 'error', key: 'room:1', code, message: '', retryAfterMs: 5_000 }, 0, of)
  const left = () => session.requestAllowance.left
  at(4_999, () => chargeEarly(session, other))
  expect(left()).toBe(100)
  at(4_999, () => chargeEarly(session, early))
  expect(left()).toBe(90)
  at(5_000, () => chargeEarly(session, early))
  expect(left()).toBe(90)
})

test('a refusal of the whole request, for its rate, has no further price', () => {
  const { chargeEarly, session } = create()
  noteRefusal(session, { type: 'error', code: 'rate_limited', message: '', retryAfterMs: 5_000 }, 0, undefined)
  chargeEarly(session, 'publish')
  expect(session.requestAllowance.left).toBe(100)
})

test('long messages cost more', () => {
  const cost = (text: string) => costOf(Buffer.from(text))
  expect(cost('x'.repeat(10))).toBe(1)
  expect(cost('x'.repeat(1_024))).toBe(2)
  expect(cost('x'.repeat(256 * 1_024))).toBe(257)
})

test('so do messages of many objects or lists: each takes as long as 64 other bytes', () => {
  const cost = (text: string) => costOf(Buffer.from(text))
  expect(cost('{"type":"subscribe","keys":["a:1"]}')).toBe(1)
  expect(cost('[]'.repeat(1_024))).toBe(67)
  expect(cost('{}'.repeat(1_024))).toBe(67)
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

const rate = { perSecond: 100, max: 50 }

test('a bucket begins full, and never holds more', () => {
  const bucket = fullBucket(rate, 1_000)
  expect(refill(bucket, rate, 9_000)).toEqual({ left: 50, atMs: 9_000 })
})

test('debt is paid off as time goes by, however often one looks', () => {
  const bucket = fullBucket(rate, 0)
  bucket.left -= 60
  for (let nowMs = 1; nowMs <= 100; nowMs++) refill(bucket, rate, nowMs)
  expect(bucket.left).toBeCloseTo(0)
})

test('after the time it takes, what was missing has come in, and not before', () => {
  const bucket = fullBucket(rate, 0)
  bucket.left = 0
  const waitMs = waitMsFor(2.55, rate)
  expect(waitMs).toBe(26)
  expect(refill({ ...bucket }, rate, waitMs - 1).left).toBeLessThan(2.55)
  expect(refill({ ...bucket }, rate, waitMs).left).toBeGreaterThanOrEqual(2.55)
})

test('an account has the rates of its shares; as many keys as requests may be named at once, however few a session has', () => {
  const settings = { requestsPerSecondMax: 100, keysPerSessionMax: 50 }
  expect(ratesOf(settings).keys).toEqual({ perSecond: 100, max: 100 })
  expect(ratesOf({ ...settings, keysPerSessionMax: 1_000 }, 4)).toEqual({
    requests: { perSecond: 400, max: 400 },
    keys: { perSecond: 400, max: 4_000 },
  })
})

function setupAccount() {
  const { chargeAccount, keysWaitMs, chargeKeys, at } = create()
  const rates = ratesOf({ requestsPerSecondMax: 100, keysPerSessionMax: 50 }, 4)
  const account = { rates, ...fullBuckets(rates, 0), refusalAllowance: fullBucket(rates.requests, 0) }
  const session = (): any => ({ account, keyAllowance: { left: 1_000, atMs: 0 } })
  return {
    account,
    charge: (nowMs: number, requests: number) => at(nowMs, () => chargeAccount(account, requests)),
    wait: (nowMs: number) => at(nowMs, () => keysWaitMs(session())),
    subscribed: (watchedAnew: number) => chargeKeys(session(), { watchedAnew, watchedBefore: 0 }),
  }
}

test('connections together have the allowance of a few, which refills', () => {
  const { charge } = setupAccount()
  for (let n = 0; n < 400; n++) expect(charge(0, 1)).toBe(0)
  expect(charge(0, 1)).toBe(3)
  expect(charge(10, 4)).toBe(0)
  expect(charge(10, 1)).toBeGreaterThan(0)
})

test('what is refused costs nothing, and what is larger than the bucket is served when that is full', () => {
  const { charge } = setupAccount()
  expect(charge(0, 1_000)).toBe(0)
  expect(charge(0, 1)).toBe(1_503)
  expect(charge(1_503, 1)).toBe(0)
})

test('an account pays for what is refused it, from an allowance of its own that refills', () => {
  const { account, charge } = setupAccount()
  expect(charge(0, 400)).toBe(0)
  expect(account.refusalAllowance.left).toBe(400)
  for (let n = 0; n < 300; n++) charge(0, 1)
  expect(account.refusalAllowance.left).toBe(100)
  charge(0, 1_000_000)
  expect(account.refusalAllowance.left).toBe(-400)
  expect(refill(account.refusalAllowance, account.rates.requests, 2_000).left).toBe(400)
})

test('keys are charged for all sessions of an account together', () => {
  const { wait, subscribed } = setupAccount()
  subscribed(410)
  expect(wait(0)).toBeGreaterThan(0)
  expect(wait(50)).toBe(0)
})

test('a request without an account is charged to nobody', () => {
  expect(create().chargeAccount(undefined, 1_000_000)).toBe(0)
})
