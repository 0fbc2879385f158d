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
  const first = wait(work)
  void wait(work)
  expect(await wait(work)).toEqual({ problem: { code: 'too_many_waiting', retryAfterMs: 1_000 } })
  expect(ends).toHaveLength(2)

  ends[0](7)
  expect(await first).toEqual({ result: 7 })
  void wait(work)
  expect(ends).toHaveLength(3)
})

test('work that fails, or needs no wait, takes no place for longer', async () => {
  const { ends, work } = manual()
  const { wait } = createPendingLimit(1)
  expect(await wait(() => 1)).toEqual({ result: 1 })
  const failing = wait(work)
  ends[0](new Error('a bug'))
  await expect(failing).rejects.toThrow('a bug')
  expect(await wait(() => 2)).toEqual({ result: 2 })
})
