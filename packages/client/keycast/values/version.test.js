import { webcrypto } from 'node:crypto'
import { versionOf as versionOfGateways } from '../../../protocol/version.js'
import { Versions, versionOf } from './version.js'

test.each(['application/json', 'text/plain', 'application/octet-stream', ''])(
  'the version of %j is the one gateways give it',
  async contentType => {
    for (let n = 0; n < 50; n += 1) {
      const bytes = Buffer.from('x'.repeat(n))
      const version = await versionOf({ bytes, contentType }, webcrypto.subtle)
      expect(version).toBe(versionOfGateways(bytes, contentType))
    }
  },
)

test('small deltas that come at once make a few megabytes, not gigabytes', () => {
  let asked = 0
  let hashedBytes = 0
  const subtle = {
    digest: (/** @type {string} */ _, /** @type {Uint8Array} */ { length }) => {
      hashedBytes += length
      return new Promise(() => {})
    },
  }
  const versions = new Versions(
    /** @type {any} */ (subtle),
    () => {},
    () => ++asked > 0,
  )
  // 1 MiB that is copied, in a few bytes.
  const delta = new TextEncoder().encode('4000\n4000@0,0;')
  const contentType = 'application/json'
  const bytes = new Uint8Array(1024 ** 2)
  versions.begin({ version: '0', contentType, bytes, read: () => 0 })
  for (let n = 0; n < 100; n += 1) versions.change({ from: `${n}`, version: `${n + 1}`, contentType }, delta)
  expect([asked, hashedBytes]).toEqual([1, 4 * 1024 ** 2])
})
