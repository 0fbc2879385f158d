import { realWorld } from '@keycast/service'
import { startValkey } from '../../../test/support/valkey.ts'
import { testLog } from './suite.fixture.ts'
import { openValkeyLog } from './valkey.ts'

// Valkeys are started and killed here, which takes a busy machine seconds.

const silent: any = { info() {}, warn() {}, error() {} }

let valkey: Awaited<ReturnType<typeof startValkey>>
beforeAll(async () => {
  valkey = await startValkey()
})
afterAll(() => valkey.remove())

testLog({
  idBytes: 192,
  async open(options) {
    valkey.cli('FLUSHALL')
    return openValkeyLog({
      url: valkey.url,
      report: silent,
      ...options,
      now: realWorld.now,
      valkeyNow: options.wallNow,
    })
  },
})
