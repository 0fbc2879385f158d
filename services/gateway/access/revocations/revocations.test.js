import { createRevocations, readRevocation, revokes } from './revocations.js'

const NOW_SECONDS = 1_800_000_000

const setup = (options = {}) => {
  const clock = { nowMs: NOW_SECONDS * 1_000 }
  const revocations = createRevocations({ lifetimeMsMax: 3_600_000, now: () => clock.nowMs, ...options })
  return { clock, revocations }
}

/** @param {Partial<import('./revocations.js').Issued>} [issued] */
const token = issued => ({ user: 'ann', issuedAt: NOW_SECONDS, jti: undefined, ...issued })

test("a user's tokens issued before are revoked, those issued since and those of others are not", () => {
  const { revocations } = setup()
  expect(revocations.add({ sub: 'ann', before: NOW_SECONDS })).toBe('added')
  expect(revocations.isRevoked(token({ issuedAt: NOW_SECONDS - 1 }))).toBe(true)
  expect(revocations.isRevoked(token({ issuedAt: NOW_SECONDS }))).toBe(false)
  expect(revocations.isRevoked(token({ user: 'bob', issuedAt: NOW_SECONDS - 1 }))).toBe(false)
})

test('a token that does not say when it was issued counts as older', () => {
  const { revocations } = setup()
  revocations.add({ sub: 'ann', before: 1 })
  expect(revocations.isRevoked(token({ issuedAt: undefined }))).toBe(true)
})

test('a single token is revoked, and others of its user are not', () => {
  const { revocations } = setup()
  expect(revocations.add({ jti: 'a' })).toBe('added')
  expect(revocations.isRevoked(token({ jti: 'a' }))).toBe(true)
  expect(revocations.isRevoked(token({ jti: 'b' }))).toBe(false)
  expect(revocations.isRevoked(token())).toBe(false)
})

test('of two revocations of a user the later one holds, whichever came first', () => {
  const { revocations } = setup()
  revocations.add({ sub: 'ann', before: NOW_SECONDS })
  expect(revocations.add({ sub: 'ann', before: NOW_SECONDS - 100 })).toBe('known')
  expect(revocations.isRevoked(token({ issuedAt: NOW_SECONDS - 1 }))).toBe(true)
  expect(revocations.add({ sub: 'ann', before: NOW_SECONDS + 100 })).toBe('added')
  expect(revocations.isRevoked(token({ issuedAt: NOW_SECONDS + 99 }))).toBe(true)
  expect(revocations.size).toBe(1)
})

test('a revocation goes when the longest-lived of its tokens would have expired, not before', () => {
  const { revocations, clock } = setup()
  revocations.add({ sub: 'ann', before: NOW_SECONDS })
  revocations.add({ jti: 'a' })
  clock.nowMs += 3_599_999
  revocations.sweep()
  expect(revocations.size).toBe(2)
  clock.nowMs += 1
  revocations.sweep()
  expect(revocations.size).toBe(0)
})

test('one that other gateways were told long ago is kept until its tokens have expired, and no longer', () => {
  const { clock, revocations } = setup()
  const agoMs = 3_000_000
  expect(revocations.add({ jti: 'a' }, clock.nowMs - agoMs)).toBe('added')
  expect(revocations.add({ jti: 'b' }, clock.nowMs - 3_600_000)).toBe('known')
  clock.nowMs += 3_600_000 - agoMs
  revocations.sweep()
  expect(revocations.size).toBe(0)
})

test('where no more can be kept a revocation is refused, and none that stands is dropped', () => {
  const { revocations } = setup({ entriesMax: 2 })
  revocations.add({ sub: 'ann', before: NOW_SECONDS })
  revocations.add({ jti: 'a' })
  expect(revocations.add({ jti: 'b' })).toBe('full')
  expect(revocations.add({ sub: 'bob', before: NOW_SECONDS })).toBe('full')
  expect(revocations.add({ jti: 'a' })).toBe('known')
  expect(revocations.add({ sub: 'ann', before: NOW_SECONDS + 1 })).toBe('added')
  expect(revocations.isRevoked(token({ jti: 'a' }))).toBe(true)
})

test('a revocation of now, unless said, is read from what is posted', () => {
  const nowMs = NOW_SECONDS * 1_000 + 500
  expect(readRevocation({ sub: 'ann' }, nowMs)).toEqual({ revocation: { sub: 'ann', before: NOW_SECONDS + 0.5 } })
  expect(readRevocation({ sub: 'ann', before: 7 }, nowMs)).toEqual({ revocation: { sub: 'ann', before: 7 } })
  expect(readRevocation({ jti: 'a' }, nowMs)).toEqual({ revocation: { jti: 'a' } })
})

test.each([
  [undefined],
  [[]],
  [{}],
  [{ sub: '' }],
  [{ sub: 7 }],
  [{ sub: 'ann', before: '7' }],
  [{ sub: 'ann', before: -1 }],
  [{ sub: 'ann', jti: 'a' }],
  [{ jti: 'a', before: 7 }],
  [{ sub: 'a'.repeat(513) }],
])('%j is refused, and what to write is said', given => {
  expect(readRevocation(given, 0)).toEqual({ problem: expect.stringContaining('{"sub":"ann"}') })
})

test('milliseconds in place of seconds are refused: they would shut the user out', () => {
  const given = { sub: 'ann', before: NOW_SECONDS * 1_000 }
  expect(readRevocation(given, NOW_SECONDS * 1_000)).toEqual({ problem: expect.stringContaining('Unix seconds') })
})

test.each([
  ['in the second before', 1_799_999_999, true],
  ['in the same second, which a whole number cannot tell from before it', 1_800_000_000, true],
  ['in the same second, but written with a fraction', 1_800_000_000.5, false],
  ['in the next second', 1_800_000_001, false],
])('of a revocation at 1800000000.4 a token issued %s (%d) is refused: %s', (_, issuedAt, refused) => {
  const read = readRevocation({ sub: 'ann' }, 1_800_000_000_400)
  if ('problem' in read) throw new Error(read.problem)
  expect(revokes(read.revocation, { user: 'ann', issuedAt, jti: undefined })).toBe(refused)
})
