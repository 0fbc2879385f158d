import { createUnheard, UNHEARD_BYTES_MAX } from './unheard-requests.ts'

const HALF = UNHEARD_BYTES_MAX / 2

test('is full with so many bytes, and no longer once the node has heard some of them', () => {
  const unheard = createUnheard()
  unheard.add(1, HALF)
  expect(unheard.isFull()).toBe(false)
  unheard.add(2, HALF)
  expect(unheard.isFull()).toBe(true)

  unheard.confirm(1)
  expect(unheard.isFull()).toBe(false)
  unheard.confirm(1)
  unheard.add(3, HALF)
  expect(unheard.isFull()).toBe(true)
})

test('a node that says it heard more than was sent frees what was sent, and nothing of what comes later', () => {
  const unheard = createUnheard()
  unheard.add(1, HALF)
  unheard.confirm(1_000_000)
  unheard.add(2, HALF)
  unheard.add(3, HALF)
  expect(unheard.isFull()).toBe(true)
})

test('begins at request 1 again with a new link', () => {
  const unheard = createUnheard()
  unheard.add(1, HALF)
  unheard.confirm(1)
  unheard.add(2, UNHEARD_BYTES_MAX)
  unheard.startAnew()
  expect(unheard.isFull()).toBe(false)

  unheard.add(1, UNHEARD_BYTES_MAX)
  unheard.confirm(1)
  expect(unheard.isFull()).toBe(false)
})
