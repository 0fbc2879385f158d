// The algorithms that tokens may be signed with, and the keys that fit each (RFC 7518 section 3.1, RFC 8037, RFC 9864).
import type { KeyObject } from 'node:crypto'

/** The kind of key that an algorithm needs, as a JWK names it and as Node does. */
interface KeyShape {
  kty: string
  crv?: string
  nodeType: string
  nodeCurve?: string
}

const rsa: KeyShape = { kty: 'RSA', nodeType: 'rsa' }
const ed25519: KeyShape = { kty: 'OKP', crv: 'Ed25519', nodeType: 'ed25519' }

/** Signed with a private key and checked with its public half. */
const shapes: ReadonlyMap<string, KeyShape> = new Map([
  ['RS256', rsa],
  ['RS384', rsa],
  ['RS512', rsa],
  ['PS256', rsa],
  ['PS384', rsa],
  ['PS512', rsa],
  ['ES256', { kty: 'EC', crv: 'P-256', nodeType: 'ec', nodeCurve: 'prime256v1' }],
  ['ES384', { kty: 'EC', crv: 'P-384', nodeType: 'ec', nodeCurve: 'secp384r1' }],
  ['ES512', { kty: 'EC', crv: 'P-521', nodeType: 'ec', nodeCurve: 'secp521r1' }],
  ['EdDSA', ed25519],
  ['Ed25519', ed25519],
])

/** Bits of an RSA key: fewer are broken (RFC 7518 section 3.3), more cost a gateway time that a signer chooses. */
export const RSA_BITS_MIN = 2_048
export const RSA_BITS_MAX = 8_192

/** The one algorithm for a shared secret. `none` is no algorithm here, and stands in no list. */
export const SECRET_ALGORITHM = 'HS256'

export const publicAlgorithms = Object.freeze([...shapes.keys()])

export function fitsJwk(algorithm: string, { kty, crv }: { kty?: unknown; crv?: unknown }) {
  const shape = shapes.get(algorithm)
  return shape !== undefined && kty === shape.kty && (shape.crv === undefined || crv === shape.crv)
}

function fitsKey(algorithm: string, { asymmetricKeyType, asymmetricKeyDetails }: KeyObject) {
  const shape = shapes.get(algorithm)
  if (!shape || asymmetricKeyType !== shape.nodeType) return false
  return shape.nodeCurve === undefined || asymmetricKeyDetails?.namedCurve === shape.nodeCurve
}

export function algorithmsFor(key: KeyObject) {
  return publicAlgorithms.filter(algorithm => fitsKey(algorithm, key))
}
