import { webcrypto } from 'node:crypto'
import { versionOf as versionOfGateways } from '../../../protocol/version.js'
import { versionOf } from './version.js'

test('the version of a content is the one gateways give it', async () => {
  for (let n = 0; n < 200; n += 1) {
    const bytes = Buffer.from('x'.repeat(n))
    const version = await versionOf(bytes, content => webcrypto.subtle.digest('SHA-256', content))
    expect(version).toBe(versionOfGateways(bytes))
  }
})
