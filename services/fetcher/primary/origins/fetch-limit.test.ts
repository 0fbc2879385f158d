import { createFetchLimit, LIMIT_INITIAL, LIMIT_MIN, type Sign } from './fetch-limit.ts'

/** A backend that is always asked as much as the limit allows. */
function setup({ max = 1_024 }: { max?: number } = {}) {
  let at = 1_000
  const limit = createFetchLimit({ max, now: () => at })

  /** A round: as many fetches as may be in flight, or as are given, sent at once and ended together. */
  function round({
    tookMs = 50,
    count = limit.inForce(),
    sign = () => 'answered',
  }: {
    tookMs?: number
    count?: number
    sign?: (index: number) => Sign
  } = {}) {
    const sentAt = at
    for (let inFlight = 1; inFlight <= count; inFlight++) limit.started(inFlight)
    at += tookMs
    for (let index = 0; index < count; index++) limit.ended({ sentAt, sign: sign(index) })
    return limit.inForce()
  }
  const rounds = (count: number, options?: Parameters<typeof round>[0]) =>
    Array.from({ length: count }, () => round(options))
  return {
    limit,
    round,
    rounds,
    pass: (ms: number) => {
      at += ms
    },
  }
}

test('it starts where a backend that nothing is known of can be asked, and below a lower ceiling', () => {
  expect(setup().limit.inForce()).toBe(LIMIT_INITIAL)
  expect(setup({ max: 4 }).limit.inForce()).toBe(4)
})

test('it doubles with each round that used it up, as far as the ceiling', () => {
  const { rounds } = setup()

  expect(rounds(3)).toEqual([512, 1_024, 1_024])
})

test('a limit that is not used up does not grow', () => {
  const { rounds } = setup()

  expect(rounds(5, { count: 100 }).at(-1)).toBe(LIMIT_INITIAL)
})

test('a backend that gets slower with more in flight is asked less, and then carefully more', () => {
  const { rounds, limit } = setup()
  rounds(2)

  const slower = rounds(4, { tookMs: 200 })
  expect(slower.at(-1)).toBeLessThan(0.7 * 1_024)

  const cutTo = limit.inForce()
  const [after] = rounds(1, { tookMs: 50 })
  expect(after).toBeGreaterThan(cutTo)
  expect(after).toBeLessThanOrEqual(cutTo + 16)
})

test('after it was only slow it grows ever faster while that goes well, after it said that it was overloaded evenly', () => {
  const growthOf = (bad: Parameters<ReturnType<typeof setup>['round']>[0]) => {
    const { rounds, limit } = setup()
    rounds(2)
    rounds(2, bad)
    const cutTo = limit.inForce()
    return rounds(3, { tookMs: 50 }).map(
      (after, index, all) => Math.round((after - (all[index - 1] ?? cutTo)) / 10) * 10,
    )
  }

  expect(growthOf({ tookMs: 200 })).toEqual([20, 30, 60])
  expect(growthOf({ sign: () => 'overloaded' })).toEqual([20, 20, 20])
})

test('one slow round, as many new keys make, changes nothing', () => {
  const { round, limit } = setup({ max: LIMIT_INITIAL })
  round()

  round({ tookMs: 200 })
  round({ tookMs: 50 })
  round({ tookMs: 200 })

  expect(limit.inForce()).toBe(LIMIT_INITIAL)
})

test('a few milliseconds more are no overload, however quick the backend is', () => {
  const { rounds } = setup({ max: LIMIT_INITIAL })
  rounds(1, { tookMs: 1 })

  expect(rounds(5, { tookMs: 20 }).at(-1)).toBe(LIMIT_INITIAL)
})

test('a backend that is slow while little is in flight is not slow because of that', () => {
  const { rounds, limit } = setup()
  rounds(1)

  rounds(5, { tookMs: 500, count: 20 })

  expect(limit.inForce()).toBe(512)
})

test('the namespaces of a backend share what an unknown backend is asked', () => {
  const limits = [1, 2].map(() => createFetchLimit({ max: 1_024, sources: 2, now: () => 0 }))

  expect(limits.reduce((sum, limit) => sum + limit.inForce(), 0)).toBe(LIMIT_INITIAL)
})

test('a backend that says it is overloaded is asked half of what was in flight', () => {
  const { round } = setup()
  round()

  expect(round({ count: 512, sign: index => (index % 5 === 0 ? 'overloaded' : 'answered') })).toBe(256)
})

test('a single fetch that fails is no overload', () => {
  const { rounds } = setup({ max: LIMIT_INITIAL })

  expect(rounds(3, { sign: index => (index === 0 ? 'overloaded' : 'answered') }).at(-1)).toBe(LIMIT_INITIAL)
})

test('it never falls below what a breaker needs to see', () => {
  const { rounds } = setup()

  expect(rounds(20, { sign: () => 'overloaded' }).at(-1)).toBe(LIMIT_MIN)
})

test('fetches that were lost on our side say nothing', () => {
  const { rounds } = setup()

  expect(rounds(3, { sign: () => 'void' }).at(-1)).toBe(LIMIT_INITIAL)
})

test('what was sent under the limit of before does not count against the present one', () => {
  const { limit, round, pass } = setup()
  round()
  const sentAt = 1_000
  pass(10)

  for (let count = 0; count < 600; count++) limit.ended({ sentAt, sign: 'overloaded' })

  expect(limit.inForce()).toBe(512)
})

test('a backend that has become slower for good is measured anew, at a quarter of the limit', () => {
  const { rounds, limit, pass } = setup({ max: LIMIT_INITIAL })
  rounds(1)
  pass(30_000)

  rounds(1)
  expect(limit.inForce()).toBe(LIMIT_INITIAL / 4)
  rounds(1, { tookMs: 200 })
  expect(limit.inForce()).toBe(LIMIT_INITIAL)

  expect(rounds(5, { tookMs: 200 }).at(-1)).toBe(LIMIT_INITIAL)
})

test('a backend that queues is measured with little in flight: the limit settles where it hardly queues', () => {
  const { rounds, pass, limit } = setup()
  /** It answers 16 at a time, in 50 ms. */
  const queueing = () => rounds(1, { tookMs: 50 * Math.max(1, limit.inForce() / 16) })
  for (let second = 0; second < 600; second++) {
    queueing()
    pass(1_000)
  }

  expect(limit.inForce()).toBeLessThan(160)
  expect(limit.inForce()).toBeGreaterThanOrEqual(16)
})

test('a backend that refuses what it has no room for is seldom driven to that', () => {
  const { round, limit } = setup()
  let asked = 0
  let refused = 0
  for (let count = 0; count < 3_000; count++) {
    const over = Math.max(0, limit.inForce() - 50)
    asked += limit.inForce()
    refused += over
    round({ tookMs: 10, sign: index => (index < over ? 'overloaded' : 'answered') })
  }

  expect(asked / 3_000).toBeGreaterThan(35)
  expect(refused / asked).toBeLessThan(0.04)
})

test('a backend that was down for a second is asked as much as before once it is back', () => {
  const { rounds, limit } = setup({ max: LIMIT_INITIAL })
  rounds(20, { tookMs: 10, sign: () => 'overloaded' })
  expect(limit.inForce()).toBe(LIMIT_MIN)

  rounds(40, { tookMs: 10 })
  expect(limit.inForce()).toBeGreaterThan(LIMIT_INITIAL * 0.75)
})

test('a backend of which a few requests always fail is asked on: its limit does not sink from one overload to the next', () => {
  const { round, limit } = setup({ max: LIMIT_INITIAL })
  let seed = 7
  /** Of a linear congruential generator. @returns 0 up to 1 */
  const random = (): number => {
    seed = (seed * 1_664_525 + 1_013_904_223) % 2 ** 32
    return seed / 2 ** 32
  }
  const limits = Array.from({ length: 6_000 }, () => {
    // As much as it needs, which is most often less than it may.
    const count = Math.min(limit.inForce(), 30 + Math.floor(random() * 40))
    return round({ tookMs: 100, count, sign: () => (random() < 0.06 ? 'overloaded' : 'answered') })
  })

  const mean = limits.reduce((sum, each) => sum + each, 0) / limits.length
  expect(mean).toBeGreaterThan(40)
  expect(Math.max(...limits.slice(-600))).toBeGreaterThan(60)
})
