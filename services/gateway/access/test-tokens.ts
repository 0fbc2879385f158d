// Tokens for tests: good ones, and one for each way in which a token can be wrong.
import { createHmac, createSecretKey, generateKeyPairSync } from 'node:crypto'
import { SignJWT, UnsecuredJWT } from 'jose'

const SECRET = Buffer.from('a secret of more than 32 bytes, it is')
const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const stranger = generateKeyPairSync('ec', { namedCurve: 'P-256' })

/** @param {Partial<import('./policy-file.ts').TokenIssuer>} fields @returns {import('./policy-file.ts').TokenIssuer} */
const issuer = fields => ({
  name: 'access.tokens.0',
  algorithms: ['ES256'],
  type: undefined,
  issuer: undefined,
  audience: 'keycast',
  prefix: '',
  jwks: undefined,
  keys: [publicKey],
  ...fields,
})

/** The issuers: one with a key pair, one with a secret whose users have a prefix. */
export const issuers = [
  issuer({}),
  issuer({ name: 'access.tokens.1', algorithms: ['HS256'], prefix: 'app|', keys: [createSecretKey(SECRET)] }),
]

/**
 * @typedef {object} Wanted
 * @property {string} [sub]
 * @property {object} [keys] the keys that it grants
 * @property {number} nowMs
 * @property {number} [ttlSeconds]
 * @property {string} [jti]
 * @property {string} [audience]
 * @property {number} [notBeforeSeconds] from now
 * @property {import('node:crypto').KeyObject} [key]
 */

/** @param {Wanted} wanted */
const claimsOf = ({ sub = 'ann', keys, nowMs, ttlSeconds = 60, jti, audience = 'keycast', notBeforeSeconds }) => {
  const iat = Math.floor(nowMs / 1_000)
  const nbf = notBeforeSeconds === undefined ? undefined : iat + notBeforeSeconds
  return JSON.parse(JSON.stringify({ sub, keys, iat, nbf, exp: iat + ttlSeconds, jti, aud: audience }))
}

/** @param {Wanted} wanted */
export function sign(wanted) {
  return new SignJWT(claimsOf(wanted)).setProtectedHeader({ alg: 'ES256' }).sign(wanted.key ?? privateKey)
}

/** Signed with the public key as if that were a secret, which a careless verifier takes. @param {Wanted} wanted */
function signWithPublicKey(wanted) {
  const part = (/** @type {object} */ value) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const signed = `${part({ alg: 'HS256' })}.${part(claimsOf(wanted))}`
  const pem = publicKey.export({ type: 'spki', format: 'pem' })
  return `${signed}.${createHmac('sha256', pem).update(signed).digest('base64url')}`
}

const keys = { read: ['tick:mine'] }

/**
 * Faults of a token, and how to make one with each.
 *
 * @type {Record<string, (nowMs: number) => Promise<string> | string>}
 */
export const badTokens = {
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
 * @param {any} client of a test gateway
 * @param {string} token
 * @param {() => Promise<void>} turn of the gateway
 * @returns {Promise<any[]>} other messages that the client was sent meanwhile
 */
export async function authenticate(client, token, turn) {
  client.send({ type: 'auth', token })
  /** @type {any[]} */
  const others = []
  for (const endsAt = performance.now() + GIVE_UP_MS; performance.now() < endsAt; ) {
    const read = client.connection.read()
    others.push(...read.filter((/** @type {any} */ { type }) => type !== 'authed'))
    if (read.some((/** @type {any} */ { type }) => type === 'authed')) return others
    await turn()
  }
  throw new Error('no authed came')
}
