// Tokens (JWT) of the load test's clients, each of a user of its own, and garbage that looks like them. Signed here with
// node:crypto, whose calls are synchronous: thousands are made before the first client connects.
import { createHmac, createPrivateKey, createPublicKey, generateKeyPairSync, randomBytes, sign } from 'node:crypto'

/** Longer than any run. */
const TTL_SECONDS = 4 * 3_600

/** The key that clients sign with. It goes to the generator's processes as text. */
export type Signing = { algorithm: string; secret: string } | { algorithm: string; pem: string }

/** The algorithms of RFC 7518 section 3.4, by OpenSSL's names of the curves. */
const curves: Record<string, [string, string]> = {
  prime256v1: ['ES256', 'sha256'],
  secp384r1: ['ES384', 'sha384'],
  secp521r1: ['ES512', 'sha512'],
}

/** A key for one run. */
export function makeSigning(): Signing {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  return { algorithm: 'ES256', pem: String(privateKey.export({ type: 'pkcs8', format: 'pem' })) }
}

/**
 * @param text of a file: a private key in PEM, or a secret
 * @throws {Error} if no algorithm here is for the key
 */
export function readSigning(text: string): Signing {
  if (!text.includes('-----BEGIN')) return { algorithm: 'HS256', secret: text.replace(/\r?\n$/, '') }
  const { asymmetricKeyType: kind, asymmetricKeyDetails: details } = createPrivateKey(text)
  const algorithm =
    kind === 'ec' ? curves[details?.namedCurve ?? '']?.[0] : { rsa: 'RS256', ed25519: 'EdDSA' }[String(kind)]
  if (algorithm === undefined) throw new Error(`no algorithm of the load test is for a key of the kind ${kind}`)
  return { algorithm, pem: text }
}

/** The other half, for `access.tokens`. @returns in PEM */
export function publicHalf({ pem }: { pem: string }): string {
  return String(createPublicKey(pem).export({ type: 'spki', format: 'pem' }))
}

/**
 * @param user of all clients; each is a user of its own unless given
 * @returns the token of a client, who may read everything
 */
export function createTokenMaker(signing: Signing, user?: string): (number: number) => string {
  const makeSignature = signatureMaker(signing)
  const iat = Math.floor(Date.now() / 1_000)
  const head = part({ alg: signing.algorithm, typ: 'JWT' })
  return number => {
    const claims = { sub: user ?? `client-${number}`, iat, exp: iat + TTL_SECONDS, keys: { read: ['*:**'] } }
    const signed = `${head}.${part(claims)}`
    return `${signed}.${makeSignature(signed).toString('base64url')}`
  }
}

/**
 * Tokens that only their signature shows to be wrong, no two alike: what costs a server most.
 *
 * @param signing the key that they pretend to have signed with
 */
export function createGarbageMaker(signing: Signing): () => string {
  const token = createTokenMaker(signing)(0)
  const end = token.lastIndexOf('.') + 1
  const bytes = Buffer.from(token.slice(end), 'base64url').length
  const signed = token.slice(0, end)
  return () => signed + randomBytes(bytes).toString('base64url')
}

function signatureMaker(signing: Signing): (signed: string) => Buffer {
  if ('secret' in signing) return signed => createHmac('sha256', signing.secret).update(signed).digest()
  const key = createPrivateKey(signing.pem)
  if (key.asymmetricKeyType === 'ed25519') return signed => sign(null, Buffer.from(signed), key)
  const [, digest] = curves[key.asymmetricKeyDetails?.namedCurve ?? ''] ?? [undefined, 'sha256']
  return signed => sign(digest, Buffer.from(signed), { key, dsaEncoding: 'ieee-p1363' })
}

function part(value: object) {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}
