import { createStock } from './stock.ts'

const POOL = 10_000

/** `fill` has each payer in turn take as much as it is given. */
function setup() {
  let held = 0
  const stock = createStock({ free: () => POOL - held })
  const take = (payer: string | undefined, amount = 1) => {
    if (!stock.hasRoom(payer, amount)) return undefined
    held += amount
    return stock.charge(payer, amount)
  }
  const fill = (...payers: string[]) => {
    const taken = payers.map(() => 0)
    for (let isTaking = true; isTaking; ) {
      isTaking = false
      for (const [index, payer] of payers.entries()) {
        if (!take(payer)) continue
        isTaking = true
        taken[index]++
      }
    }
    return taken.map(each => each / POOL)
  }
  return {
    stock,
    take,
    fill,
    give(holder: NonNullable<ReturnType<typeof take>>, amount: number) {
      held -= amount
      stock.change(holder, -amount)
    },
  }
}

test.each([
  ['a user alone', ['a1.u1'], 1 / 9],
  ['users without end at one address', Array.from({ length: 100 }, (_, n) => `a1.u${n}`), 1 / 2],
  ['addresses without end in one network', Array.from({ length: 100 }, (_, n) => `n1.a${n}.u${n}`), 2 / 3],
  ['a guest', ['g.A1'], 1 / 13],
  ['guests whose addresses are not counted', ['g.A'], 1 / 4],
  ['guests without end', Array.from({ length: 100 }, (_, n) => `g.A${n}`), 1 / 4],
])('%s: never more than its share', (_, payers, share) => {
  const { fill } = setup()
  expect(fill(...payers).reduce((sum, each) => sum + each, 0)).toBeCloseTo(share, 2)
})

test('whoever took all that they may, another finds room', () => {
  const { fill, take } = setup()
  fill('g.A1', 'n1.a1.u1', 'n1.a1.u2')
  expect(fill('a2.u3')[0]).toBeGreaterThan(0.05)
  expect(take('a2.u4', 100)).toBeDefined()
})

test('what is given back is free again, and nothing is kept of who holds nothing', () => {
  const { stock, take, give, fill } = setup()
  const holder = take('a1.u1', 1_000) as NonNullable<ReturnType<typeof take>>
  expect([stock.loadOf('a1.u1'), stock.loadOf('a2.u1'), stock.size()]).toEqual([1_000, 1_000, 2])
  give(holder, 1_000)
  expect([stock.loadOf('a1.u1'), stock.size()]).toEqual([0, 0])
  expect(fill('a1.u1')[0]).toBeCloseTo(1 / 9, 2)
})

test('a use that nobody pays for is not counted, and kinds of a newer release have no bound', () => {
  const { stock, take } = setup()
  expect(stock.hasRoom(undefined, POOL)).toBe(true)
  expect(take(undefined)).toBeUndefined()
  expect(take('z1', POOL)).toBeDefined()
})
