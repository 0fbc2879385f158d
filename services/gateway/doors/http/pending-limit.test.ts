import { createPendingLimit } from './pending-limit.ts'

/** Work that ends when it is told to. */
function manual() {
  const ends: ((how: number | Error) => void)[] = []
  const work = () =>
    new Promise<number>((resolve, reject) => ends.push(how => (typeof how === 'number' ? resolve(how) : reject(how))))
  return { ends, work }
}

test('only so many wait at a time, and the next may once one has its answer', async () => {
  const { ends, work } = manual()
  const { wait } = createPendingLimit(2)
  const first = wait(undefined, work)
  void wait(undefined, work)
  expect(await wait(undefined, work)).toEqual({ problem: { code: 'too_many_waiting', retryAfterMs: 1_000 } })
  expect(ends).toHaveLength(2)

  ends[0](7)
  expect(await first).toEqual({ result: 7 })
  void wait(undefined, work)
  expect(ends).toHaveLength(3)
})

test('work that fails, or needs no wait, takes no place for longer', async () => {
  const { ends, work } = manual()
  const { wait } = createPendingLimit(1)
  expect(await wait(undefined, () => 1)).toEqual({ result: 1 })
  const failing = wait(undefined, work)
  ends[0](new Error('a bug'))
  await expect(failing).rejects.toThrow('a bug')
  expect(await wait(undefined, () => 2)).toEqual({ result: 2 })
})

test('one account has a share of the places, and another finds some', async () => {
  const { ends, work } = manual()
  const { wait } = createPendingLimit(90)
  const waited = Array.from({ length: 20 }, () => wait('a1.u1', work))
  // A ninth of all, as elsewhere.
  expect(ends).toHaveLength(10)
  expect(await waited[10]).toMatchObject({ problem: { code: 'too_many_waiting' } })
  void wait('a2.u2', work)
  expect(ends).toHaveLength(11)
  ends[0](1)
  await waited[0]
  void wait('a1.u1', work)
  expect(ends).toHaveLength(12)
})
