// The outbox: messages that backends are still to be told of.
import { EMPTY_MS } from '../log.ts'
import { newId, roomy, type Suite } from './setup.fixture.ts'

export function testOutbox({ setup }: Suite) {
  describe('the outbox', () => {
    async function setupOutbox() {
      const given = await setup()
      const { outbox } = given.log
      const tell = (...publishes: Parameters<typeof given.publishOf>[0][]) =>
        given.append(...publishes.map(publish => ({ isTold: true, ...publish })))
      const untold = async (room: string, range = {}) => outbox.read(room, { limit: 100, bytesMax: 1e6, ...range })
      const seqsOf = async (room: string, range = {}) => (await untold(room, range)).messages.map(({ seq }) => seq)
      const roomsOf = async () => {
        const named: string[] = []
        for await (const { room } of outbox.rooms()) named.push(room)
        return named.sort()
      }
      await outbox.own?.()
      return { ...given, outbox, tell, untold, seqsOf, roomsOf }
    }

    test('a message that a backend is to be told stands there as it was kept, with its epoch', async () => {
      const { log, tell, append, untold, roomsOf, clock } = await setupOutbox()
      const messageId = newId()
      const [{ position }] = await tell(
        { messageId, text: 'grüße' },
        { room: 'room:2', from: '', messageId: undefined },
      )
      await append({ text: 'untold' })
      await tell({ messageId, text: 'grüße' })
      const data = Buffer.from('"grüße"')
      expect(await untold('room:1')).toEqual({
        gap: undefined,
        messages: [{ ...position, at: clock.at, from: 'ann', messageId, data }],
        now: clock.at,
      })
      expect((await untold('room:2')).messages).toMatchObject([{ seq: 1, from: '', messageId: undefined }])
      expect(await untold('room:3')).toEqual({ gap: undefined, messages: [], now: clock.at })
      expect(await roomsOf()).toEqual(['room:1', 'room:2'])
      if (log.outbox.news) expect((await log.outbox.news()).sort()).toEqual(['room:1', 'room:2'])
    })

    test('it outlives the history, and the room', async () => {
      const { log, tell, seqsOf, clock, read } = await setupOutbox()
      const short = { ...roomy, messages: 1, ageMs: 1_000 }
      await tell({ retention: short }, { retention: short }, { retention: short })
      clock.at += EMPTY_MS
      await log.expire()
      clock.at += EMPTY_MS + 1
      await log.expire()
      expect((await read('room:1')).seqs).toEqual([])
      expect(log.stats().rooms).toBe(0)
      expect(await seqsOf('room:1')).toEqual([1, 2, 3])
      const [{ position }] = await tell({ retention: short })
      expect(await seqsOf('room:1')).toEqual([1, 2, 3, position.seq])
    })

    test('what is taken out is gone, and its bytes with it; a gap stays until it is named', async () => {
      const { log, tell, untold, seqsOf, roomsOf, outbox } = await setupOutbox()
      const kept = await tell({}, {}, {}, { room: 'room:2', text: 'y'.repeat(5_000) })
      const [from, , to] = kept.map(({ position }) => position)
      await outbox.own?.()
      const before = outbox.stats().bytes
      expect(before).toBeGreaterThan(5_000)
      await outbox.take([
        { room: 'room:1', upTo: 2, gap: { from, to } },
        { room: 'room:2', upTo: 1 },
      ])
      expect(outbox.stats().bytes).toBeLessThan(before - 5_000)
      expect(await untold('room:1')).toMatchObject({ gap: { from, to }, messages: [{ seq: 3 }] })
      expect(await roomsOf()).toEqual(['room:1'])
      await outbox.take([{ room: 'room:1', upTo: 3, gap: { from, to } }])
      expect(await untold('room:1')).toMatchObject({ gap: { from, to }, messages: [] })
      expect(await roomsOf()).toEqual(['room:1'])
      await tell({})
      expect(await seqsOf('room:1')).toEqual([4])
      await outbox.take([{ room: 'room:1', upTo: 4 }])
      expect(await untold('room:1')).toMatchObject({ gap: undefined, messages: [] })
      expect([await roomsOf(), outbox.stats().bytes]).toEqual([[], 0])
      expect((await log.head('room:1')).seq).toBe(4)
    })

    test('a part has no more messages than asked for, nor more bytes, but one', async () => {
      const { tell, seqsOf } = await setupOutbox()
      const text = 'x'.repeat(98)
      await tell({ text }, { text }, { text }, { text })
      expect(await seqsOf('room:1', { limit: 3 })).toEqual([1, 2, 3])
      expect(await seqsOf('room:1', { bytesMax: 250 })).toEqual([1, 2])
      expect(await seqsOf('room:1', { bytesMax: 1 })).toEqual([1])
      expect(await seqsOf('room:1', { after: 2 })).toEqual([3, 4])
    })

    test('what was deleted is told by a message, and can be removed', async () => {
      const { log, tell, untold, outbox, roomsOf } = await setupOutbox()
      await tell({}, {}, {}, { room: 'room:2' })
      await log.delete('room:1', [1, 2], true)
      await outbox.remove('room:1', [1, 2, 9])
      const { messages } = await untold('room:1')
      expect(messages.map(({ seq, deletes }) => [seq, deletes])).toEqual([
        [3, undefined],
        [4, [[1, 2]]],
      ])
      await outbox.remove('room:2', [1])
      // Nothing is left of these: they were taken, or removed, since somebody looked.
      await outbox.remove('room:2', [1])
      await outbox.take([{ room: 'room:2', upTo: 1 }])
      expect(await roomsOf()).toEqual(['room:1'])
      await outbox.take([{ room: 'room:1', upTo: 4 }])
      expect(outbox.stats().bytes).toBe(0)
    })

    test('rooms without number are all named', async () => {
      const { tell, roomsOf } = await setupOutbox()
      const expected = Array.from({ length: 1_150 }, (_, n) => `room:${n}`)
      await tell(...expected.map(room => ({ room })))
      expect(await roomsOf()).toEqual(expected.sort())
    })

    test('rooms that are taken out while they are named keep no other from being named', async () => {
      const { tell, outbox } = await setupOutbox()
      const expected = Array.from({ length: 2_500 }, (_, n) => `room:${n}`)
      await tell(...expected.map(room => ({ room })))
      const named = new Set<string>()
      let due: { room: string; upTo: number }[] = []
      for await (const { room } of outbox.rooms()) {
        named.add(room)
        due.push({ room, upTo: 1 })
        if (due.length === 500) await outbox.take(due)
        due = due.slice(0, due.length % 500)
      }
      expect(named.size).toBe(expected.length)
    })
  })
}
