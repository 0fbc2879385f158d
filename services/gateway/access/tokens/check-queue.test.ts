import { createCheckQueue } from './check-queue.ts'

/** A check that ends when it is told to. */
const manual = () => {
  const ends: (() => void)[] = []
  return { ends, check: () => new Promise(resolve => ends.push(() => resolve(undefined))) }
}

test('so many run at once, the others one after the other', async () => {
  const { ends, check } = manual()
  const queue = createCheckQueue({ atOnce: 2, waitingMax: 10 })
  const checks = Array.from({ length: 5 }, () => queue.run(check))
  expect(ends).toHaveLength(2)
  for (let over = 1; over <= 5; over++) {
    ends[over - 1]()
    await checks[over - 1]
    expect(ends.length).toBe(Math.min(5, over + 2))
  }
})

test('one more than may wait is not made, until there is room', async () => {
  const { ends, check } = manual()
  const queue = createCheckQueue({ atOnce: 1, waitingMax: 2 })
  const checks = [queue.run(check), queue.run(check), queue.run(check)]
  expect(queue.run(check)).toBeUndefined()
  ends[0]()
  await checks[0]
  expect(queue.run(check)).toBeDefined()
})

test('the result is given on, and a check that fails makes room as any other', async () => {
  const queue = createCheckQueue({ atOnce: 1 })
  const failing = queue.run(() => Promise.reject(new Error('wrong')))
  const good = queue.run(async () => 7)
  await expect(failing).rejects.toThrow('wrong')
  expect(await good).toBe(7)
})

test('a queue that is never empty keeps what waits, and no more', async () => {
  const queue = createCheckQueue({ atOnce: 1, waitingMax: 3 })
  let made = 0
  const check = async () => made++
  const chain = async () => {
    for (let n = 0; n < 100; n++) await queue.run(check)
  }
  await Promise.all([chain(), chain(), chain()])
  expect(made).toBe(300)
})
