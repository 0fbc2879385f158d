// Doors: tokens, the keys they are signed with, and the rules that they and backends name.
import { createHmac, createSecretKey, generateKeyPairSync } from 'node:crypto'
import { createServer } from 'node:net'
import fc from 'fast-check'
import { readRevocation } from '../../../services/gateway/access/revocations/revocations.ts'
import { createRights, decide } from '../../../services/gateway/access/rights.ts'
import { readRule } from '../../../services/gateway/access/rule.ts'
import { createJwks } from '../../../services/gateway/access/tokens/jwks.ts'
import { refusalReasons } from '../../../services/gateway/access/tokens/refusal.ts'
import { createTokens } from '../../../services/gateway/access/tokens/tokens.ts'
import { atEnd } from '../cleanup.ts'
import { type Absurd, absurdJson, absurdText } from './absurd.ts'
import { absurdHttp, type HttpMessage, written } from './absurd-http.ts'
import type { AnyDoor } from './judge.ts'

export const SECRET = 'a secret of more than 32 bytes, it is'
const NOW_SECONDS = 1_800_000_000

const granted = { read: ['conversation:*', 'doc:{sub}/**', '*:a/b'], publish: ['room:*'], join: [] }

const header = { alg: 'HS256', typ: 'JWT', kid: 'k' }
const claims = {
  iss: 'https://id.example/',
  aud: ['keycast', 'another'],
  sub: 'ann',
  exp: NOW_SECONDS + 60,
  nbf: NOW_SECONDS - 60,
  iat: NOW_SECONDS - 60,
  jti: 'j',
  keys: granted,
}

const base64url = (bytes: Buffer) => bytes.toString('base64url')
const inJson = (value: unknown) => Buffer.from(JSON.stringify(value))

/** A token that the issuer signed, whatever it says. */
function signed(head: Buffer, payload: Buffer) {
  const text = `${base64url(head)}.${base64url(payload)}`
  return `${text}.${createHmac('sha256', SECRET).update(text).digest('base64url')}`
}

/** Tokens that are wrong within a right signature, or in their form. */
export const absurdTokens = fc.oneof(
  { weight: 4, arbitrary: absurdJson([['claims', claims]]).map(({ bytes }) => signed(inJson(header), bytes)) },
  { weight: 2, arbitrary: absurdJson([['header', header]]).map(({ bytes }) => signed(bytes, inJson(claims))) },
  { weight: 1, arbitrary: absurdText([signed(inJson(header), inJson(claims))]) },
)

const pairs = [
  { alg: 'ES256', ...generateKeyPairSync('ec', { namedCurve: 'P-256' }) },
  { alg: 'RS256', ...generateKeyPairSync('rsa', { modulusLength: 2_048 }) },
  { alg: 'EdDSA', ...generateKeyPairSync('ed25519') },
]
const keySet = {
  keys: pairs.map(({ alg, publicKey }) => ({
    ...publicKey.export({ format: 'jwk' }),
    alg,
    kid: alg,
    use: 'sig',
    key_ops: ['verify'],
    x5c: ['MIIB'],
  })),
}

const served = (body: Buffer): HttpMessage => ({
  first: 'HTTP/1.1 200 OK',
  fields: [['content-type', 'application/jwk-set+json']],
  body,
})

/** What a provider of keys answers: an absurd set in a right response, or the right set in an absurd one. */
export const keyResponses = fc.oneof(
  { weight: 3, arbitrary: absurdJson([['key set', keySet]]).map(({ bytes }) => written(served(bytes))) },
  {
    weight: 1,
    arbitrary: absurdHttp(
      [['key set', served(inJson(keySet))]],
      ['HTTP/1.1 404 Not Found', 'HTTP/1.1 302 Found', 'HTTP/1.1 99 Low', 'HTTP/9.9 200 OK', 'ICY 200 OK', ''],
    ).map(({ bytes }) => bytes),
  },
)

/** A server that answers every request with the same bytes, and then closes the connection. */
export async function serveBytes() {
  let answer: Buffer = Buffer.alloc(0)
  const server = createServer(socket => {
    socket.on('error', () => {})
    socket.once('data', () => socket.end(answer))
  })
  await new Promise(resolve => server.listen(0, '127.0.0.1', () => resolve(undefined)))
  atEnd(() => server.close())
  const { port } = server.address() as import('node:net').AddressInfo
  return {
    port,
    answerWith(bytes: Buffer) {
      answer = bytes
    },
  }
}

export async function accessDoors(): Promise<AnyDoor[]> {
  const { rule } = readRule({}, { user: false, strict: true })
  const none = { anonymous: rule, everyone: rule }
  const rights = createRights(none)
  const tokens = createTokens({
    policy: {
      tokens: [
        {
          name: 'access.tokens.0',
          algorithms: ['HS256'],
          issuer: claims.iss,
          audience: 'keycast',
          prefix: 'app|',
          jwks: undefined,
          type: undefined,
          viewer: ['tid', 'scope'],
          keys: [createSecretKey(SECRET, 'utf8')],
        },
      ],
      claim: 'keys',
      lifetimeMsMax: 86_400_000,
    },
    rights,
    revocations: { isRevoked: () => false },
    attempts: { take: () => 0, giveBack() {} },
    now: () => 0,
    wallNow: () => NOW_SECONDS * 1_000,
  })

  const provider = await serveBytes()
  let now = 0
  const jwks = createJwks({
    url: `http://127.0.0.1:${provider.port}/`,
    now: () => now,
    events: { ok() {}, failed() {} },
    timeoutMs: 2_000,
  })

  return [
    {
      name: 'a token',
      inputs: absurdTokens,
      async take(token: string) {
        const result = await tokens.verify(token, { address: '192.0.2.1' })
        if ('verified' in result) decide(result.verified.rights, 'read', 'conversation:42')
        else if (!refusalReasons.includes(result.refused.reason)) throw new Error(`refused as ${result.refused.reason}`)
      },
    },
    {
      name: 'the keys of a provider',
      inputs: keyResponses,
      async take(answer: Buffer) {
        provider.answerWith(answer)
        now += 3_600_000
        await jwks.ask()
        for (const { alg } of pairs) {
          await jwks.keyFor({ algorithm: alg, kid: alg })
          await jwks.keyFor({ algorithm: alg, kid: undefined })
        }
      },
    },
    {
      name: 'rules',
      inputs: absurdJson([['rule', granted]]),
      take({ text }: Absurd) {
        for (const user of [true, false]) {
          for (const strict of [true, false]) {
            const { rule, problems } = readRule(parsed(text), { user, strict })
            const length = Math.max(0, ...problems.map(({ problem }) => problem.length))
            if (length > 400) throw new Error(`a problem has ${length} characters`)
            if (problems.length === 0) decide(rights.of('ann', rule), 'read', 'doc:ann/1')
          }
        }
      },
    },
    {
      name: 'revocations',
      inputs: absurdJson([
        ['user', { sub: 'ann', before: NOW_SECONDS }],
        ['token', { jti: 'j' }],
      ]),
      take: ({ text }: Absurd) => readRevocation(parsed(text), NOW_SECONDS * 1_000),
    },
  ]
}

/** As a request's body is read: what is no JSON is refused before. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
