import { createCurveKeyPair } from './curve.ts'
import { hubCurveOf, hubKeyProblems } from './hub-keys.ts'

const { publicKey, secretKey } = createCurveKeyPair()

const problemsOf = ({
  host = '127.0.0.1',
  secret,
  clients,
}: {
  host?: string
  secret?: string
  clients?: string
} = {}) => hubKeyProblems({ host, backboneSecretKey: secret, backboneClientKeys: clients }, 'A_HOST')

test('without keys a hub serves gateways of its own host, in plain text', () => {
  expect(problemsOf()).toEqual([])
  expect(hubCurveOf({ backboneSecretKey: undefined, backboneClientKeys: undefined })).toBeUndefined()
})

test('beyond its host it needs keys', () => {
  expect(problemsOf({ host: '0.0.0.0' })).toEqual([
    'A_HOST=0.0.0.0 is no loopback address: beyond this host the backbone needs the BACKBONE_ keys',
  ])
  expect(problemsOf({ host: '0.0.0.0', secret: secretKey, clients: publicKey })).toEqual([])
})

test.each([' ', ',', ', ', '\n'])('keys of gateways are separated by %j', between => {
  const clients = `${publicKey}${between}${publicKey}`
  expect(problemsOf({ secret: secretKey, clients })).toEqual([])
  expect(hubCurveOf({ backboneSecretKey: secretKey, backboneClientKeys: clients })).toEqual({
    secretKey,
    clientKeys: [publicKey, publicKey],
  })
})

test('keys that are none, or not all there, are named by their setting', () => {
  expect(problemsOf({ secret: secretKey, clients: `${publicKey} short` })).toEqual([
    'BACKBONE_CLIENT_KEYS: a CURVE key has 40 characters (Z85), not 5',
  ])
  expect(problemsOf({ clients: publicKey })).toEqual([expect.stringContaining('BACKBONE_SECRET_KEY is not set')])
})
