import { createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { jwtVerify } from 'jose'
import { createGarbageMaker, createTokenMaker, makeSigning, publicHalf, readSigning } from './tokens.ts'

const pem = (key: KeyObject) => String(key.export({ type: 'pkcs8', format: 'pem' }))
const SECRET = 'a secret of more than 32 bytes, it is'

test.each([
  ['ES256', makeSigning()],
  ['ES384', readSigning(pem(generateKeyPairSync('ec', { namedCurve: 'P-384' }).privateKey))],
  ['RS256', readSigning(pem(generateKeyPairSync('rsa', { modulusLength: 2_048 }).privateKey))],
  ['EdDSA', readSigning(pem(generateKeyPairSync('ed25519').privateKey))],
  ['HS256', readSigning(`${SECRET}\n`)],
])('%s: each client has a token of its own, which another library takes', async (algorithm, signing) => {
  const key = 'pem' in signing ? createPublicKey(publicHalf(signing)) : Buffer.from(SECRET)
  const { payload, protectedHeader } = await jwtVerify(createTokenMaker(signing)(7), key)
  expect(protectedHeader.alg).toBe(algorithm)
  expect(payload).toMatchObject({ sub: 'client-7', keys: { read: ['*:**'] } })
})

test('garbage is as long as a token, never the same twice, and refused for its signature alone', async () => {
  const signing = makeSigning()
  const make = createGarbageMaker(signing)
  const garbage = make()
  expect(garbage).toHaveLength(createTokenMaker(signing)(0).length)
  expect(make()).not.toBe(garbage)
  const key = createPublicKey(publicHalf(signing as { algorithm: string; pem: string }))
  await expect(jwtVerify(garbage, key)).rejects.toMatchObject({ code: 'ERR_JWS_SIGNATURE_VERIFICATION_FAILED' })
})

test('a key that no algorithm is for is refused', () => {
  expect(() => readSigning(pem(generateKeyPairSync('x25519').privateKey))).toThrow('x25519')
})
