import { createCurveKeyPair } from '@keycast/backbone'
import { readSettings } from '@keycast/service'
import { conflictsOf, settings } from './settings.ts'

const read = (env: Record<string, string> = {}) =>
  readSettings(settings, { name: 'journal', about: 'x', env, argv: [] })

const { publicKey, secretKey } = createCurveKeyPair()

test('on its own host a journal needs no keys; beyond it, keys that fit', () => {
  expect(conflictsOf(read())).toEqual([])
  expect(conflictsOf(read({ JOURNAL_HOST: '0.0.0.0' }))).toEqual([
    expect.stringContaining('JOURNAL_HOST=0.0.0.0 is no loopback address'),
  ])
  const encrypted = { JOURNAL_HOST: '0.0.0.0', BACKBONE_SECRET_KEY: secretKey, BACKBONE_CLIENT_KEYS: publicKey }
  expect(conflictsOf(read(encrypted))).toEqual([])
})

test('a log in Valkey needs its address, which is not repeated where it is wrong', () => {
  const inValkey = { JOURNAL_LOG: 'valkey' }
  expect(conflictsOf(read(inValkey))).toEqual(['VALKEY_URL: JOURNAL_LOG=valkey needs it'])
  expect(conflictsOf(read({ ...inValkey, VALKEY_URL: 's3cret@valkey' }))).toEqual([
    expect.stringMatching(/^VALKEY_URL: must be like valkey:(?!.*s3cret)/),
  ])
  expect(conflictsOf(read({ ...inValkey, VALKEY_URL: 'valkey://:s3cret@valkey:6379' }))).toEqual([])
})
