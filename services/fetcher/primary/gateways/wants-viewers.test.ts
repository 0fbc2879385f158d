// Values that differ per user: each is fetched with its own user's token while that user wants it, and shown to no
// other user.
import { createHash } from 'node:crypto'
import { ANONYMOUS_VIEWER, tokenDigest, userName, viewerKey, viewerOfUser } from '@keycast/backbone'
import { setup as setupPrimary } from '../test-support.ts'

const K = 'me:inbox'
const viewerOf = (user: string) => createHash('sha256').update(user).digest('base64url')
const ann = viewerKey(K, viewerOf('ann'))
const bob = viewerKey(K, viewerOf('bob'))
const anybody = viewerKey(K, ANONYMOUS_VIEWER)

function setup(options?: Parameters<typeof setupPrimary>[0]) {
  const primary = setupPrimary({
    namespaces: { me: { isPerUser: true, refreshMs: 1_000, headers: { 'x-service': 's' } }, doc: {} },
    ...options,
  })
  const token = (name: string, ttlMs = 60_000) => ({
    authorization: `Bearer ${name}`,
    expiresAt: primary.now() + ttlMs,
  })
  return {
    ...primary,
    token,
    /** The credentials of the key's lease. */
    headersOf: (key: string) => primary.lease(key)?.message.headers,
    held: () => [...primary.primary.table.entries()].map(({ key }) => key),
  }
}

test('each user is asked for with their own token, beside what the namespace sends', () => {
  const { watch, get, headersOf, token, value, sent, take } = setup()
  watch('a', ann, undefined, token('ann'))
  get('a', bob, undefined, token('bob'))
  watch('a', anybody)
  expect(headersOf(ann)).toEqual({ 'x-service': 's', authorization: 'Bearer ann' })
  expect(headersOf(bob)).toEqual({ 'x-service': 's', authorization: 'Bearer bob' })
  expect(headersOf(anybody)).toEqual({ 'x-service': 's' })
  value(ann, 'of ann')
  expect(take('a')).toMatchObject([{ type: 'value', key: ann, version: 'of ann' }])
  value(bob, 'of bob')
  expect(sent('a')).toEqual(['value of bob'])
})

test('what the backend gave to one user as a validator is never sent for another', () => {
  const { watch, lease, token, value, current, pass, sent } = setup()
  watch('a', ann, undefined, token('ann'))
  value(ann, 'of ann', { etag: '"shared"' })
  watch('a', bob, undefined, token('bob'))
  expect(lease(bob)?.message).not.toHaveProperty('etag', '"shared"')
  expect(lease(bob)?.message.version).toBeUndefined()
  value(bob, 'of bob', { etag: '"shared"' })
  sent('a')
  pass(2_000)
  expect(lease(bob)?.message).toMatchObject({ etag: '"shared"', version: 'of bob' })
  current(bob, { etag: '"shared"' })
  watch('b', bob, undefined, token('bob'))
  expect(sent('b')).toEqual(['value of bob'])
})

test('gateways share one fetch per user and key', () => {
  const { watch, get, token, asked, value, sent } = setup()
  watch('a', ann, undefined, token('ann'))
  watch('b', ann, undefined, token('ann'))
  get('c', ann, undefined, token('ann'))
  value(ann, 'v1')
  expect(asked(ann)).toBe(1)
  for (const link of ['a', 'b', 'c']) expect(sent(link)).toEqual(['value v1'])
})

test('of the tokens of several gateways the one valid longest is sent, and one that left no more', () => {
  const { watch, headersOf, token, value, onUnwatch, pass } = setup()
  watch('a', ann, undefined, token('short', 30_000))
  watch('b', ann, undefined, token('long'))
  expect(headersOf(ann)?.authorization).toBe('Bearer short')
  value(ann, 'v1')
  pass(1_100)
  expect(headersOf(ann)?.authorization).toBe('Bearer long')
  value(ann, 'v2')
  onUnwatch('b', ann)
  pass(1_100)
  expect(headersOf(ann)?.authorization).toBe('Bearer short')
})

test('a renewed token replaces the one before it, without a fetch', () => {
  const { watch, headersOf, token, value, sent, pass, asked } = setup()
  watch('a', ann, undefined, token('first'))
  value(ann, 'v1')
  sent('a')
  watch('a', ann, { version: 'v1', ageMs: 0 }, token('second', 90_000))
  expect(asked(ann)).toBe(1)
  pass(1_100)
  expect(headersOf(ann)?.authorization).toBe('Bearer second')
})

test.each([0, 60_000])(
  'a value fetched with a revoked token is not sent again: the other token is asked with (refresh %d)',
  refreshMs => {
    const { watch, headersOf, token, value, sent, pass } = setup({ namespaces: { me: { isPerUser: true, refreshMs } } })
    watch('a', ann, undefined, token('revoked'))
    value(ann, 'of revoked')
    sent('a')
    pass(100)
    watch('a', ann, undefined, token('other', 30_000))
    expect(sent('a')).toEqual([])
    expect(headersOf(ann)?.authorization).toBe('Bearer other')
    value(ann, 'of other')
    expect(sent('a')).toEqual(['value of other'])
  },
)

test('a value fetched with a revoked token is not sent beside a failure of the next fetch either', () => {
  const { watch, token, value, fail, sent } = setup()
  watch('a', ann, undefined, token('revoked'))
  value(ann, 'of revoked')
  sent('a')
  watch('a', ann, undefined, token('other', 30_000))
  fail(ann, 'backend_error')
  expect(sent('a')).toEqual(['backend_error'])
})

test('whoever was to be sent such a value is sent the one that the other token brings', () => {
  const { watch, get, token, value, sent } = setup()
  watch('a', ann, undefined, token('revoked'))
  value(ann, 'of revoked')
  sent('a')
  get('b', ann, undefined, token('other', 30_000))
  watch('a', ann, undefined, token('other', 30_000))
  expect(sent('b')).toEqual([])
  value(ann, 'of other')
  expect(sent('b')).toEqual(['value of other'])
})

test('what a revoked token brings after it was revoked is replaced by what the other token brings', () => {
  const { watch, headersOf, token, value, sent } = setup({ namespaces: { me: { isPerUser: true, refreshMs: 0 } } })
  watch('a', ann, undefined, token('revoked'))
  watch('a', ann, undefined, token('other', 30_000))
  value(ann, 'of revoked')
  expect(headersOf(ann)?.authorization).toBe('Bearer other')
  value(ann, 'of other')
  expect(sent('a')).toEqual(['value of other'])
})

test.each(['watch', 'get'])(
  'a 304 to a token that was revoked meanwhile says nothing of what was let go of: %s',
  want => {
    const { watch, get, headersOf, token, value, answer, sent, pass } = setup()
    watch('a', ann, undefined, token('revoked'))
    value(ann, 'of revoked', { etag: '"1"' })
    sent('a')
    pass(1_100)
    watch('a', ann, undefined, token('other', 30_000))
    if (want === 'get') get('b', ann, undefined, token('other', 30_000))
    answer(ann, { kind: 'current', status: 304, etag: '"1"' })
    expect([sent('a'), sent('b')]).toEqual([[], []])
    expect(headersOf(ann)?.authorization).toBe('Bearer other')
    value(ann, 'of other')
    expect(sent(want === 'get' ? 'b' : 'a')).toEqual(['value of other'])
  },
)

test('value and token are let go of with the last who wants them, however they leave', () => {
  const { watch, get, token, value, onUnwatch, onLinkLost, cancelGet, held, leased, pass, primary } = setup()
  watch('a', ann, undefined, token('ann'))
  value(ann, 'v1')
  onUnwatch('a', ann)
  expect(held()).toEqual([])
  expect(primary.table.own()).toBe(0)
  watch('b', ann, undefined, token('ann'))
  value(ann, 'v1')
  onLinkLost('b')
  pass(100)
  expect(held()).toEqual([])
  get('c', ann, undefined, token('ann'))
  cancelGet('c', ann)
  value(ann, 'v2')
  expect(held()).toEqual([])
  pass(10_000)
  expect(leased()).toEqual([])
})

test.each(['get', 'watch'])(
  "a failure of a user's own value holds for its Retry-After, however often the user comes: %s",
  want => {
    const { watch, get, onUnwatch, token, fail, take, pass, asked, lease, primary, value } = setup()
    for (let at = 0; at < 20_000; at += 100) {
      if (want === 'get') get('a', ann, undefined, token('ann'))
      else watch('a', ann, undefined, token('ann'))
      if (lease(ann)) fail(ann, 'backend_throttled', { status: 429, retryAfterMs: 300_000 })
      expect(take('a')).toMatchObject([{ type: 'failed', code: 'backend_throttled', retryAfterMs: expect.any(Number) }])
      if (want === 'watch') onUnwatch('a', ann)
      pass(100)
    }
    expect(asked(ann)).toBe(1)
    // Neither content nor a token stays.
    expect(primary.table.get(ann)).toMatchObject({ held: { value: undefined }, interest: { waiters: undefined } })
    pass(300_000)
    get('b', ann, undefined, token('ann'))
    value(ann, 'v1')
    expect(take('b')).toMatchObject([{ type: 'value', version: 'v1' }])
    expect(primary.table.get(ann)).toBeUndefined()
  },
)

test('one user who is throttled does not slow down the others of the backend', () => {
  const { get, token, fail, leased, primary } = setup()
  const limit = () => [...primary.sources.values()][0].limit.inForce()
  const before = limit()
  for (let i = 0; i < 2 * before; i++) get('a', viewerKey(`me:${i}`, viewerOf('ann')), undefined, token('ann'))
  while (leased().length > 0) for (const key of leased()) fail(key, 'backend_throttled', { status: 429 })
  expect(limit()).toBe(before)
})

test.each([
  ['backend_throttled', 429],
  ['backend_refused', 403],
])('how soon a backend turns one user away is not how quick it is: %s', (code, status) => {
  const { get, token, fail, value, leased, pass, take, primary } = setup({ inFlightMax: 32 })
  const limit = () => [...primary.sources.values()][0].limit.inForce()
  const before = limit()
  const round = (number: number, user: string) => {
    for (let i = 0; i < before; i++) get('a', viewerKey(`me:${number}-${i}`, viewerOf(user)), undefined, token(user))
  }
  for (let number = 0; number < 2; number++) {
    round(number, 'ann')
    for (const key of leased()) fail(key, code as any, { status })
    take('a')
  }
  for (let number = 0; number < 4; number++) {
    round(number, 'bob')
    pass(100)
    for (const key of leased()) value(key, 'v1')
    take('a')
  }
  expect(limit()).toBe(before)
})

test('an expired token is sent to no backend: the value goes, and comes back with another', () => {
  const { watch, token, value, sent, take, pass, asked, held, ownEnded } = setup()
  watch('a', ann, undefined, token('ann', 3_500))
  pass(10, () => {})
  value(ann, 'v1')
  sent('a')
  for (let i = 0; i < 3; i++) {
    pass(1_000)
    if (asked(ann) > i + 1) value(ann, `v${i + 2}`)
  }
  take('a')
  const before = asked(ann)
  pass(3_000)
  expect(asked(ann)).toBe(before)
  expect(take('a')).toMatchObject([{ type: 'failed', code: 'token_expired', key: ann, retryAfterMs: 1_000 }])
  expect(held()).toEqual([])
  expect(ownEnded).toEqual(['expired'])
  watch('a', ann, undefined, token('renewed'))
  value(ann, 'v9')
  expect(sent('a')).toEqual(['value v9'])
})

test('a token that expires while its fetch is queued is not sent', () => {
  const { watch, token, sent, pass, asked, value } = setup({ credit: 1 })
  watch('a', bob, undefined, token('bob'))
  watch('a', ann, undefined, token('ann', 500))
  pass(1_000)
  expect(asked(ann)).toBe(0)
  value(bob, 'v1')
  expect(asked(ann)).toBe(0)
  expect(sent('a')).toEqual(['value v1', 'token_expired'])
})

test('a token that expires between two looks at the clock is not sent, and nobody is asked without it', () => {
  for (let looks = 1; looks < 12; looks++) {
    let left = Number.POSITIVE_INFINITY
    const expiresAt = 2_000_000
    const { watch, lease, fail, pass, sent } = setup({ wallNow: () => expiresAt + (left-- > 0 ? -1 : 1) })
    left = looks
    watch('a', ann, undefined, { authorization: 'Bearer ann', expiresAt })
    const { message } = lease(ann) ?? {}
    if (message) {
      const isSent = message.headers.authorization === 'Bearer ann'
      expect([looks, isSent || message.lacksToken]).toEqual([looks, true])
      fail(ann, 'backend_refused')
      left = 0
      pass(1_000)
    }
    expect([looks, sent('a').at(-1)]).toEqual([looks, 'token_expired'])
  }
})

test('a want without a token, or with one that has expired, is not met', () => {
  const { watch, get, token, sent, leased, value, held, refused } = setup()
  watch('a', ann)
  get('b', ann, undefined, token('ann', -1))
  expect(sent('a')).toEqual(['token_expired'])
  expect(sent('b')).toEqual(['token_expired'])
  expect(leased()).toEqual([])
  // A value fetched with another gateway's token does not meet such a want either.
  watch('c', ann, undefined, token('ann'))
  value(ann, 'v1')
  watch('a', ann)
  expect(sent('a')).toEqual(['token_expired'])
  // The gateway reports that its user's token has expired since: nothing more is done for it.
  watch('c', ann)
  sent('c')
  expect(held()).toEqual([])
  expect(new Set(refused)).toEqual(new Set(['token_expired']))
})

test.each([401, 403])('a user to whom the backend answers %d loses the key and what was held of it', status => {
  const { watch, get, token, value, fail, sent, pass, take, held, leased, ownEnded, refused } = setup()
  watch('a', ann, undefined, token('ann'))
  watch('a', bob, undefined, token('bob'))
  value(ann, 'of ann')
  value(bob, 'of bob')
  sent('a')
  pass(1_100)
  get('b', ann, undefined, token('ann'))
  sent('b')
  fail(ann, 'backend_refused', { status })
  const forbidden = {
    type: 'failed',
    key: ann,
    code: 'forbidden',
    message: 'the backend does not grant this',
    ageMs: 0,
  }
  expect(take('a')).toEqual([{ ...forbidden, tokenDigest: tokenDigest('Bearer ann') }])
  expect(held()).toEqual([bob])
  expect(leased()).toEqual([bob])
  expect(ownEnded).toEqual(['forbidden'])
  expect(refused).toEqual(['forbidden', 'forbidden']) // the watch and the get
})

test('a refusal of a token that was replaced meanwhile says nothing of the one that came', () => {
  const { watch, token, fail, headersOf, value, sent } = setup()
  watch('a', ann, undefined, token('narrow'))
  watch('a', ann, undefined, token('wide', 90_000))
  fail(ann, 'backend_refused', { status: 403 })
  expect(headersOf(ann)?.authorization).toBe('Bearer wide')
  value(ann, 'v1')
  expect(sent('a')).toEqual(['value v1'])
})

test('a refused token ends the wants that came with it: those of other tokens are asked for with theirs', () => {
  const { watch, get, token, value, fail, take, sent, pass, headersOf, asked, ownEnded } = setup()
  watch('good', ann, undefined, token('good', 30_000))
  value(ann, 'v1')
  sent('good')
  watch('revoked', ann, undefined, token('revoked', 90_000))
  watch('late', ann, undefined, token('other', 60_000))
  get('late', ann, undefined, token('revoked', 90_000))
  for (const link of ['revoked', 'late']) sent(link)
  pass(1_100)
  get('late', ann, undefined, token('revoked', 90_000))
  expect(headersOf(ann)?.authorization).toBe('Bearer revoked')
  fail(ann, 'backend_refused', { status: 401 })
  const forbidden = { code: 'forbidden', tokenDigest: tokenDigest('Bearer revoked') }
  expect(take('revoked')).toMatchObject([forbidden])
  expect(headersOf(ann)?.authorization).toBe('Bearer other')
  fail(ann, 'backend_refused', { status: 403 })
  expect(headersOf(ann)?.authorization).toBe('Bearer good')
  expect(sent('good')).toEqual([])
  value(ann, 'v2')
  expect(sent('good')).toEqual(['value v2'])
  expect(sent('late')).toEqual(['forbidden'])
  expect(ownEnded).toEqual(['forbidden', 'forbidden'])
  expect(asked(ann)).toBe(4)
})

test('a link that waits with a refused token is told so, and sent what its watch with another brings', () => {
  const { watch, get, token, value, fail, take } = setup()
  get('a', ann, undefined, token('old', 90_000))
  watch('a', ann, undefined, token('new', 60_000))
  fail(ann, 'backend_refused', { status: 401 })
  value(ann, 'v1')
  expect(take('a')).toMatchObject([
    { code: 'forbidden', tokenDigest: tokenDigest('Bearer old') },
    { type: 'value', version: 'v1' },
  ])
})

test('where only an expired token is left the others hear that', () => {
  const { watch, token, value, fail, sent, pass, leased } = setup()
  watch('short', ann, undefined, token('short', 1_050))
  watch('long', ann, undefined, token('long'))
  value(ann, 'v1')
  for (const link of ['short', 'long']) sent(link)
  pass(1_100)
  fail(ann, 'backend_refused', { status: 403 })
  expect(sent('long')).toEqual(['forbidden'])
  expect(sent('short')).toEqual(['token_expired'])
  expect(leased()).toEqual([])
})

test('to a key that all share 403 is a failure as before', () => {
  const { watch, fail, take } = setup()
  watch('a', 'doc:1')
  fail('doc:1', 'backend_refused', { status: 403 })
  expect(take('a')).toMatchObject([{ code: 'backend_refused', retryAfterMs: expect.any(Number) }])
})

test('a key without a viewer where values differ, and with one where they do not, is refused', () => {
  const { watch, token, sent, leased } = setup()
  watch('a', K, undefined, token('ann'))
  watch('a', viewerKey('doc:1', viewerOf('ann')), undefined, token('ann'))
  expect(sent('a')).toEqual(['unknown_namespace', 'unknown_namespace'])
  expect(leased()).toEqual([])
})

test('a refresh of the key has it asked for of every user who wants it', () => {
  const { watch, token, value, onRefresh, leased, pass } = setup({
    namespaces: { me: { isPerUser: true, refreshMs: 0 } },
  })
  watch('a', ann, undefined, token('ann'))
  watch('b', bob, undefined, token('bob'))
  value(ann, 'v1')
  value(bob, 'v1')
  onRefresh('me:other')
  pass(100)
  expect(leased()).toEqual([])
  onRefresh(K)
  pass(100)
  expect(leased().sort()).toEqual([ann, bob].sort())
})

test('1,000 users of one key: their tokens count as memory, a refresh asks for each, and nothing is left of them', () => {
  const { watch, token, value, onRefresh, onLinkLost, leased, pass, primary } = setup({
    namespaces: { me: { isPerUser: true, refreshMs: 0 } },
    inFlightMax: 100_000,
  })
  const keys = Array.from({ length: 1_000 }, (_, i) => viewerKey(K, viewerOf(`user-${i}`)))
  const long = 'x'.repeat(1_000)
  for (const [i, key] of keys.entries()) watch('a', key, undefined, token(`${i} ${long}`))
  while (leased().length > 0) for (const key of leased()) value(key, 'v1')
  expect(primary.table.own()).toBe(1_000)
  expect(primary.table.stats().bytes).toBeGreaterThan(1_000 * 1_000)
  onRefresh(K)
  let asked = 0
  pass(1_000, () => {
    for (const key of leased()) {
      value(key, 'v2')
      asked++
    }
  })
  expect(asked).toBe(1_000)
  onLinkLost('a')
  pass(1_000)
  expect(primary.table.stats()).toMatchObject({ keys: 0, bytes: 0 })
  expect(primary.table.own()).toBe(0)
})

test("a node that comes to own a user's value leaves it at what the gateway holds, as for other keys, unless the key changed", () => {
  const { watch, token, take, onRefresh, headersOf, pass, asked, onWatch } = setup({
    namespaces: { me: { isPerUser: true, refreshMs: 10_000 } },
  })
  pass(60_000)
  const held = { version: 'v1', ageMs: 4_000, plan: { inMs: 6_000, maxAgeMs: 1_000, askedAgoMs: 4_000 } }
  onWatch('a', { key: ann, held, quiet: true, credentials: token('ann') })
  expect(take('a')).toMatchObject([{ type: 'kept', key: ann }])
  expect(asked(ann)).toBe(0)
  pass(6_100)
  expect(headersOf(ann)?.authorization).toBe('Bearer ann')
  onRefresh(K)
  onWatch('a', { key: bob, held, quiet: true, credentials: token('bob') })
  expect(headersOf(bob)?.authorization).toBe('Bearer bob')
  watch('a', anybody)
})

test("a refresh that names users has their values fetched, of each of their viewers, and nobody else's", () => {
  const { watch, onNotice, lease, token, value } = setup({ namespaces: { me: { isPerUser: true, refreshMs: 0 } } })
  const narrow = viewerKey(K, viewerOfUser(userName('ann'), viewerOf('ann with another scope')))
  for (const key of [ann, narrow, bob, anybody]) {
    watch('a', key, undefined, key === anybody ? undefined : token(key))
    value(key, 'v1')
  }
  onNotice('a', { keys: [K], users: [userName('ann'), userName('nobody')] })
  expect([ann, narrow, bob, anybody].map(key => lease(key) !== undefined)).toEqual([true, true, false, false])
})
