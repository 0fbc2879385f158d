import { fnv1a } from './fnv1a.ts'

test("it agrees with the values of the algorithm's authors", () => {
  expect(fnv1a('') >>> 0).toBe(0x811c9dc5)
  expect(fnv1a('a') >>> 0).toBe(0xe40c292c)
  expect(fnv1a('foobar') >>> 0).toBe(0xbf9cf968)
})
