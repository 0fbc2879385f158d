import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { CompactSign, compactVerify, exportJWK, generateKeyPair } from 'jose'
import { createJwks, type Jwks } from './jwks.ts'

const ES256 = 'ES256'

const makeKey = async (kid: string) => {
  const { publicKey, privateKey } = await generateKeyPair(ES256)
  return { kid, privateKey, jwk: { ...(await exportJWK(publicKey)), kid, alg: ES256, use: 'sig' } }
}

let first: Awaited<ReturnType<typeof makeKey>>
let second: Awaited<ReturnType<typeof makeKey>>
beforeAll(async () => {
  first = await makeKey('first')
  second = await makeKey('second')
})

/** The provider's answer. */
let answer: (response: ServerResponse) => void
let asked = 0
const server = createServer((_, response) => {
  asked++
  answer(response)
})
let url: string
beforeAll(async () => {
  await once(server.listen(0, '127.0.0.1'), 'listening')
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/jwks.json`
})
afterAll(() => {
  server.closeAllConnections()
  return new Promise(resolve => server.close(resolve))
})

const publish = (keys: unknown[]) => {
  answer = response => response.end(JSON.stringify({ keys }))
}

const created: Jwks[] = []
afterEach(() => {
  for (const jwks of created.splice(0)) jwks.stop()
})

const setup = (options = {}) => {
  asked = 0
  const clock = { nowMs: 1_000 }
  const events: string[] = []
  const jwks = createJwks({
    url,
    now: () => clock.nowMs,
    events: { ok: keys => events.push(`ok ${keys}`), failed: problem => events.push(problem) },
    // A machine that is busy with other tests may take longer than a provider ought to.
    timeoutMs: 60_000,
    ...options,
  })
  created.push(jwks)
  const keyFor = (kid: string | undefined, algorithm = ES256) => jwks.keyFor({ algorithm, kid })
  return { jwks, clock, events, keyFor }
}

/** Whether it is the public half of the pair. */
const isHalfOf = async (found: any, { privateKey }: { privateKey: any }) => {
  const signed = await new CompactSign(Buffer.from('x')).setProtectedHeader({ alg: ES256 }).sign(privateKey)
  return compactVerify(signed, found.key).then(
    () => true,
    () => false,
  )
}

test('the key that a token names is found, and the set is asked for once', async () => {
  publish([first.jwk, second.jwk])
  const { keyFor, jwks, events } = setup()
  const found = await Promise.all([keyFor('first'), keyFor('second'), keyFor('first')])
  expect(await isHalfOf(found[0], first)).toBe(true)
  expect(await isHalfOf(found[1], second)).toBe(true)
  expect(asked).toBe(1)
  expect(events).toEqual(['ok 2'])
  expect(jwks.status()).toEqual({ keys: 2, ageMs: 0, failures: 0 })
})

test('keys that were rotated are asked for, and a name nobody has makes it ask at most each 30 s', async () => {
  publish([first.jwk])
  const { keyFor, clock } = setup()
  await keyFor('first')
  publish([second.jwk])
  expect(await keyFor('second')).toEqual({ reason: 'unknown_key' })
  clock.nowMs += 29_999
  expect(await keyFor('made up')).toEqual({ reason: 'unknown_key' })
  expect(asked).toBe(1)

  clock.nowMs += 1
  expect(await isHalfOf(await keyFor('second'), second)).toBe(true)
  expect(await keyFor('first')).toEqual({ reason: 'unknown_key' })
  expect(asked).toBe(2)
})

test('while the provider is down the keys held go on, and it is asked again later', async () => {
  publish([first.jwk])
  const { keyFor, clock, jwks, events } = setup()
  await keyFor('first')
  answer = response => response.writeHead(503).end()
  clock.nowMs += 30_000
  expect(await keyFor('second')).toEqual({ reason: 'unknown_key' })
  expect(await isHalfOf(await keyFor('first'), first)).toBe(true)
  expect(jwks.status()).toEqual({ keys: 1, ageMs: 30_000, failures: 1 })
  expect(events).toEqual(['ok 1', 'answered with 503, not 200'])
})

test('a set grown old is asked for again without a token waiting, so that a key taken back is dropped', async () => {
  publish([first.jwk])
  const { keyFor, clock, jwks } = setup()
  await keyFor('first')
  publish([second.jwk])
  clock.nowMs += 600_000
  expect(await isHalfOf(await keyFor('first'), first)).toBe(true)
  await jwks.ask()
  expect(await keyFor('first')).toEqual({ reason: 'unknown_key' })
})

test('without any key the first tries follow sooner, and farther and farther apart', async () => {
  answer = response => response.writeHead(500).end()
  const { keyFor, clock } = setup()
  expect(await keyFor('first')).toEqual({ reason: 'keys_unavailable' })
  const waits: number[] = []
  for (let tries = 1; tries < 8; tries++) {
    let waited = 0
    while (asked === tries) {
      clock.nowMs += 500
      waited += 500
      await keyFor('first')
    }
    waits.push(waited)
  }
  expect(waits).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000])

  publish([first.jwk])
  clock.nowMs += 30_000
  expect(await isHalfOf(await keyFor('first'), first)).toBe(true)
})

test('a provider that does not answer in time is given up, body included', async () => {
  answer = response => response.write('{"keys":')
  const { keyFor, events } = setup({ timeoutMs: 50 })
  expect(await keyFor('first')).toEqual({ reason: 'keys_unavailable' })
  expect(events).toEqual(['was not fetched within 50 ms'])
})

test('a set that never ends is cut off at the limit', async () => {
  answer = response => {
    const more = () => response.write('x'.repeat(16_384), error => error || more())
    more()
  }
  const { keyFor, events } = setup({ bytesMax: 100_000 })
  expect(await keyFor('first')).toEqual({ reason: 'keys_unavailable' })
  expect(events).toEqual(['is larger than 100000 bytes'])
})

test('of 1,000 keys each is found', async () => {
  const others = Array.from({ length: 999 }, (_, n) => ({ ...first.jwk, kid: `other ${n}`, x5c: ['A'.repeat(1_500)] }))
  publish([...others, second.jwk])
  const { keyFor, events } = setup()
  expect(await isHalfOf(await keyFor('second'), second)).toBe(true)
  expect(await isHalfOf(await keyFor('other 998'), first)).toBe(true)
  expect(events).toEqual(['ok 1000'])
  expect(asked).toBe(1)
})

test('a token that names no key is checked where a single key would do, and not tried with several', async () => {
  publish([first.jwk])
  const one = setup()
  expect(await isHalfOf(await one.keyFor(undefined), first)).toBe(true)
  publish([first.jwk, second.jwk])
  expect(await setup().keyFor(undefined)).toEqual({ reason: 'unknown_key' })
})

test('a key that is listed twice under its name is found', async () => {
  publish([first.jwk, second.jwk, first.jwk])
  expect(await isHalfOf(await setup().keyFor('first'), first)).toBe(true)
})

test('a key serves the algorithm it is for and no other', async () => {
  publish([first.jwk])
  const { keyFor } = setup()
  for (const algorithm of ['ES384', 'RS256', 'EdDSA', 'HS256', 'none']) {
    expect(await keyFor('first', algorithm)).toEqual({ reason: 'unknown_key' })
  }
})

test('keys of no use are passed over: secret, for encryption, weak, of an unknown kind', async () => {
  publish([
    { kty: 'oct', k: 'AAAA', kid: 'secret', alg: 'HS256' },
    { ...first.jwk, kid: 'encrypts', use: 'enc' },
    { ...first.jwk, kid: 'signs', key_ops: ['sign'] },
    { ...first.jwk, kid: 'other', alg: 'ECDH-ES' },
    { ...first.jwk, kid: 7 },
    { kty: 'RSA', n: 'A'.repeat(171), e: 'AQAB', kid: 'weak' },
    { kty: 'RSA', n: 'A'.repeat(1_400), e: 'AQAB', kid: 'slow' },
    { kty: 'EC', crv: 'P-256', x: 'AA', y: 'AA', kid: 'broken' },
    null,
    'key',
    second.jwk,
  ])
  const { keyFor, events } = setup()
  expect(await isHalfOf(await keyFor('second'), second)).toBe(true)
  for (const kid of ['secret', 'encrypts', 'signs', 'other', 'weak', 'slow', 'broken']) {
    expect(await keyFor(kid)).toEqual({ reason: 'unknown_key' })
  }
  expect(events).toEqual(['ok 2'])
})

test.each([
  ['not JSON', '<html>', 'is not JSON'],
  ['null', 'null', 'has no list "keys"'],
  ['a list', '[]', 'has no list "keys"'],
  ['empty', '{"keys":[]}', 'holds no key of use'],
  ['too many keys', JSON.stringify({ keys: Array(2_001).fill({}) }), 'holds 2001 keys: at most 2000'],
])('a set that is %s counts as not fetched', async (_, text, problem) => {
  publish([first.jwk])
  const { keyFor, clock, events } = setup()
  await keyFor('first')
  answer = response => response.end(text)
  clock.nowMs += 30_000
  await keyFor('made up')
  expect(events[1]).toContain(problem)
  expect(await isHalfOf(await keyFor('first'), first)).toBe(true)
})

test('a redirect is not followed', async () => {
  answer = response => response.writeHead(302, { location: url }).end()
  const { keyFor, events } = setup()
  await keyFor('first')
  expect(events).toEqual(['answered with 302, not 200'])
  expect(asked).toBe(1)
})

test('a provider nobody answers for is named as unreachable', async () => {
  const { keyFor, events } = setup({ url: 'http://127.0.0.1:9/' })
  expect(await keyFor('first')).toEqual({ reason: 'keys_unavailable' })
  expect(events[0]).toContain('cannot be reached: ECONNREFUSED')
})

test('more tokens than may wait for keys are told so at once', async () => {
  const open: ServerResponse[] = []
  answer = response => open.push(response)
  const { keyFor } = setup()
  const waiting = Array.from({ length: 1_000 }, () => keyFor('first'))
  expect(await keyFor('first')).toEqual({ reason: 'busy' })
  while (open.length === 0) await once(server, 'request')
  open[0].end(JSON.stringify({ keys: [first.jwk] }))
  expect((await Promise.all(waiting)).filter(found => 'key' in found)).toHaveLength(1_000)
})

test('once stopped nothing is asked for, and who waits is let go', async () => {
  answer = () => {}
  const { jwks, keyFor, events } = setup()
  const waiting = keyFor('first')
  jwks.stop()
  expect(await waiting).toEqual({ reason: 'keys_unavailable' })
  expect(await keyFor('first')).toEqual({ reason: 'keys_unavailable' })
  expect(events).toEqual([])
})
