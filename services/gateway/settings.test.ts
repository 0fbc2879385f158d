import { createCurveKeyPair } from '@keycast/backbone'
import { readSettings } from '@keycast/service'
import { conflictsOf, curveOf, settings } from './settings.ts'

test('without any variable set a gateway serves the loopback interface and asks the fetcher there', () => {
  const config = readSettings(settings, { name: 'gateway', about: 'x', env: {}, argv: [] })
  expect(config).toMatchObject({
    host: '127.0.0.1',
    port: 8080,
    internalPort: 8081,
    fetcherNodes: '127.0.0.1:7001:7002',
    apiTokens: undefined,
  })
})

const conflictsWith = (env: Record<string, string> = {}) =>
  conflictsOf(readSettings(settings, { name: 'gateway', about: 'x', env, argv: [] }))

test('the defaults fit together', () => {
  expect(conflictsWith()).toEqual([])
})

test('clients are sent away well before the process must be gone', () => {
  expect(conflictsWith({ GATEWAY_DRAIN_MS: '3999', SHUTDOWN_GRACE_MS: '5000' })).toEqual([])
  expect(conflictsWith({ GATEWAY_DRAIN_MS: '4000', SHUTDOWN_GRACE_MS: '5000' })).toEqual([
    expect.stringContaining('GATEWAY_DRAIN_MS=4000 must be over 1000 ms below SHUTDOWN_GRACE_MS=5000'),
  ])
})

test('fetcher nodes that cannot be read are named', () => {
  expect(conflictsWith({ FETCHER_NODES: '127.0.0.1, 127.0.0.2:7001:7002' })).toEqual([])
  expect(conflictsWith({ FETCHER_NODES: 'fetcher,10.0.0.1:7001' })).toEqual([
    expect.stringMatching(/^FETCHER_NODES: "10\.0\.0\.1:7001" is no fetcher node/),
  ])
})

test('without keys nodes beyond this host are refused, and names, for anybody may answer for one', () => {
  const { publicKey, secretKey } = createCurveKeyPair()
  const nodes = { FETCHER_NODES: '127.0.0.1,10.0.0.1', JOURNAL_NODES: 'journal:7003:7004' }
  const needs =
    'is no loopback address: beyond this host the backbone needs BACKBONE_SECRET_KEY and BACKBONE_SERVER_KEY'
  expect(conflictsWith(nodes)).toEqual([`FETCHER_NODES: 10.0.0.1 ${needs}`, `JOURNAL_NODES: journal ${needs}`])
  expect(conflictsWith({ ...nodes, BACKBONE_SECRET_KEY: secretKey, BACKBONE_SERVER_KEY: publicKey })).toEqual([])
})

test('beyond loopback clients come through a proxy that is named, or it is only a try', () => {
  const open = { GATEWAY_HOST: '0.0.0.0' }
  expect(conflictsWith(open)).toEqual([
    expect.stringMatching(/^GATEWAY_HOST=0\.0\.0\.0: .* Name the proxy with TLS in GATEWAY_TRUSTED_PROXIES/),
  ])
  expect(conflictsWith({ ...open, GATEWAY_TRUSTED_PROXIES: '127.0.0.0/8, ::1/128' })).toHaveLength(1)
  expect(conflictsWith({ ...open, GATEWAY_TRUSTED_PROXIES: '127.0.0.0/8,10.0.0.5' })).toEqual([])
  expect(conflictsWith({ ...open, KEYCAST_PROFILE: 'try' })).toEqual([])
  for (const host of ['127.0.0.2', '::1', 'localhost']) expect(conflictsWith({ GATEWAY_HOST: host })).toEqual([])
})

test('an encrypted backbone needs both keys, and keys they must be', () => {
  const { publicKey, secretKey } = createCurveKeyPair()
  expect(conflictsWith({ BACKBONE_SECRET_KEY: secretKey, BACKBONE_SERVER_KEY: publicKey })).toEqual([])
  expect(conflictsWith({ BACKBONE_SECRET_KEY: secretKey })).toEqual([
    expect.stringContaining('BACKBONE_SERVER_KEY is not set'),
  ])
  expect(conflictsWith({ BACKBONE_SECRET_KEY: 'short', BACKBONE_SERVER_KEY: publicKey })).toEqual([
    expect.stringMatching(/^BACKBONE_SECRET_KEY: a CURVE key has 40 characters/),
  ])
  expect(curveOf({ backboneSecretKey: secretKey, backboneServerKey: publicKey })).toEqual({
    secretKey,
    serverKey: publicKey,
  })
  expect(curveOf({ backboneSecretKey: undefined, backboneServerKey: undefined })).toBeUndefined()
})
