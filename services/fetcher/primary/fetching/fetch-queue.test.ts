import { NO_LANE } from '@keycast/service'
import { createFetchQueue, type FetchQueue, type Lane } from './fetch-queue.ts'

interface Item {
  lane: Lane
  path: readonly unknown[]
  name: string
}

function setup(cap: number) {
  const queue: FetchQueue<Item> = createFetchQueue({ limit: () => cap })
  const running: Item[] = []
  const start = () => {
    for (let item = queue.next(); item; item = queue.next()) running.push(item)
    return running
  }
  const end = (which: (item: Item) => boolean) => {
    const index = running.findIndex(which)
    const [item] = running.splice(index, 1)
    queue.ended(item)
    return item
  }
  const add = (lane: Lane, count = 1, path: readonly unknown[] = NO_LANE) => {
    const items = Array.from({ length: count }, (_, i) => ({ lane, path, name: `${lane} ${i}` }))
    for (const item of items) queue.add(item)
    return items
  }
  const counts = () => ({ cold: queue.inFlightOf('cold'), refresh: queue.inFlightOf('refresh') })
  return { queue, running, start, end, add, counts }
}

test('a cold fetch never waits behind queued refreshes', () => {
  const { queue, running, start, end, add } = setup(4)
  add('refresh', 4)
  start()
  add('refresh', 1_000)
  const [cold] = add('cold')
  start()
  expect(queue.queuedIn('cold')).toBe(1)
  end(() => true)
  start()
  expect(running.at(-1)).toBe(cold)
})

test('neither lane takes more than three quarters of the cap while the other has fetches queued', () => {
  const { start, end, add, counts } = setup(8)
  add('cold', 100)
  add('refresh', 100)
  start()
  expect(counts()).toEqual({ cold: 6, refresh: 2 })
  for (let i = 0; i < 50; i++) {
    end(({ lane }) => lane === 'cold')
    start()
    expect(counts()).toEqual({ cold: 6, refresh: 2 })
  }
})

test('either lane takes the whole cap while the other has nothing, and makes room as its fetches end', () => {
  const { start, end, add, counts } = setup(8)
  add('refresh', 100)
  start()
  expect(counts()).toEqual({ cold: 0, refresh: 8 })
  add('cold', 100)
  for (let i = 0; i < 6; i++) {
    end(({ lane }) => lane === 'refresh')
    start()
  }
  expect(counts()).toEqual({ cold: 6, refresh: 2 })
})

test('where no refresh waits a cold burst takes the whole cap', () => {
  const { start, add, counts } = setup(8)
  add('cold', 100)
  start()
  expect(counts()).toEqual({ cold: 8, refresh: 0 })
})

test('at a cap of one a flood of new keys does not stop refreshes, nor the other way round', () => {
  const { running, start, end, add } = setup(1)
  add('cold', 100)
  add('refresh', 100)
  const order = []
  for (let i = 0; i < 10; i++) {
    start()
    order.push(running[0].lane)
    end(() => true)
  }
  expect(order).toEqual(['cold', 'refresh', 'cold', 'refresh', 'cold', 'refresh', 'cold', 'refresh', 'cold', 'refresh'])
})

test('within a lane what waited longest goes first, and what was given back before it', () => {
  const { queue, running, start, end, add } = setup(1)
  const [first, second] = add('cold', 2)
  start()
  end(() => true)
  queue.putBack(first)
  start()
  expect(running).toEqual([first])
  end(() => true)
  start()
  expect(running).toEqual([second])
})

test('a refresh that somebody begins to wait for changes lanes, one in flight does not', () => {
  const { queue, running, start, end, add, counts } = setup(1)
  const [flying, last, promoted] = add('refresh', 3)
  start()
  queue.promote(flying, 'cold')
  queue.promote(promoted, 'cold')
  expect(queue.queuedIn('cold')).toBe(1)
  expect(counts()).toEqual({ cold: 0, refresh: 1 })
  end(() => true)
  start()
  expect(running).toEqual([promoted])
  expect(queue.queuedIn('refresh')).toBe(1)
  end(() => true)
  expect(counts()).toEqual({ cold: 0, refresh: 0 })
  queue.remove(last)
  start()
  expect(running).toEqual([])
})

test('all that is queued can be taken out', () => {
  const { queue, start, add } = setup(1)
  const [cold] = add('cold')
  const [refresh] = add('refresh')
  const [again] = [{ lane: 'refresh' as const, path: NO_LANE, name: 'again' }]
  queue.putBack(again)
  expect([1, 2, 3, 4].map(() => queue.withdraw())).toEqual([cold, again, refresh, undefined])
  expect(start()).toEqual([])
})

test('starting a fetch walks over no set of those that are queued: a walk costs more with each that was taken before', () => {
  const { queue, add } = setup(1_000)
  add('cold', 500)
  add('refresh', 500)
  const walks = jest.spyOn(Set.prototype, Symbol.iterator)
  while (queue.next());
  expect(walks).not.toHaveBeenCalled()
  walks.mockRestore()
})

test.each(['cold', 'refresh', 'missing'] as const)('of %s fetches, accounts take turns', lane => {
  const { queue, running, start, end, add } = setup(1)
  add(lane)
  start()
  add(lane, 50_000, ['a1'])
  const [other] = add(lane, 1, ['a2'])
  for (let ends = 0; ends < 2; ends++) {
    end(() => true)
    start()
  }
  expect(running).toEqual([other])
  expect(queue.queuedIn(lane)).toBe(49_999)
})

test('a fetch that another account wants, too, comes up in its turn', () => {
  const { queue, running, start, end, add } = setup(1)
  add('cold')
  start()
  const many = add('cold', 1_000, ['a1'])
  const last = many.at(-1) as (typeof many)[0]
  queue.join(last, ['a2'])
  for (let ends = 0; ends < 2; ends++) {
    end(() => true)
    start()
  }
  expect(running).toEqual([last])
})
