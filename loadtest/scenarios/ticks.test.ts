import type { Change } from '../generator/workloads/subscribe.ts'
import { unite } from './ticks.ts'

const change = (stampUs: number, given: Partial<Change> = {}) => ({
  key: 'tick:1',
  stampUs,
  delivered: 10,
  lastUs: stampUs + 500,
  ...given,
})

test('what several processes saw of a change is one change', () => {
  const united = unite([[change(1_000)], [change(1_000, { delivered: 7, lastUs: 1_900 })]], 10)

  expect(united).toEqual([change(1_000, { delivered: 17, lastUs: 1_900 })])
})

test('changes of two keys at the same time are two', () => {
  expect(unite([[change(1_000), change(1_000, { key: 'tick:2' })]], 10)).toHaveLength(2)
})

test('so many changes count of each key, not of all together', () => {
  const two = [change(1_000), change(1_500, { key: 'tick:2' }), change(2_000), change(2_500, { key: 'tick:2' })]

  expect(unite([two], 1).map(({ key, stampUs }) => [key, stampUs])).toEqual([
    ['tick:1', 1_000],
    ['tick:2', 1_500],
  ])
})

test('a process that missed a change shifts nobody else: the first in time count', () => {
  const all = [change(1_000), change(2_000), change(3_000)]
  const missedOne = [change(1_000), change(3_000), change(4_000)]

  expect(unite([all, missedOne], 3).map(({ stampUs, delivered }) => [stampUs, delivered])).toEqual([
    [1_000, 20],
    [2_000, 10],
    [3_000, 20],
  ])
})
