import { createCharges, drawCharge, kindOf } from './charges.ts'

const random = () => 0.5

test.each([
  ['n1.a1.u1', 'users'],
  ['u1', 'users'],
  ['g.N1.A1', 'guests'],
  ['g.A', 'guests'],
  ['n1.a1', 'addresses'],
])('%s is charged with %s', (payer, kind) => {
  expect(kindOf(payer)).toBe(kind)
})

test('a message that weighs more than a charge is charged as it is; of lighter ones as many as weigh that together', () => {
  const log = { bytesMax: 2 ** 15 * 1_000, random }
  expect(drawCharge(5_000, log)).toBe(5_000)
  expect(drawCharge(1_000, log)).toBe(1_000)
  const drawn = Array.from({ length: 100 }, (_, n) => drawCharge(10, { ...log, random: () => n / 100 }))
  expect(drawn.filter(bytes => bytes > 0)).toEqual([1_000])
})

test('a payer that has had its share is refused, and what is taken back may be had again', () => {
  const charges = createCharges<string>({ bytesMax: 1_000, random })
  expect(charges.refusalOf('a1.u1', 100, 1_000)).toBeUndefined()
  expect(charges.add('room:1', 1, 'a1.u1', 100)).toEqual({ payer: 'a1.u1', bytes: 100 })
  expect(charges.refusalOf('a1.u1', 100, 900)).toBe('capacity')
  expect(charges.refusalOf('a1.u2', 100, 900)).toBeUndefined()
  expect(charges.refusalOf('a1.u2', 100, 700)).toBe('log_full')
  expect(charges.refusalOf(undefined, 100, 700)).toBeUndefined()
  expect(charges.stats()).toEqual({ users: 100, guests: 0, addresses: 0 })

  expect(charges.take('room:1', 2)).toBeUndefined()
  expect(charges.take('room:1', 1)).toEqual({ payer: 'a1.u1', bytes: 100 })
  expect(charges.take('room:1', 1)).toBeUndefined()
  expect(charges.refusalOf('a1.u1', 100, 1_000)).toBeUndefined()
  expect(charges.stats()).toEqual({ users: 0, guests: 0, addresses: 0 })
})

test('what is loaded takes the place of what was there; nobody is charged for what nobody pays', () => {
  const charges = createCharges<string>({ bytesMax: 1_000, random })
  charges.add('room:1', 1, 'g.A1', 100)
  expect(charges.add('room:1', 2, undefined, 100)).toBeUndefined()
  charges.load([{ room: 'room:2', seq: 3, charge: { payer: 'a1', bytes: 70 } }])
  expect(charges.stats()).toEqual({ users: 0, guests: 0, addresses: 70 })
  expect(charges.take('room:1', 1)).toBeUndefined()
  expect(charges.take('room:2', 3)).toEqual({ payer: 'a1', bytes: 70 })
})
