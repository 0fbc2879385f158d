// Tokens for tests: good ones, and one for each way in which a token can be wrong.
import { createHmac, createSecretKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { SignJWT, UnsecuredJWT } from 'jose'
import { VIEWER_CLAIMS } from './backend/viewer-name.ts'
import type { TokenIssuer } from './policy-file.ts'

const SECRET = Buffer.from('a secret of more than 32 bytes, it is')
const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const stranger = generateKeyPairSync('ec', { namedCurve: 'P-256' })

const issuer = (fields: Partial<TokenIssuer>): TokenIssuer => ({
  name: 'access.tokens.0',
  algorithms: ['ES256'],
  type: undefined,
  issuer: undefined,
  audience: 'keycast',
  prefix: '',
  jwks: undefined,
  keys: [publicKey],
  viewer: VIEWER_CLAIMS,
  ...fields,
})

/** The issuers: one with a key pair, one with a secret whose users have a prefix. */
export const issuers = [
  issuer({}),
  issuer({ name: 'access.tokens.1', algorithms: ['HS256'], prefix: 'app|', keys: [createSecretKey(SECRET)] }),
]

interface Wanted {
  sub?: string
  /** The keys that it grants. */
  keys?: object
  nowMs: number
  ttlSeconds?: number
  jti?: string
  audience?: string
  /** From now. */
  notBeforeSeconds?: number
  /** Others that it has. */
  claims?: Record<string, unknown>
  key?: KeyObject
}

const claimsOf = ({
  sub = 'ann',
  keys,
  nowMs,
  ttlSeconds = 60,
  jti,
  audience = 'keycast',
  notBeforeSeconds,
  claims,
}: Wanted) => {
  const iat = Math.floor(nowMs / 1_000)
  const nbf = notBeforeSeconds === undefined ? undefined : iat + notBeforeSeconds
  return JSON.parse(JSON.stringify({ sub, keys, iat, nbf, exp: iat + ttlSeconds, jti, aud: audience, ...claims }))
}

export function sign(wanted: Wanted) {
  return new SignJWT(claimsOf(wanted)).setProtectedHeader({ alg: 'ES256' }).sign(wanted.key ?? privateKey)
}

/** Signed with the public key as if that were a secret, which a careless verifier takes. */
function signWithPublicKey(wanted: Wanted) {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const signed = `${part({ alg: 'HS256' })}.${part(claimsOf(wanted))}`
  const pem = publicKey.export({ type: 'spki', format: 'pem' })
  return `${signed}.${createHmac('sha256', pem).update(signed).digest('base64url')}`
}

const keys = { read: ['tick:mine'] }

/** Faults of a token, and how to make one with each. */
export const badTokens: Record<string, (nowMs: number) => Promise<string> | string> = {
  empty: () => '',
  'no token at all': () => 'garbage',
  'signed by a stranger': nowMs => sign({ nowMs, keys, key: stranger.privateKey }),
  'signed by nobody (alg none)': nowMs => new UnsecuredJWT(claimsOf({ nowMs, keys })).encode(),
  'signed with the public key as a secret': nowMs => signWithPublicKey({ nowMs, keys }),
  expired: nowMs => sign({ nowMs, keys, ttlSeconds: -1 }),
  'not yet valid': nowMs => sign({ nowMs, keys, notBeforeSeconds: 50 }),
  'for another audience': nowMs => sign({ nowMs, keys, audience: 'another' }),
  'of a user of another issuer': nowMs => sign({ nowMs, keys, sub: 'app|ann' }),
  'with rights that cannot be read': nowMs => sign({ nowMs, keys: { read: 'tick:mine' } }),
  revoked: nowMs => sign({ nowMs, keys, sub: 'mallory' }),
  'longer than 8 KiB': () => 'x'.repeat(8_193),
}

/** Not a number of turns: signatures are checked beside the loop, which may turn thousands of times meanwhile. */
const GIVE_UP_MS = 30_000

/**
 * Sends a client's token, and waits until it is accepted.
 *
 * @param client of a test gateway
 * @param turn of the gateway
 * @returns other messages that the client was sent meanwhile
 */
export async function authenticate(client: any, token: string, turn: () => Promise<void>): Promise<any[]> {
  client.send({ type: 'auth', token })
  const others: any[] = []
  for (const endsAt = performance.now() + GIVE_UP_MS; performance.now() < endsAt; ) {
    const read = client.connection.read()
    others.push(...read.filter(({ type }: any) => type !== 'authed'))
    if (read.some(({ type }: any) => type === 'authed')) return others
    await turn()
  }
  throw new Error('no authed came')
}
