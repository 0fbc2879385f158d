import { createRevocations, ISSUER_AHEAD_SECONDS_MAX, type Issued, readRevocation } from './revocations.ts'

const NOW_SECONDS = 1_800_000_000

/** For so much longer than its tokens live a revocation is kept. */
const KEPT_MS = 2 * 3_600_000

const setup = (options = {}) => {
  const clock = { nowMs: NOW_SECONDS * 1_000 }
  const revocations = createRevocations({ lifetimeMsMax: 3_600_000, now: () => clock.nowMs, ...options })
  return { clock, revocations }
}

const token = (issued?: Partial<Issued>) => ({ user: 'ann', issuedAt: NOW_SECONDS, jti: undefined, ...issued })

test.each([
  ['no body', undefined],
  ['a text', 'ann'],
  ['no name', { sub: '' }],
  ['a name that is too long', { sub: 'a'.repeat(513) }],
  ['a name that is an object with a length', { jti: { length: { valueOf: 1, toString: 1 } } }],
  ['a user and a token', { sub: 'ann', jti: 'j' }],
])('%s is no revocation, and the problem says what is one', (_, given) => {
  expect(readRevocation(given, NOW_SECONDS * 1_000)).toEqual({
    problem: expect.stringContaining('the body must be {"sub":"ann"}'),
  })
})

test("a user's tokens issued before are revoked, those issued since and those of others are not", () => {
  const { revocations } = setup()
  expect(revocations.add({ sub: 'ann', before: NOW_SECONDS })).toBe('added')
  expect(revocations.isRevoked(token({ issuedAt: NOW_SECONDS - 1 }))).toBe(true)
  expect(revocations.isRevoked(token({ issuedAt: NOW_SECONDS }))).toBe(false)
  expect(revocations.isRevoked(token({ user: 'bob', issuedAt: NOW_SECONDS - 1 }))).toBe(false)
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

test.each([
  ['of a user', { sub: 'ann', before: NOW_SECONDS }, 0],
  ['of a user, from a day ahead', { sub: 'ann', before: NOW_SECONDS + 86_400 }, 86_400],
  ['of a user, from a while ago', { sub: 'ann', before: NOW_SECONDS - 600 }, -600],
  ['of one token, whose issuer may be ahead', { jti: 'a' }, ISSUER_AHEAD_SECONDS_MAX],
])(
  'a revocation %s holds until the last of its tokens would have expired, and goes two hours later',
  (_, revocation, aheadSeconds) => {
    const { revocations, clock } = setup()
    revocations.add(revocation)
    const last = token({ issuedAt: NOW_SECONDS + aheadSeconds - ('sub' in revocation ? 1 : 0), jti: 'a' })
    clock.nowMs += (3_600 + aheadSeconds) * 1_000 - 1
    revocations.sweep()
    expect(revocations.isRevoked(last)).toBe(true)
    clock.nowMs += 1 + KEPT_MS
    revocations.sweep()
    expect(revocations.size).toBe(0)
  },
)

test('a clock that is ahead for a moment has none forgotten, and none that comes then passed over', () => {
  const { revocations, clock } = setup()
  revocations.add({ jti: 'a' })
  revocations.add({ sub: 'ann', before: NOW_SECONDS })
  const toldAtMs = clock.nowMs
  clock.nowMs += 2.5 * 3_600_000
  revocations.sweep()
  revocations.add({ jti: 'b' }, toldAtMs)
  clock.nowMs = toldAtMs
  const issuedAt = NOW_SECONDS - 1
  for (const issued of [{ user: 'bob', jti: 'a' }, { user: 'bob', jti: 'b' }, {}]) {
    expect(revocations.isRevoked(token({ issuedAt, ...issued }))).toBe(true)
  }
})

test('one that a journal whose clock is an hour behind tells of holds for the whole life of its token', () => {
  const { revocations, clock } = setup()
  revocations.add({ jti: 'a' }, clock.nowMs - 3_600_000)
  clock.nowMs += 3_599_000
  revocations.sweep()
  expect(revocations.isRevoked(token({ jti: 'a' }))).toBe(true)
})

test('one that other gateways were told long ago is kept until its tokens have expired, and two hours longer', () => {
  const { clock, revocations } = setup()
  const agoMs = 3_000_000
  expect(revocations.add({ jti: 'a' }, clock.nowMs - agoMs)).toBe('added')
  const longAgoMs = KEPT_MS + 3_600_000
  expect(revocations.add({ jti: 'b' }, clock.nowMs - longAgoMs - ISSUER_AHEAD_SECONDS_MAX * 1_000)).toBe('known')
  const before = NOW_SECONDS - longAgoMs / 1_000
  expect(revocations.add({ sub: 'bob', before }, clock.nowMs - longAgoMs)).toBe('known')
  clock.nowMs += longAgoMs + ISSUER_AHEAD_SECONDS_MAX * 1_000 - agoMs
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

test('a revocation is read from what is posted; of all tokens up to now, unless said, also of an issuer that is ahead', () => {
  const nowMs = NOW_SECONDS * 1_000 + 500
  const before = NOW_SECONDS + 0.5 + ISSUER_AHEAD_SECONDS_MAX
  expect(readRevocation({ sub: 'ann' }, nowMs)).toEqual({ revocation: { sub: 'ann', before } })
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
  const read = readRevocation({ sub: 'ann', before: 1_800_000_000.4 }, 1_800_000_000_400)
  if ('problem' in read) throw new Error(read.problem)
  const { revocations } = setup()
  revocations.add(read.revocation)
  expect(revocations.isRevoked(token({ issuedAt }))).toBe(refused)
})

test('a token that an issuer 30 s ahead issued before its user was signed out is refused for its whole life', () => {
  const { clock, revocations } = setup()
  const issuedAt = NOW_SECONDS - 1 + ISSUER_AHEAD_SECONDS_MAX
  const read = readRevocation({ sub: 'ann' }, clock.nowMs)
  if ('problem' in read) throw new Error(read.problem)
  revocations.add(read.revocation)
  for (const endsAt = (issuedAt + 3_600) * 1_000; clock.nowMs < endsAt; clock.nowMs += 1_000) {
    revocations.sweep()
    expect(revocations.isRevoked(token({ issuedAt }))).toBe(true)
  }
})
