import { createCurveKeyPair } from '@keycast/backbone'
import { readSettings } from '@keycast/service'
import { conflictsOf, settings } from './settings.ts'

const read = (env: Record<string, string> = {}) =>
  readSettings(settings, { name: 'fetcher', about: 'x', env, argv: [] })

const { publicKey, secretKey } = createCurveKeyPair()

test('on its own host a fetcher needs no keys; beyond it, keys that fit', () => {
  expect(conflictsOf(read())).toEqual([])
  expect(conflictsOf(read({ FETCHER_HOST: '0.0.0.0' }))).toEqual([
    expect.stringContaining('FETCHER_HOST=0.0.0.0 is no loopback address'),
  ])
  const encrypted = { FETCHER_HOST: '0.0.0.0', BACKBONE_SECRET_KEY: secretKey, BACKBONE_CLIENT_KEYS: publicKey }
  expect(conflictsOf(read(encrypted))).toEqual([])
})
