import { realWorld } from '@keycast/service'
import { testLog } from '../suite/suite.fixture.ts'
import { createMemoryLog } from './memory.ts'

testLog({ open: async options => createMemoryLog(options), trimsMax: Number.POSITIVE_INFINITY })

test('a message keeps nothing in memory of the request that it came in', async () => {
  const log = createMemoryLog({ ...realWorld, bytesMax: 2 ** 20 })
  const request = Buffer.alloc(2 ** 16, '1')
  const retention = { messages: 10, ageMs: 1e9, bytes: 1e9 }
  await log.append([{ room: 'room:1', messageId: undefined, from: '', data: request.subarray(0, 10), retention }])
  const { messages } = await log.read('room:1', { after: 0, limit: 1, bytesMax: 100 })
  expect(messages[0].data.toString()).toBe('1111111111')
  expect(messages[0].data.buffer.byteLength).toBe(10)
})
