import { createLeases, LEASE_GRACE_MS } from './leases.ts'

const holder = { ended() {}, lost() {} }

function setup() {
  let at = 1_000
  return {
    leases: createLeases({ now: () => at }),
    pass: (ms: number) => {
      at += ms
    },
  }
}

test('a lease ends with the result of the worker that has it, once', () => {
  const { leases } = setup()
  const id = leases.grant(1, 2_000, holder, 'a')
  expect(leases.countOf(1)).toBe(1)
  expect(leases.end(id, 1)).toMatchObject({ id, worker: 1, what: 'a' })
  expect(leases.end(id, 1)).toBeUndefined()
  expect(leases.countOf(1)).toBe(0)
})

test('a result from another worker, or for a lease that never was, is none', () => {
  const { leases } = setup()
  const id = leases.grant(1, 2_000, holder, 'a')
  expect(leases.end(id, 2)).toBeUndefined()
  expect(leases.end(id + 1, 1)).toBeUndefined()
  expect(leases.end(id, 1)).toMatchObject({ what: 'a' })
})

test('the late result of a lease that was taken away counts for nothing, also when its fetch is with another', () => {
  const { leases } = setup()
  const id = leases.grant(1, 2_000, holder, 'a')
  leases.grant(2, 2_000, holder, 'b')
  expect(leases.takeFrom(1).map(({ what }) => what)).toEqual(['a'])
  const again = leases.grant(2, 2_000, holder, 'a')
  expect(again).not.toBe(id)
  expect(leases.end(id, 1)).toBeUndefined()
  expect(leases.end(id, 2)).toBeUndefined()
  expect(leases.countOf(2)).toBe(2)
  expect(leases.end(again, 2)).toMatchObject({ what: 'a' })
})

test('a lease outlives its timeout by a second', () => {
  const { leases, pass } = setup()
  leases.grant(1, 2_000, holder, 'a')
  leases.grant(2, 5_000, holder, 'b')
  pass(2_000 + LEASE_GRACE_MS - 1)
  expect([...leases.overdue()]).toEqual([])
  pass(1)
  expect([...leases.overdue()]).toEqual([[1, 0]])
  pass(3_000)
  expect([...leases.overdue()]).toEqual([
    [1, 3_000],
    [2, 0],
  ])
})
