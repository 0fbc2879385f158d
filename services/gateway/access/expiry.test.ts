import { createExpiries, type Expiries, GRACE_MS } from './expiry.ts'

const START_MS = 1_800_000_000_000

const setup = () => {
  const seen: string[] = []
  const expiries: Expiries<{ name: string }> = createExpiries({
    expired: ({ name }) => seen.push(`${name} expired`),
    over: ({ name }) => seen.push(`${name} over`),
  })
  const sweepAt = (afterMs: number) => {
    seen.length = 0
    expiries.sweep(START_MS + afterMs)
    return [...seen]
  }
  return { expiries, sweepAt, ann: { name: 'ann' }, bob: { name: 'bob' } }
}

test('a session is told once when its token expires, and is over when the grace is', () => {
  const { expiries, sweepAt, ann } = setup()
  expiries.schedule(ann, START_MS + 5_000)
  expect(sweepAt(4_999)).toEqual([])
  expect(sweepAt(5_000)).toEqual(['ann expired'])
  expect(sweepAt(6_000)).toEqual([])
  expect(sweepAt(5_000 + GRACE_MS - 1)).toEqual([])
  expect(sweepAt(5_000 + GRACE_MS)).toEqual(['ann over'])
  expect(sweepAt(1_000_000)).toEqual([])
  expect(expiries.size).toBe(0)
})

test('a session is never told early, and at most a page late', () => {
  const { expiries, sweepAt, ann } = setup()
  expiries.schedule(ann, START_MS + 5_001)
  expect(sweepAt(5_000)).toEqual([])
  expect(sweepAt(6_000)).toEqual(['ann expired'])
})

test('another token begins anew, also within the grace', () => {
  const { expiries, sweepAt, ann } = setup()
  expiries.schedule(ann, START_MS + 5_000)
  sweepAt(5_000)
  expiries.schedule(ann, START_MS + 60_000)
  expect(sweepAt(59_000)).toEqual([])
  expect(sweepAt(60_000)).toEqual(['ann expired'])
})

test('a session that ended does not come up, and the others do', () => {
  const { expiries, sweepAt, ann, bob } = setup()
  expiries.schedule(ann, START_MS + 5_000)
  expiries.schedule(bob, START_MS + 5_000)
  expiries.cancel(ann)
  expect(sweepAt(5_000)).toEqual(['bob expired'])
  expiries.cancel(bob)
  expect(sweepAt(5_000 + GRACE_MS)).toEqual([])
  expect(expiries.size).toBe(0)
})

test('after a leap of the clock a session is told and over at once, in the order of the times', () => {
  const { expiries, sweepAt, ann, bob } = setup()
  expiries.schedule(ann, START_MS + 60_000)
  expiries.schedule(bob, START_MS + 5_000)
  expect(sweepAt(10 * 365 * 24 * 3_600_000)).toEqual(['bob expired', 'bob over', 'ann expired', 'ann over'])
})

test('a token that had expired before it was scheduled comes up with the next sweep', () => {
  const { expiries, sweepAt, ann } = setup()
  expiries.schedule(ann, START_MS - 1_000)
  expect(sweepAt(0)).toEqual(['ann expired'])
})

test('a token brought while a session is told keeps it from being over', () => {
  const seen: string[] = []
  const ann = {}
  const expiries = createExpiries({
    expired: item => expiries.schedule(item, START_MS + 3_600_000),
    over: () => seen.push('over'),
  })
  expiries.schedule(ann, START_MS)
  expiries.sweep(START_MS + 100_000)
  expect(seen).toEqual([])
  expect(expiries.size).toBe(1)
})
