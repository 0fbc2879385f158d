import { createRates } from './rates.js'

test('what arrived is averaged over the last five seconds', () => {
  let nowMs = 0
  const rates = createRates(() => nowMs)
  for (nowMs = 0; nowMs < 10_000; nowMs += 500) {
    rates.received(1_000)
    rates.changed()
  }
  expect(rates.bytesPerSecond()).toBe(2_000)
  expect(rates.changesPerSecond()).toBe(2)
  nowMs += 6_000
  expect(rates.bytesPerSecond()).toBe(0)
})

test('the first second is not taken for a flood', () => {
  let nowMs = 0
  const rates = createRates(() => nowMs)
  nowMs = 10
  rates.received(1_000)
  expect(rates.bytesPerSecond()).toBe(1_000)
})
