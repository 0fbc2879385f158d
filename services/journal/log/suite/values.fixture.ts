// Values that a backend hands over: each is the one message of its room.
import { MESSAGE_BYTES, ROOM_BYTES } from '../log.ts'
import { roomy, type Suite } from './setup.fixture.ts'

export function testValues({ setup }: Suite) {
  describe('values', () => {
    const one = { ...roomy, messages: 1 }
    const priceOf = (text: string, rank?: number) => ({
      room: '=price:7 a',
      messageId: undefined,
      from: '',
      text,
      retention: one,
      value: { rank },
    })
    const last = { before: Number.MAX_SAFE_INTEGER, limit: 1 }

    test('one takes the place of that before it, unless its rank is lower', async () => {
      const { append, read } = await setup()
      const outcomes = await append(priceOf('a', 5), priceOf('b', 4), priceOf('c', 5), priceOf('d'), priceOf('e', 4))
      expect(outcomes).toMatchObject([
        { position: { seq: 1 }, value: { rankBefore: undefined } },
        { error: 'older', rank: 5 },
        { position: { seq: 2 }, value: { rankBefore: 5 } },
        { position: { seq: 3 }, value: { rankBefore: 5 } },
        { error: 'older', rank: 5 },
      ])
      const [later] = await append(priceOf('f', 2 ** 53 - 1))
      expect(later).toMatchObject({ position: { seq: 4 }, value: { rankBefore: 5 } })
      const { head, messages } = await read('=price:7 a', last)
      expect(messages.map(({ data }) => String(data))).toEqual(['"f"'])
      expect(head.value).toEqual({ order: later.value.order, rank: 2 ** 53 - 1 })
    })

    test('the number of each is higher than any before it, also when the clock stands or goes back', async () => {
      const { append, clock } = await setup()
      const orders = []
      for (const step of [0, 0, 1_000, -5_000, 0]) {
        clock.at += step
        const [first, second] = await append(priceOf('a'), priceOf('b'))
        orders.push(first.value.order, second.value.order)
      }
      expect(new Set(orders).size).toBe(orders.length)
      expect(orders).toEqual([...orders].sort((one, other) => one - other))
      expect(orders[0]).toBe(1_700_000_000_000)
    })

    test('a million of them take the room of one, and replace each other in a full log', async () => {
      const { append, log } = await setup({ bytesMax: ROOM_BYTES + 4 * MESSAGE_BYTES })
      for (let n = 0; n < 20; n++)
        expect(await append(priceOf('x'.repeat(100), n))).toMatchObject([{ duplicate: false }])
      expect(await append({ ...priceOf('y'), room: '=price:8' })).toEqual([{ error: 'log_full' }])
      expect(log.stats().rooms).toBe(1)
    })

    test('a room of messages has none of that', async () => {
      const { append, read } = await setup()
      const [outcome] = await append({})
      expect(outcome.value).toBeUndefined()
      expect((await read('room:1')).head.value).toBeUndefined()
    })
  })
}
