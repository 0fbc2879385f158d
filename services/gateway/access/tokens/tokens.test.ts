import { createHmac, createPublicKey, createSecretKey } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { exportJWK, exportSPKI, generateKeyPair, SignJWT, UnsecuredJWT } from 'jose'
import { createRandom } from '../../../../test/support/random.js'
import { VIEWER_CLAIMS } from '../backend/viewer-name.ts'
import type { TokenIssuer } from '../policy-file.ts'
import { createRevocations } from '../revocations/revocations.ts'
import { createRights, decide } from '../rights.ts'
import { readRule } from '../rule.ts'
import { createAttempts } from '../token-attempts.ts'
import { type CheckQueue, createCheckQueue } from './check-queue.ts'
import { refusalReasons } from './refusal.ts'
import { createTokens, type Tokens } from './tokens.ts'

const NOW_SECONDS = 1_800_000_000
const LIFETIME_SECONDS_MAX = 30 * 24 * 3_600
const ISSUER = 'https://id.example.com/'
const SECRET = Buffer.from('a secret of more than 32 bytes, it is')
const OTHER_SECRET = Buffer.from('another secret, it has 32 bytes or more')

let ec: Awaited<ReturnType<typeof generateKeyPair>>
let otherEc: Awaited<ReturnType<typeof generateKeyPair>>
/** The public key as it lies in a file. */
let pem: string
let keySet = ''
let asked = 0
const server = createServer((_, response) => {
  asked++
  response.end(keySet)
})
let url = ''
beforeAll(async () => {
  ec = await generateKeyPair('ES256', { extractable: true })
  otherEc = await generateKeyPair('ES256', { extractable: true })
  pem = await exportSPKI(ec.publicKey)
  keySet = JSON.stringify({ keys: [{ ...(await exportJWK(ec.publicKey)), kid: 'k' }] })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
})
afterAll(() => {
  server.closeAllConnections()
  return new Promise(resolve => server.close(resolve))
})

type Kind = 'secret' | 'publicKey' | 'jwks'

const kinds: Kind[] = ['secret', 'publicKey', 'jwks']

const issuerOf = (kind: Kind, changes?: Partial<TokenIssuer>): TokenIssuer => ({
  name: `access.tokens.${kind}`,
  algorithms: kind === 'secret' ? ['HS256'] : ['ES256'],
  type: undefined,
  issuer: ISSUER,
  audience: 'keycast',
  prefix: '',
  jwks: kind === 'jwks' ? url : undefined,
  keys: kind === 'secret' ? [createSecretKey(SECRET)] : kind === 'publicKey' ? [createPublicKey(pem)] : [],
  viewer: VIEWER_CLAIMS,
  ...changes,
})

const created: Tokens[] = []
afterEach(() => {
  for (const tokens of created.splice(0)) tokens.stop()
})

const setup = (issuers: TokenIssuer[], changes?: Partial<Parameters<typeof createTokens>[0]>) => {
  const clock = { nowMs: 0, wallMs: NOW_SECONDS * 1_000 }
  const now = () => clock.nowMs
  const wallNow = () => clock.wallMs
  const { rule: everyone } = readRule({ read: ['user:{sub}'] }, { user: true, strict: true })
  const { rule: anonymous } = readRule({}, { user: false, strict: true })
  const revocations = createRevocations({ lifetimeMsMax: LIFETIME_SECONDS_MAX * 1_000, now: wallNow })
  const tokens = createTokens({
    policy: { tokens: issuers, claim: 'keys', lifetimeMsMax: LIFETIME_SECONDS_MAX * 1_000 },
    rights: createRights({ anonymous, everyone }),
    revocations,
    attempts: createAttempts({ now }),
    now,
    wallNow,
    ...changes,
  })
  created.push(tokens)
  const verify = (token: unknown, address = 'a') => tokens.verify(token, { address })
  const reasonOf = async (token: unknown, address = 'a') => {
    const result = await verify(token, address)
    return 'refused' in result ? result.refused.reason : 'taken'
  }
  return { clock, tokens, revocations, verify, reasonOf }
}

const good = { sub: 'ann', exp: NOW_SECONDS + 3_600, iat: NOW_SECONDS, iss: ISSUER, aud: 'keycast', jti: 'one' }

/** @param changes of the claims; `undefined` leaves one out */
const sign = (
  kind: Kind,
  changes?: Record<string, unknown>,
  { header, key = kind === 'secret' ? SECRET : ec.privateKey }: { header?: Record<string, unknown>; key?: any } = {},
) =>
  new SignJWT({ ...good, ...changes } as any)
    .setProtectedHeader({ alg: kind === 'secret' ? 'HS256' : 'ES256', ...(kind === 'jwks' && { kid: 'k' }), ...header })
    .sign(key)

const byHand = (header: unknown, claims: unknown, signature: (signed: string) => string) => {
  const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const signed = `${part(header)}.${part(claims)}`
  return `${signed}.${signature(signed)}`
}

const hmac = (secret: string) => (signed: string) => createHmac('sha256', secret).update(signed).digest('base64url')

describe.each(kinds)('with %s', kind => {
  test('a good token says who it is, what they may and until when', async () => {
    const { verify } = setup([issuerOf(kind)])
    const result = await verify(await sign(kind, { keys: { read: ['room:7'] } }))
    if (!('verified' in result)) throw new Error(result.refused.reason)
    const { rights, ...identity } = result.verified
    expect(identity).toMatchObject({ user: 'ann', expiresAtMs: good.exp * 1_000, issuedAt: NOW_SECONDS, jti: 'one' })
    for (const key of ['room:7', 'user:ann']) expect(decide(rights, 'read', key)).toBeUndefined()
    for (const key of ['room:8', 'user:bob']) expect(decide(rights, 'read', key)?.code).toBe('forbidden')
    expect(decide(rights, 'publish', 'room:7')?.code).toBe('forbidden')
  })

  test('what need not be there may be left out, and several audiences be named', async () => {
    const { reasonOf } = setup([issuerOf(kind)])
    expect(await reasonOf(await sign(kind, { jti: undefined, aud: ['x', 'keycast'] }))).toBe('taken')
  })

  test.each([
    ['no sub', { sub: undefined }, 'no_sub'],
    ['an empty sub', { sub: '' }, 'no_sub'],
    ['a sub that is no text', { sub: 7 }, 'bad_claims'],
    ['a sub that is too long', { sub: 'a'.repeat(256) }, 'bad_claims'],
    ['a sub that is no Unicode', { sub: 'a\ud800' }, 'bad_claims'],
    ['a sub with a control character', { sub: 'ann\n' }, 'bad_claims'],
    ['no exp', { exp: undefined }, 'no_exp'],
    ['an exp that is text', { exp: String(good.exp) }, 'bad_claims'],
    ['an exp that is null', { exp: null }, 'bad_claims'],
    ['an exp that is now', { exp: NOW_SECONDS }, 'expired'],
    ['an exp that was a second ago', { exp: NOW_SECONDS - 1 }, 'expired'],
    ['an exp that is too far ahead', { exp: NOW_SECONDS + LIFETIME_SECONDS_MAX + 1 }, 'too_long_lived'],
    [
      'an iat too long before its exp',
      { iat: NOW_SECONDS - LIFETIME_SECONDS_MAX, exp: NOW_SECONDS + 1 },
      'too_long_lived',
    ],
    ['no iat', { iat: undefined }, 'no_iat'],
    ['an iat that is text', { iat: String(NOW_SECONDS) }, 'bad_claims'],
    ['an nbf beyond the leeway', { nbf: NOW_SECONDS + 31 }, 'not_yet_valid'],
    ['an iat beyond the leeway', { iat: NOW_SECONDS + 31 }, 'not_yet_valid'],
    ['an nbf that is text', { nbf: 'soon' }, 'bad_claims'],
    ['a jti that is no text', { jti: 7 }, 'bad_claims'],
    ['another issuer', { iss: 'https://evil.example.com/' }, 'wrong_issuer'],
    ['no issuer', { iss: undefined }, 'wrong_issuer'],
    ['another audience', { aud: 'mail' }, 'wrong_audience'],
    ['other audiences', { aud: ['mail', 'keycast2'] }, 'wrong_audience'],
    ['no audience', { aud: undefined }, 'wrong_audience'],
    ['rights that are text', { keys: 'room:*' }, 'bad_rights'],
    ['rights with a pattern that is none', { keys: { read: ['room:*', 'room'] } }, 'bad_rights'],
    ['rights with a pattern too long', { keys: { read: [`room:${'a'.repeat(252)}`] } }, 'bad_rights'],
    ['rights with too many patterns', { keys: { read: Array(1_001).fill(0) } }, 'bad_rights'],
  ])('a token with %s is refused', async (_, changes, reason) => {
    const { reasonOf } = setup([issuerOf(kind)])
    expect(await reasonOf(await sign(kind, changes))).toBe(reason)
  })

  test.each([undefined, 'JWT', 'jwt', 'at+jwt', 'AT+JWT', 'application/at+jwt'])(
    'a token with the typ %s is taken',
    async typ => {
      const { reasonOf } = setup([issuerOf(kind)])
      expect(await reasonOf(await sign(kind, {}, { header: { typ } }))).toBe('taken')
    },
  )

  test.each(['dpop+jwt', 'logout+jwt', 'secevent+jwt', 'JOSE', 'application/jwt/x', ''])(
    'a token with the typ %j was made for something else, and is refused',
    async typ => {
      const { reasonOf } = setup([issuerOf(kind)])
      expect(await reasonOf(await sign(kind, {}, { header: { typ } }))).toBe('wrong_type')
    },
  )

  test('where keycast.yaml names a typ, a token with another or none is refused, as an ID token', async () => {
    const { reasonOf } = setup([issuerOf(kind, { type: 'at+jwt' })])
    for (const typ of ['JWT', undefined]) {
      expect(await reasonOf(await sign(kind, {}, { header: { typ } }))).toBe('wrong_type')
    }
    expect(await reasonOf(await sign(kind, {}, { header: { typ: 'at+JWT' } }))).toBe('taken')
  })

  test('clocks may differ by 30 s for nbf and iat', async () => {
    const { reasonOf } = setup([issuerOf(kind)])
    expect(await reasonOf(await sign(kind, { nbf: NOW_SECONDS + 30, iat: NOW_SECONDS + 30 }))).toBe('taken')
  })

  test('a token signed with another key is refused', async () => {
    const { reasonOf } = setup([issuerOf(kind)])
    const key = kind === 'secret' ? OTHER_SECRET : otherEc.privateKey
    expect(await reasonOf(await sign(kind, {}, { key }))).toBe('bad_signature')
  })

  test('a token whose claims or header were changed after it was signed is refused', async () => {
    const { reasonOf } = setup([issuerOf(kind)])
    const [head, , signature] = (await sign(kind)).split('.')
    const claims = Buffer.from(JSON.stringify({ ...good, sub: 'root' })).toString('base64url')
    expect(await reasonOf(`${head}.${claims}.${signature}`)).toBe('bad_signature')
    expect(await reasonOf(`${await sign(kind)}AA`)).toBe('bad_signature')
    expect(await reasonOf((await sign(kind)).replace(/[^.]+$/, ''))).toBe('bad_signature')
  })

  test.each(['none', 'None', 'NONE', 'nOnE'])('a token with the algorithm %s is refused', async alg => {
    const { reasonOf } = setup([issuerOf(kind)])
    expect(await reasonOf(byHand({ alg, kid: 'k' }, good, () => ''))).toBe('wrong_algorithm')
  })

  test('a token nobody signed is refused', async () => {
    const { reasonOf } = setup([issuerOf(kind)])
    expect(await reasonOf(new UnsecuredJWT(good).encode())).toBe('wrong_algorithm')
  })

  test('a token signed with the public key as if it were a secret is refused', async () => {
    const { reasonOf } = setup([issuerOf(kind)])
    for (const secret of [pem, pem.trim(), JSON.stringify(JSON.parse(keySet).keys[0])]) {
      const forged = byHand({ alg: 'HS256', kid: 'k' }, good, hmac(secret))
      expect(await reasonOf(forged)).toBe(kind === 'secret' ? 'bad_signature' : 'wrong_algorithm')
    }
  })

  test('a key or the address of one in the header is not looked at', async () => {
    const { reasonOf } = setup([issuerOf(kind)])
    asked = 0
    const header = { jwk: await exportJWK(otherEc.publicKey), jku: `${url}evil`, x5u: `${url}evil` }
    const key = kind === 'secret' ? OTHER_SECRET : otherEc.privateKey
    expect(await reasonOf(await sign(kind, {}, { header, key }))).toBe('bad_signature')
    expect(asked).toBe(kind === 'jwks' ? 1 : 0)
  })

  test.each([
    ['nothing', ''],
    ['a word', 'hello'],
    ['two parts', 'YQ.YQ'],
    ['five parts, as encrypted ones have', 'YQ.YQ.YQ.YQ.YQ'],
    ['a number', 7],
    ['null', null],
    ['parts that are not base64url', '{"alg":"HS256"}.{}.x'],
    ['parts that are not JSON', 'YQ.YQ.YQ'],
    ['a header that is a list', byHand([], good, () => 'YQ')],
    ['claims that are a list', byHand({ alg: 'HS256' }, [], () => 'YQ')],
    ['claims that are null', byHand({ alg: 'HS256' }, null, () => 'YQ')],
    ['no algorithm', byHand({}, good, () => 'YQ')],
    ['an algorithm that is no text', byHand({ alg: ['HS256'] }, good, () => 'YQ')],
    ['a type that is no text', byHand({ alg: 'HS256', typ: ['JWT'] }, good, () => 'YQ')],
    ['a key name that is no text', byHand({ alg: 'HS256', kid: {} }, good, () => 'YQ')],
    ['an extension that must be understood', byHand({ alg: 'HS256', crit: ['b64'], b64: false }, good, () => 'YQ')],
    ['bytes that are not UTF-8', `${Buffer.from([0x7b, 0xff, 0x7d]).toString('base64url')}.YQ.YQ`],
    ['a token and a line after it', 'YQ.YQ.YQ\n'],
  ])('%s is no token', async (_, token) => {
    expect(await setup([issuerOf(kind)]).reasonOf(token)).toBe('malformed')
  })

  test('8 KiB are taken and not a byte more', async () => {
    const { reasonOf } = setup([issuerOf(kind)])
    const sizeWith = async (length: number) => (await sign(kind, { x: 'x'.repeat(length) })).length
    let length = 8_192 - (await sizeWith(0))
    length = Math.floor((length * 3) / 4)
    while ((await sizeWith(length)) > 8_192) length--
    expect(await reasonOf(await sign(kind, { x: 'x'.repeat(length) }))).toBe('taken')
    expect(await reasonOf(await sign(kind, { x: 'x'.repeat(length + 3) }))).toBe('too_big')
  })

  test('a revoked token is refused, remembered or not, and another of the same user is taken', async () => {
    const { reasonOf, revocations } = setup([issuerOf(kind)])
    const token = await sign(kind)
    expect(await reasonOf(token)).toBe('taken')
    revocations.add({ jti: 'one' })
    expect(await reasonOf(token)).toBe('revoked')
    expect(await reasonOf(await sign(kind, { jti: 'one', sub: 'bob' }))).toBe('revoked')
    expect(await reasonOf(await sign(kind, { jti: 'two' }))).toBe('taken')
    revocations.add({ sub: 'ann', before: NOW_SECONDS + 1 })
    expect(await reasonOf(await sign(kind, { jti: 'two' }))).toBe('revoked')
    expect(await reasonOf(await sign(kind, { jti: 'two', iat: NOW_SECONDS + 1 }))).toBe('taken')
  })

  test('a token expires to the second, remembered or not', async () => {
    const { reasonOf, clock } = setup([issuerOf(kind)])
    const token = await sign(kind, { exp: NOW_SECONDS + 10 })
    expect(await reasonOf(token)).toBe('taken')
    clock.wallMs += 9_999
    expect(await reasonOf(token)).toBe('taken')
    clock.wallMs += 1
    expect(await reasonOf(token)).toBe('expired')
  })
})

test('so many tokens are remembered as take a bounded number of characters together', async () => {
  const { verify } = setup([issuerOf('secret')])
  const rightsOf = async (token: string) => {
    const result = await verify(token)
    if ('refused' in result) throw new Error(result.refused.reason)
    return result.verified.rights
  }
  const checkAll = async (tokens: string[]) => {
    const rights = []
    for (const token of tokens) rights.push(await rightsOf(token))
    return rights
  }
  const make = (count: number, x: string) =>
    Promise.all(Array.from({ length: count }, (_, n) => sign('secret', { jti: String(n), x })))
  const short = await make(1_000, '')
  const checked = await checkAll(short)
  expect((await checkAll(short)).every((rights, index) => rights === checked[index])).toBe(true)
  const long = await make(200, 'x'.repeat(5_700))
  const [first, last] = [await rightsOf(long[0]), (await checkAll(long)).at(-1)]
  expect(await rightsOf(long.at(-1) as string)).toBe(last)
  expect(await rightsOf(long[0])).not.toBe(first)
  expect(await rightsOf(short[0])).not.toBe(checked[0])
})

test('where nobody may sign, no token is taken', async () => {
  expect(await setup([]).reasonOf(await sign('secret'))).toBe('not_accepted')
})

test('of several issuers each signs for users of its own, and none for those of another', async () => {
  const { verify, reasonOf } = setup([
    issuerOf('jwks', { audience: undefined }),
    issuerOf('secret', { prefix: 'app|', issuer: undefined, audience: undefined }),
  ])
  const free = { aud: undefined }
  const ofApp = await verify(await sign('secret', { ...free, iss: undefined, keys: { read: ['inbox:{sub}'] } }))
  if (!('verified' in ofApp)) throw new Error(ofApp.refused.reason)
  expect(ofApp.verified.user).toBe('app|ann')
  expect(decide(ofApp.verified.rights, 'read', 'user:app~7Cann')).toBeUndefined()
  expect(decide(ofApp.verified.rights, 'read', 'inbox:app~7Cann')).toBeUndefined()
  expect(decide(ofApp.verified.rights, 'read', 'user:ann')?.code).toBe('forbidden')

  expect(await verify(await sign('jwks', free))).toMatchObject({ verified: { user: 'ann' } })
  expect(await reasonOf(await sign('jwks', { ...free, sub: 'app|ann' }))).toBe('bad_claims')
  expect(await verify(await sign('secret', { ...free, sub: 'app|ann' }))).toMatchObject({
    verified: { user: 'app|app|ann' },
  })
})

test('of several who sign alike the one that did is found', async () => {
  const bare = { issuer: undefined, audience: undefined }
  const { verify, reasonOf } = setup([
    issuerOf('secret', { ...bare, keys: [createSecretKey(OTHER_SECRET)], prefix: 'a|' }),
    issuerOf('secret', { ...bare, prefix: 'b|' }),
  ])
  const claims = { iss: undefined, aud: undefined }
  expect(await verify(await sign('secret', claims))).toMatchObject({ verified: { user: 'b|ann' } })
  expect(await verify(await sign('secret', claims, { key: OTHER_SECRET }))).toMatchObject({
    verified: { user: 'a|ann' },
  })
  expect(await reasonOf(await sign('secret', claims, { key: Buffer.alloc(32) }))).toBe('bad_signature')
})

test('a secret that is being replaced serves beside the new one', async () => {
  const { reasonOf } = setup([issuerOf('secret', { keys: [createSecretKey(OTHER_SECRET), createSecretKey(SECRET)] })])
  expect(await reasonOf(await sign('secret'))).toBe('taken')
  expect(await reasonOf(await sign('secret', {}, { key: OTHER_SECRET }))).toBe('taken')
})

test('a token meant for somebody is refused where no audience is set: it is not known to be meant for this', async () => {
  const { reasonOf } = setup([issuerOf('secret', { audience: undefined })])
  expect(await reasonOf(await sign('secret'))).toBe('wrong_audience')
  expect(await reasonOf(await sign('secret', { aud: undefined }))).toBe('taken')
})

test('a key that the set does not hold is unknown, and a set that cannot be fetched says to come back', async () => {
  const token = await sign('jwks', {}, { header: { kid: 'other' } })
  expect(await setup([issuerOf('jwks')]).reasonOf(token)).toBe('unknown_key')

  const events: string[] = []
  const warn = ({ issuer, jwks, problem }: any, text?: string) => events.push(`${issuer} ${jwks} ${problem}; ${text}`)
  const away = setup([issuerOf('jwks', { jwks: 'http://127.0.0.1:9/' })], { log: { debug() {}, warn } })
  expect(await away.verify(token)).toEqual({
    refused: {
      reason: 'keys_unavailable',
      problem: { code: 'token_refused', message: expect.stringContaining('later'), retryAfterMs: 1_000 },
    },
  })
  expect(events).toEqual([
    expect.stringMatching(
      /^access\.tokens\.jwks http:.*:9\/ cannot be reached.*none is held, so all tokens .* are refused$/,
    ),
  ])
  expect(away.tokens.jwksStatus()).toEqual([{ issuer: 'access.tokens.jwks', keys: 0, ageMs: undefined, failures: 1 }])
})

test('at start the key sets are asked for, so that the first tokens need not wait', async () => {
  const { tokens, reasonOf } = setup([issuerOf('jwks'), issuerOf('secret', { prefix: 'a|' })])
  asked = 0
  await tokens.start()
  expect(asked).toBe(1)
  expect(await reasonOf(await sign('jwks'))).toBe('taken')
  expect(asked).toBe(1)
})

test('a client is told the same of every token that is wrong', async () => {
  const { verify } = setup([issuerOf('secret')])
  const wrong = [
    'hello',
    await sign('secret', { exp: 1 }),
    await sign('secret', { keys: { read: ['secret-room'] } }),
    await sign('secret', {}, { key: OTHER_SECRET }),
    await sign('secret', { iss: 'x' }),
  ]
  const told = new Set()
  for (const token of wrong) {
    const result = await verify(token)
    if (!('refused' in result)) throw new Error('taken')
    expect(refusalReasons).toContain(result.refused.reason)
    told.add(JSON.stringify(result.refused.problem))
  }
  expect(told).toEqual(new Set(['{"code":"token_refused","message":"the token was refused"}']))
})

test('whatever is changed about a token, it is refused and nothing breaks', async () => {
  const { mutate } = createRandom(7)
  const { reasonOf } = setup([issuerOf('publicKey')], { attempts: createAttempts({ now: () => 0, burst: 10_000 }) })
  const token = await sign('publicKey', { keys: { read: ['room:7'] } })
  const [head, claims, signature] = token.split('.')
  for (let round = 0; round < 500; round++) {
    // The signed part is changed: the signature's last character has bits to spare, which change nothing.
    const signed = mutate(Buffer.from(`${head}.${claims}`)).toString('latin1')
    if (signed !== `${head}.${claims}`) expect(refusalReasons).toContain(await reasonOf(`${signed}.${signature}`))
    const parts = [head, claims].map(part => mutate(Buffer.from(part, 'base64url')).toString('base64url')).join('.')
    if (parts !== `${head}.${claims}`) expect(refusalReasons).toContain(await reasonOf(`${parts}.${signature}`))
  }
  expect(await reasonOf(token)).toBe('taken')
})

describe('what garbage costs', () => {
  /** A queue that counts what it runs. */
  const counting = () => {
    const queue = createCheckQueue()
    const made = { checks: 0 }
    const run = (check: any) => {
      made.checks++
      return queue.run(check)
    }
    return { made, checks: { run } as CheckQueue }
  }

  test('10,000 forged tokens of an address cost as many checks as it has attempts, and others get in', async () => {
    const { made, checks } = counting()
    const { reasonOf } = setup([issuerOf('publicKey')], { checks })
    const forged = await sign('publicKey', {}, { key: otherEc.privateKey })
    const reasons = new Set()
    for (let n = 0; n < 10_000; n++) reasons.add(await reasonOf(forged))
    expect(reasons).toEqual(new Set(['bad_signature', 'too_many_attempts']))
    expect(made.checks).toBe(200)
    expect(await reasonOf(await sign('publicKey'), 'b')).toBe('taken')
  })

  test('what can be seen to be wrong costs no check at all', async () => {
    const { made, checks } = counting()
    const { reasonOf } = setup([issuerOf('publicKey')], { checks })
    const wrong = [
      await sign('publicKey', { exp: 1 }),
      await sign('publicKey', { aud: 'x' }),
      await sign('secret'),
      'x'.repeat(8_193),
      'a.b.c',
    ]
    for (const token of wrong) expect(await reasonOf(token)).not.toBe('taken')
    expect(made.checks).toBe(0)
  })

  test('a crowd behind one address gets in, however many', async () => {
    const { reasonOf } = setup([issuerOf('secret')])
    // More than an address has attempts.
    for (let n = 0; n < 300; n++) expect(await reasonOf(await sign('secret', { sub: `user ${n}` }))).toBe('taken')
  })

  test('a good token that comes again is not checked again, for a minute', async () => {
    const { made, checks } = counting()
    const { reasonOf, clock } = setup([issuerOf('publicKey')], { checks })
    const token = await sign('publicKey')
    for (let n = 0; n < 100; n++) expect(await reasonOf(token)).toBe('taken')
    expect(made.checks).toBe(1)
    clock.nowMs += 60_000
    expect(await reasonOf(token)).toBe('taken')
    expect(made.checks).toBe(2)
  })

  test('where too many checks wait, a token is told to come back', async () => {
    const checks = { run: () => undefined } as CheckQueue
    const { verify } = setup([issuerOf('secret')], { checks })
    expect(await verify(await sign('secret'))).toMatchObject({
      refused: { reason: 'busy', problem: { retryAfterMs: 1_000 } },
    })
  })
})

test('the viewer is who the token and the claims that count say; issuer and audience, where the entry leaves them open', async () => {
  const viewers = async (changes: Partial<TokenIssuer>, ...claims: object[]) => {
    const { verify } = setup([issuerOf('secret', changes)], { keepTokens: true })
    const named = claims.map(async each => {
      const result = await verify(await sign('secret', { ...each, jti: undefined }))
      return 'verified' in result ? result.verified.viewer : result.refused.reason
    })
    return new Set(await Promise.all(named)).size
  }
  expect(await viewers({}, {}, { aud: 'keycast', exp: good.exp - 1 })).toBe(1)
  expect(await viewers({}, {}, { aud: ['keycast', 'api'] })).toBe(2)
  expect(await viewers({ issuer: undefined }, {}, { iss: 'https://other/' })).toBe(2)
  expect(await viewers({}, {}, { plan: 'gold' })).toBe(1)
  expect(await viewers({ viewer: ['plan'] }, {}, { plan: 'gold' }, { plan: 'gold', tid: '1' })).toBe(2)
  // Else two of them would be read as one number.
  expect(await viewers({}, { tid: 2 ** 53 }, { tid: 2 ** 53 + 2 })).toBe(1)
  const { reasonOf } = setup([issuerOf('secret')], { keepTokens: true })
  expect(await reasonOf(await sign('secret', { tid: 2 ** 53 }))).toBe('bad_claims')
})
