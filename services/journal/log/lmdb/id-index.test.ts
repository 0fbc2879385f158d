import { createIdIndex } from './id-index.ts'

/** As good as that of a hash: a digest for each would take a minute. */
function printOf(number: number) {
  let mixed = (number ^ (number / 2 ** 32)) >>> 0
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x21f0aaad)
  mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97)
  return (mixed ^ (mixed >>> 15)) >>> 0
}

const find = (index: ReturnType<typeof createIdIndex>, number: number) =>
  index.find(printOf(number), candidate => (candidate === number ? candidate : undefined))

test('each of two million ids is found, no other, and memory is bounded by their number', () => {
  const index = createIdIndex()
  const from = 5_000_000_000
  const count = 2_000_000
  for (let number = from; number < from + count; number++) index.add(printOf(number), number)
  let missing = 0
  for (let number = from; number < from + count; number += 7) if (find(index, number) === undefined) missing++
  expect(missing).toBe(0)

  let looks = 0
  for (let number = from + count; number < from + count + 100_000; number++) {
    index.find(printOf(number), () => {
      looks++
      return undefined
    })
  }
  // Each look is a read of the log. The prints of these differ from all others.
  expect(looks).toBe(0)
  expect(index.stats().bytes).toBeLessThanOrEqual(count * 17)
})

test('ids below a number are forgotten, and memory with them', () => {
  const index = createIdIndex()
  const count = 3_000_000
  for (let number = 1; number <= count; number++) index.add(printOf(number), number)
  const { bytes } = index.stats()
  index.forgetBefore(2_500_000)
  expect(index.stats().bytes).toBeLessThan(bytes / 2)
  expect([2_500_000, 2_777_777, count].map(number => find(index, number))).toEqual([2_500_000, 2_777_777, count])
  index.forgetBefore(count + 1)
  expect(index.stats().bytes).toBe(0)
  expect(find(index, count)).toBeUndefined()
  index.add(printOf(count + 1), count + 1)
  expect(find(index, count + 1)).toBe(count + 1)
})
