import { readSettings } from '@keycast/service'
import { conflictsOf, curveOf, settings } from './settings.js'

test('without any variable set a gateway serves the loopback interface and asks the fetcher there', () => {
  const config = readSettings(settings, { name: 'gateway', about: 'x', env: {}, argv: [] })
  expect(config).toMatchObject({
    host: '127.0.0.1',
    port: 8080,
    internalPort: 8081,
    fetcherNodes: '127.0.0.1:7001:7002',
    apiToken: undefined,
  })
})

test('clients are sent away well before the process must be gone', () => {
  const { drainMs, shutdownGraceMs } = readSettings(settings, { name: 'gateway', about: 'x', env: {}, argv: [] })
  expect(conflictsOf({ drainMs, shutdownGraceMs })).toEqual([])
  expect(conflictsOf({ drainMs: 3_999, shutdownGraceMs: 5_000 })).toEqual([])
  expect(conflictsOf({ drainMs: 4_000, shutdownGraceMs: 5_000 })).toEqual([
    expect.stringContaining('GATEWAY_DRAIN_MS=4000 must be over 1000 ms below SHUTDOWN_GRACE_MS=5000'),
  ])
})

test('an encrypted backbone needs both keys', () => {
  const [backboneSecretKey, backboneServerKey] = ['s', 'p']
  expect(curveOf({ backboneSecretKey, backboneServerKey })).toEqual({ secretKey: 's', serverKey: 'p' })
  expect(curveOf({ backboneSecretKey: undefined, backboneServerKey: undefined })).toBeUndefined()
  expect(() => curveOf({ backboneSecretKey, backboneServerKey: undefined })).toThrow('BACKBONE_SERVER_KEY')
  expect(() => curveOf({ backboneSecretKey: undefined, backboneServerKey })).toThrow('BACKBONE_SECRET_KEY')
})
