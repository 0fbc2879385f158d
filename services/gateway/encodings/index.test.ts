import { BYTES_SUBPROTOCOL, JSON_SUBPROTOCOL } from '@keycast/protocol'
import { createCounts } from '../counts.ts'
import { createEncodings, plainEncodings, subprotocols } from './index.ts'

const { forTransport } = createEncodings({
  latest: () => undefined,
  grown() {},
  resume() {},
  counts: createCounts(),
  now: () => 0,
})

test('every subprotocol of the protocol has an encoding', () => {
  expect(subprotocols).toEqual([JSON_SUBPROTOCOL, BYTES_SUBPROTOCOL])
})

test.each(subprotocols)('%s is spoken plain and compressed, each with a slot of its own', subprotocol => {
  const [plain, compressed] = [false, true].map(isCompressed => forTransport({ subprotocol, isCompressed }))
  expect([plain, compressed]).toMatchObject([{ subprotocol }, { subprotocol }])
  expect(plain.slot).not.toBe(compressed.slot)
})

test('a client that offers no subprotocol is spoken to in JSON', () => {
  expect(forTransport({ subprotocol: '', isCompressed: false })).toBe(plainEncodings[0])
  expect(plainEncodings[0].subprotocol).toBe('keycast.v1.json')
})
