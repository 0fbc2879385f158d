import { generateKeyPairSync } from 'node:crypto'
import { algorithmsFor, fitsJwk, publicAlgorithms } from './algorithms.ts'

const ec = (namedCurve: string) => generateKeyPairSync('ec', { namedCurve }).publicKey

test.each([
  ['RSA', generateKeyPairSync('rsa', { modulusLength: 2_048 }).publicKey, 'RS256 RS384 RS512 PS256 PS384 PS512'],
  ['P-256', ec('P-256'), 'ES256'],
  ['P-384', ec('P-384'), 'ES384'],
  ['P-521', ec('P-521'), 'ES512'],
  ['Ed25519', generateKeyPairSync('ed25519').publicKey, 'EdDSA Ed25519'],
  ['secp256k1', ec('secp256k1'), ''],
  ['Ed448', generateKeyPairSync('ed448').publicKey, ''],
  ['X25519', generateKeyPairSync('x25519').publicKey, ''],
])('a key of the kind %s is for its own algorithms, as Node sees it and as a JWK', (_, key, algorithms) => {
  const jwk = key.export({ format: 'jwk' })
  expect(algorithmsFor(key).join(' ')).toBe(algorithms)
  expect(publicAlgorithms.filter(algorithm => fitsJwk(algorithm, jwk)).join(' ')).toBe(algorithms)
})

test('no key is for an algorithm that is none, or for secrets', () => {
  expect(publicAlgorithms).not.toContain('none')
  for (const algorithm of ['none', 'HS256']) {
    expect(fitsJwk(algorithm, { kty: 'oct' })).toBe(false)
    expect(fitsJwk(algorithm, { kty: 'EC', crv: 'P-256' })).toBe(false)
  }
})
