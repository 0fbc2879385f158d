// Messages that an operator deletes.
import type { Message } from '@keycast/backbone'
import { type Deletion, EMPTY_MS, ID_MS, MESSAGE_BYTES, NO_DATA, ROOM_BYTES } from '../log.ts'
import { DAY_MS, newId, roomy, type Suite } from './setup.fixture.ts'

export function testDeletion({ setup, idBytes }: Suite) {
  describe('deletion', () => {
    const texts = (messages: Message[]) => messages.map(({ data }) => data.toString())

    test('of a message that was deleted nothing is left but its place, and one more message says so', async () => {
      const { append, read, log, clock } = await setup()
      await append({ text: 'a' }, { text: 'b', from: 'bob' }, { text: 'c' })
      const { bytes } = await log.head('room:1')
      clock.at += 1
      const deletion = (await log.delete('room:1', [2])) as Deletion
      expect(deletion).toMatchObject({ messages: 1, more: false, notice: { oldest: 1 } })
      const { head, messages } = await read('room:1')
      expect(head).toMatchObject({ epoch: deletion.notice?.epoch, seq: 4, oldest: 1 })
      expect(texts(messages)).toEqual(['"a"', 'null', '"c"', 'null'])
      expect(messages[1]).toMatchObject({ seq: 2, from: '', messageId: undefined, deleted: true })
      expect(messages[3]).toEqual(deletion.notice?.message)
      expect(messages[3]).toMatchObject({ seq: 4, at: clock.at, from: '', deletes: [[2, 2]] })
      expect((await log.head('room:1')).bytes).toBeLessThan(bytes + MESSAGE_BYTES + NO_DATA.length)
      expect(await append({ text: 'd' })).toMatchObject([{ position: { seq: 5 } }])
    })

    test('several are told in parts, those that are not there in none, and what tells of it stays', async () => {
      const { append, read, log } = await setup()
      await append(...Array.from({ length: 6 }, (_, n) => ({ text: `${n + 1}` })))
      expect(await log.delete('room:1', [1, 2, 4, 6, 9])).toMatchObject({
        messages: 4,
        notice: {
          message: {
            seq: 7,
            deletes: [
              [1, 2],
              [4, 4],
              [6, 6],
            ],
          },
        },
      })
      for (const seqs of [[1], [7], [8], []]) {
        expect(await log.delete('room:1', seqs)).toEqual({ messages: 0, more: false, notice: undefined })
      }
      expect(await log.delete('room:2', [1])).toEqual({ messages: 0, more: false, notice: undefined })
      expect(texts((await read('room:1')).messages)).toEqual(['null', 'null', '"3"', 'null', '"5"', 'null', 'null'])
    })

    test('what tells of many deleted ones counts as much in a part as its numbers take', async () => {
      const { append, read, log } = await setup()
      await append(...Array.from({ length: 100 }, (_, n) => ({ text: `${n + 1}` })))
      for (const first of [1, 2])
        await log.delete(
          'room:1',
          Array.from({ length: 50 }, (_, n) => first + 2 * n),
        )
      expect((await read('room:1', { after: 100, bytesMax: 300 })).seqs).toEqual([101])
      expect((await read('room:1', { before: 103, bytesMax: 300 })).seqs).toEqual([102])
    })

    test('parts that are read have every place, from either end', async () => {
      const { append, read, log } = await setup()
      await append(...Array.from({ length: 8 }, (_, n) => ({ text: `${n + 1}` })))
      await log.delete('room:1', [1, 2, 4, 5, 8])
      expect((await read('room:1')).seqs).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9])
      expect((await read('room:1', { after: 3, limit: 2 })).seqs).toEqual([4, 5])
      expect((await read('room:1', { before: 6, limit: 3 })).seqs).toEqual([3, 4, 5])
      expect((await read('room:1', { before: 3, limit: 5 })).seqs).toEqual([1, 2])
      expect((await read('room:1', { before: 10, limit: 2 })).seqs).toEqual([8, 9])
      const { messages } = await read('room:1', { after: 0, limit: 5 })
      expect(messages.map(({ deleted = false }) => deleted)).toEqual([true, true, false, true, true])
    })

    test('a room is emptied in calls that each end soon, and each says what is gone', async () => {
      const { append, read, log } = await setup()
      const retention = { ...roomy, messages: 100_000 }
      for (let batch = 0; batch < 12; batch++) {
        await append(...Array.from({ length: 1_000 }, () => ({ retention, messageId: undefined })))
      }
      let [messages, parts] = [0, 0]
      for (let more = true; more; parts++) {
        const deletion = (await log.delete('room:1')) as Deletion
        messages += deletion.messages
        more = deletion.more
        const { head, messages: left } = await read('room:1')
        expect(deletion.notice).toMatchObject({ oldest: head.oldest, message: { seq: head.seq } })
        expect(left.at(-1)?.deletes).toEqual([[1, head.oldest - 1]])
      }
      // And what said so of the parts before.
      expect(messages).toBe(12_000 + parts - 1)
      const { head, messages: left } = await read('room:1')
      const seq = 12_000 + parts
      expect(head).toMatchObject({ seq, oldest: seq, bytes: MESSAGE_BYTES + NO_DATA.length })
      expect(left).toMatchObject([{ seq, deletes: [[1, seq - 1]] }])
      expect(await log.delete('room:1')).toEqual({ messages: 0, more: false, notice: undefined })
      expect(await append({})).toMatchObject([{ position: { seq: seq + 1 } }])
    })

    test('a deleted message that is sent again is the same one, and its id is forgotten as others are', async () => {
      const { append, log, clock } = await setup()
      const messageId = newId()
      await append({ messageId })
      await log.delete('room:1', [1])
      expect(await append({ messageId })).toMatchObject([{ duplicate: true, position: { seq: 1 } }])
      clock.at += ID_MS + 1
      await log.expire()
      clock.at += DAY_MS + 1
      await log.expire()
      await log.expire()
      expect(log.stats().bytes).toBe(ROOM_BYTES)
      clock.at += EMPTY_MS + 1
      await log.expire()
      expect(log.stats()).toMatchObject({ rooms: 0, bytes: 0 })
    })

    test('what is left of deleted messages goes with its age, however the deleted ones lie', async () => {
      const { append, read, log, clock } = await setup()
      for (let n = 0; n < 6; n++) {
        await append({ text: `${n + 1}` })
        clock.at += 1_000
      }
      await log.delete('room:1', [1, 2, 5])
      clock.at += DAY_MS - 3_500
      await log.expire()
      const { head, messages } = await read('room:1')
      expect(texts(messages).slice(-4)).toEqual(['"4"', 'null', '"6"', 'null'])
      expect(head.oldest).toBe(messages[0].seq)
      clock.at += DAY_MS
      await log.expire()
      expect(log.stats().bytes).toBeLessThanOrEqual(ROOM_BYTES + 6 * idBytes)
      expect((await read('room:1')).messages).toEqual([])
    })

    test('every room is named once', async () => {
      const { append, log } = await setup()
      const expected = Array.from({ length: 250 }, (_, n) => `room:${n}`)
      await append(...expected.map(room => ({ room })))
      const named: string[] = []
      for await (const room of log.rooms()) named.push(room)
      expect(named.sort()).toEqual(expected.sort())
    })
  })
}
