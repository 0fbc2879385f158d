import { createCurveKeyPair } from '@keycast/backbone'
import { readSettings } from '@keycast/service'
import { conflictsOf, curveOf, settings } from './settings.js'

/** @param {Record<string, string>} [env] */
const read = (env = {}) => readSettings(settings, { name: 'journal', about: 'x', env, argv: [] })

const { publicKey, secretKey } = createCurveKeyPair()

test('without any variable set a journal serves gateways of its own host, in plain text', () => {
  expect(conflictsOf(read())).toEqual([])
  expect(curveOf(read())).toBeUndefined()
})

test('beyond its host it needs keys', () => {
  expect(conflictsOf(read({ JOURNAL_HOST: '0.0.0.0' }))).toEqual([
    expect.stringContaining('JOURNAL_HOST=0.0.0.0 is no loopback address'),
  ])
  const encrypted = read({
    JOURNAL_HOST: '0.0.0.0',
    BACKBONE_SECRET_KEY: secretKey,
    BACKBONE_CLIENT_KEYS: `${publicKey} ${publicKey}`,
  })
  expect(conflictsOf(encrypted)).toEqual([])
  expect(curveOf(encrypted)).toEqual({ secretKey, clientKeys: [publicKey, publicKey] })
})

test('keys that are none, or not all there, are named by their setting', () => {
  expect(conflictsOf(read({ BACKBONE_SECRET_KEY: secretKey, BACKBONE_CLIENT_KEYS: `${publicKey} short` }))).toEqual([
    'BACKBONE_CLIENT_KEYS: a CURVE key has 40 characters (Z85), not 5',
  ])
  expect(conflictsOf(read({ BACKBONE_CLIENT_KEYS: publicKey }))).toEqual([
    expect.stringContaining('BACKBONE_SECRET_KEY is not set'),
  ])
})

test('a log in Valkey needs its address, which is not repeated where it is wrong', () => {
  const inValkey = { JOURNAL_LOG: 'valkey' }
  expect(conflictsOf(read(inValkey))).toEqual(['VALKEY_URL: JOURNAL_LOG=valkey needs it'])
  expect(conflictsOf(read({ ...inValkey, VALKEY_URL: 's3cret@valkey' }))).toEqual([
    expect.stringMatching(/^VALKEY_URL: must be like valkey:(?!.*s3cret)/),
  ])
  expect(conflictsOf(read({ ...inValkey, VALKEY_URL: 'valkey://:s3cret@valkey:6379' }))).toEqual([])
})
