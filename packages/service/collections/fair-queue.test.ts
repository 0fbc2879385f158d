import { randomNumbers } from '../../../test/support/random.js'
import { createFairQueue, type FairQueue } from './fair-queue.ts'

const takeAll = (queue: FairQueue<string>) => Array.from({ length: queue.size }, () => queue.take())

test('lanes take turns, and within a lane the first that was added comes first', () => {
  const queue = createFairQueue<string>()
  for (const item of ['a1', 'a2', 'a3', 'a4']) queue.add(item, ['a'])
  expect(queue.take()).toBe('a1')
  for (const item of ['b1', 'b2']) queue.add(item, ['b'])
  queue.add('c1', [undefined])
  expect(takeAll(queue)).toEqual(['a2', 'b1', 'c1', 'a3', 'b2', 'a4'])
  expect(queue.take()).toBeUndefined()
})

test('an item in two lanes is taken once, where it comes up first', () => {
  const queue = createFairQueue<string>()
  for (const item of ['a1', 'a2', 'both', 'both']) queue.add(item, ['a'])
  queue.add('both', ['b'])
  queue.add('b1', ['b'])
  expect(queue.size).toBe(4)
  expect(takeAll(queue)).toEqual(['a1', 'both', 'a2', 'b1'])
})

test('an item that was deleted is in no lane, and one whose lane is empty costs no turn', () => {
  const queue = createFairQueue<string>()
  queue.add('gone', ['a'])
  for (const item of ['gone', 'b1', 'b2']) queue.add(item, ['b'])
  expect([queue.delete('gone'), queue.delete('gone'), queue.has('gone'), queue.has('b1')]).toEqual([
    true,
    false,
    false,
    true,
  ])
  queue.add('a1', ['a'])
  expect(takeAll(queue)).toEqual(['b1', 'a1', 'b2'])
})

test('a single item needs no lanes: it is taken, deleted, and joined by others', () => {
  const queue = createFairQueue<string>()
  queue.add('a1', ['a'])
  expect([queue.size, queue.has('a1'), queue.take(), queue.size]).toEqual([1, true, 'a1', 0])
  queue.add('a1', ['a'])
  expect([queue.delete('a1'), queue.size, queue.take()]).toEqual([true, 0, undefined])
  queue.add('a1', ['a'])
  queue.add('a1', ['b'])
  queue.add('b1', ['b'])
  expect(takeAll(queue)).toEqual(['a1', 'b1'])
})

test('an office whose users all wait is given a turn for each; one that waits alone beside it waits for one round', () => {
  const queue = createFairQueue<string>()
  for (let round = 1; round <= 2; round++) {
    for (const user of ['x', 'y', 'z']) queue.add(`${user}${round}`, ['office', user])
  }
  for (const item of ['a1', 'a2']) queue.add(item, ['home', 'a'])
  expect(takeAll(queue)).toEqual(['x1', 'y1', 'z1', 'a1', 'x2', 'y2', 'z2', 'a2'])
})

test('however many users a network makes up, it has 32 turns to the one of another', () => {
  const queue = createFairQueue<string>()
  for (let n = 0; n < 1_000; n++) queue.add(`made up ${n}`, ['network', `address ${n}`])
  queue.add('honest', ['home', 'user'])
  expect(takeAll(queue).indexOf('honest')).toBe(32)
})

test('whatever is added, deleted and taken, each item comes once, and a lane gives them in their order', () => {
  const random = randomNumbers(5)
  const queue = createFairQueue<number>()
  const lanes = [['a'], ['b', 'x'], ['b', 'y'], ['c']]
  const waiting = lanes.map(() => new Set<number>())
  let size = 0
  for (let item = 0; item < 20_000; item++) {
    const dice = random()
    const lane = waiting[Math.floor(random() * lanes.length)]
    if (dice < 0.6) {
      queue.add(item, lanes[waiting.indexOf(lane)])
      lane.add(item)
      size++
    } else if (dice < 0.8) {
      const [some] = lane
      if (some === undefined) continue
      expect(queue.delete(some)).toBe(true)
      lane.delete(some)
      size--
    } else if (size > 0) {
      const taken = queue.take() as number
      const from = waiting.find(each => each.has(taken)) as Set<number>
      expect([...from][0]).toBe(taken)
      from.delete(taken)
      size--
    }
    expect(queue.size).toBe(size)
  }
})
