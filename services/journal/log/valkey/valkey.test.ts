import { realWorld } from '@keycast/service'
import { startValkey } from '../../../../test/support/valkey.ts'
import { testLog } from '../suite/suite.fixture.ts'
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
  tellsTrims: false,
  keepsFloors: false,
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

test('charges that a journal of an earlier release left behind are forgotten, and others stay', async () => {
  valkey.cli('FLUSHALL')
  const log = await openValkeyLog({ ...realWorld, url: valkey.url, bytesMax: 200_000, report: silent })
  const publish = {
    room: 'room:1',
    messageId: undefined,
    from: 'ann',
    data: Buffer.from('1'),
    retention: { messages: 10, ageMs: 1e9, bytes: 1e9 },
    payer: 'a1.u1',
  }
  await log.append([publish])
  await log.expire()
  const { charged } = log.stats()
  expect(charged.users).toBeGreaterThan(0)
  for (const seq of [0, 7]) valkey.cli('HSET', 'keycast:charges', `room:2\n${seq}`, '100 #users.a1.u1')
  for (const account of ['#users', 'a1', 'u1']) valkey.cli('HINCRBY', 'keycast:accounts', account, '200')
  await log.expire()
  expect(log.stats().charged).toEqual(charged)
  expect(valkey.cli('HLEN', 'keycast:charges')).toMatch(/^2/)
  await log.close()
})
