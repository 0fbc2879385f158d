import { costOf, createLimits } from './limits.js'

function setup() {
  const { take, tokensAtStart } = createLimits({ requestsPerSecondMax: 100 })
  const session = /** @type {any} */ ({ tokens: tokensAtStart, tokensAtMs: 0 })
  /** @param {number} nowMs @param {number} [tokens] */
  return (nowMs, tokens = 1) => take(session, tokens, nowMs)
}

test("a second's allowance may be used at once, then it refills steadily", () => {
  const take = setup()
  for (let n = 0; n < 100; n++) expect(take(0)).toBe(0)
  expect(take(0)).toBe(10)
  expect(take(20)).toBe(0)
  expect(take(20)).toBe(10)
})

test('patience is not hoarded', () => {
  const take = setup()
  expect(take(1_000_000, 100)).toBe(0)
  expect(take(1_000_000)).toBeGreaterThan(0)
})

test('who waits as long as told is served', () => {
  const take = setup()
  take(0, 100)
  const waitMs = take(0, 50)
  expect(take(waitMs + 10)).toBe(0)
})

test('who goes on far past the limit is to be closed', () => {
  const take = setup()
  take(0, 300)
  expect(take(0)).toBe(Number.POSITIVE_INFINITY)
})

test('long messages cost more', () => {
  expect(costOf(10)).toBe(1)
  expect(costOf(1_024)).toBe(2)
  expect(costOf(256 * 1_024)).toBe(257)
})
