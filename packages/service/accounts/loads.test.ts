import { createRandom } from '../../../test/support/random.js'
import { createLoads } from './loads.ts'

test('the largest is the largest item of the account that holds most, within the account around it that does', () => {
  const loads = createLoads<string>()
  expect(loads.largest()).toBeUndefined()
  for (const item of ['one', 'two', 'three']) loads.set(item, 'n1.a1.u1', 10 + item.length)
  loads.set('alone', 'n2.a2.u2', 30)
  expect(loads.largest()).toBe('three')
  loads.delete('three')
  expect(loads.largest()).toBe('alone')
  loads.set('beside', 'n1.a3.u3', 20)
  expect(loads.largest()).toBe('two')
  expect(loads.total()).toBe(76)
})

test('what is held for nobody counts together', () => {
  const loads = createLoads<number>()
  for (let item = 0; item < 9; item++) loads.set(item, undefined, 10 + item)
  loads.set(9, 'a1.u1', 50)
  expect(loads.largest()).toBe(8)
})

test('whatever comes, changes and goes, it is as a look at all of them says, and nothing is left behind', () => {
  const { integer: below } = createRandom(7)
  const loads = createLoads<number>()
  const held = new Map<number, { payer: string | undefined; amount: number }>()
  for (let step = 0; step < 3_000; step++) {
    const item = below(60)
    if (below(3) === 0) {
      held.delete(item)
      loads.delete(item)
    } else {
      const payer =
        held.get(item)?.payer ?? [undefined, `n${item % 3}.a${item % 5}.u${item}`, `g.A${item % 4}`][item % 3]
      // No two are alike, as one of several largest would do.
      const amount = below(1_000) + item / 64
      held.set(item, { payer, amount })
      loads.set(item, payer, amount)
    }
    expect(loads.largest()).toBe(largestOf(held))
  }
  for (const item of held.keys()) loads.delete(item)
  expect([loads.largest(), loads.total()]).toEqual([undefined, 0])
})

function largestOf(held: Map<number, { payer: string | undefined; amount: number }>) {
  let left = [...held]
  for (let depth = 0; left.length > 1; depth++) {
    const shares = Map.groupBy(left, ([item, { payer }]) =>
      payer === undefined && depth === 0 ? undefined : (payer?.split('.')[depth] ?? item),
    )
    const loadOf = (share: typeof left) => share.reduce((sum, [, { amount }]) => sum + amount, 0)
    left = [...shares.values()].reduce((one, other) => (loadOf(other) > loadOf(one) ? other : one))
  }
  return left[0]?.[0]
}
