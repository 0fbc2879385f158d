import { webcrypto } from 'node:crypto'
import { versionOf as versionOfGateways } from '../../../protocol/version.js'
import { versionOf } from './version.js'

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
