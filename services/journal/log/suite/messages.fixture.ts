// Messages in rooms: numbers, outcomes, parts that are read.
import { newId, roomy, type Suite } from './setup.fixture.ts'

export function testMessages({ setup }: Suite) {
  test('messages of a room are numbered from 1, without a hole, in the order given', async () => {
    const { append, read } = await setup()
    const outcomes = await append({ text: 'a' }, { text: 'b', room: 'room:2' }, { text: 'c' })
    expect(outcomes.map(({ position }) => position.seq)).toEqual([1, 1, 2])
    await append({ text: 'd', from: 'bob' })
    const { head, messages } = await read('room:1')
    expect(head).toMatchObject({ epoch: outcomes[0].position.epoch, seq: 3, oldest: 1 })
    expect(messages.map(({ seq, from, data }) => [seq, from, data.toString()])).toEqual([
      [1, 'ann', '"a"'],
      [2, 'ann', '"c"'],
      [3, 'bob', '"d"'],
    ])
  })

  test('outcomes stand in the order given, however the rooms of a batch alternate', async () => {
    const { append } = await setup({ bytesMax: 2 ** 30 })
    const messageId = newId()
    const publishes = Array.from({ length: 250 }, (_, n) => ({ room: `room:${n % 7}`, text: `text ${n}` }))
    const outcomes = await append(
      { room: 'room:0', messageId, text: 'first' },
      ...publishes,
      { room: 'room:0', messageId, text: 'first' },
      { room: 'room:0', messageId, text: 'other' },
    )
    const expected = publishes.map((_, n) => Math.floor(n / 7) + (n % 7 === 0 ? 2 : 1))
    expect(outcomes.slice(1, -2).map(({ position }) => position.seq)).toEqual(expected)
    expect([outcomes[0], ...outcomes.slice(-2)]).toMatchObject([
      { position: { seq: 1 }, duplicate: false },
      { position: { seq: 1 }, duplicate: true },
      { error: 'id_conflict' },
    ])
  })

  test('a room that never had a message has a position', async () => {
    const { log, read } = await setup()
    expect(await log.head('room:1')).toMatchObject({ epoch: expect.stringMatching(/^.{8,}$/), seq: 0, oldest: 1 })
    expect((await read('room:1')).messages).toEqual([])
  })

  test('data comes back byte for byte, a messageId and a time with it', async () => {
    const { append, read, clock } = await setup()
    const data = Buffer.from('{"text":"grüße\\n","n":[1, 2]}\n')
    const messageId = newId()
    await append({ data, messageId }, { messageId: undefined, from: '' })
    const { messages } = await read('room:1')
    expect(messages[0]).toEqual({ seq: 1, at: clock.at, from: 'ann', messageId, data })
    expect(messages[1]).toMatchObject({ seq: 2, from: '', messageId: undefined })
  })

  test('a part is read from either end, within a number and a size', async () => {
    const { append, read } = await setup()
    await append(...Array.from({ length: 10 }, () => ({})))
    expect((await read('room:1', { after: 3, limit: 4 })).seqs).toEqual([4, 5, 6, 7])
    expect((await read('room:1', { after: 9, limit: 4 })).seqs).toEqual([10])
    expect((await read('room:1', { after: 10, limit: 4 })).seqs).toEqual([])
    expect((await read('room:1', { after: 99, limit: 4 })).seqs).toEqual([])
    expect((await read('room:1', { before: 8, limit: 3 })).seqs).toEqual([5, 6, 7])
    expect((await read('room:1', { before: 99, limit: 2 })).seqs).toEqual([9, 10])
    expect((await read('room:1', { before: 1, limit: 2 })).seqs).toEqual([])
    expect((await read('room:1', { after: 0, bytesMax: 7 })).seqs).toEqual([1, 2])
    expect((await read('room:1', { before: 11, bytesMax: 1 })).seqs).toEqual([10])
  })

  test('of another history nothing is read but where the room stands', async () => {
    const { append, read } = await setup()
    const [{ position }] = await append({}, {})
    const head = { epoch: position.epoch, seq: 2, oldest: 1 }
    expect(await read('room:1', { epoch: position.epoch })).toMatchObject({ head, seqs: [1, 2] })
    expect(await read('room:1', { epoch: 'F' })).toMatchObject({ head, seqs: [] })
    expect(await read('room:1', { epoch: 'F', before: 3 })).toMatchObject({ head, seqs: [] })
  })

  test('a note is replaced by those who know it, and stays beside messages', async () => {
    const { log, append, clock } = await setup()
    if (!log.notes) return // nothing outlives its journal
    expect(await log.notes.read()).toEqual({ text: '', at: clock.at })
    expect(await log.notes.replace('', '{"größe":1}')).toBe(true)
    await append({})
    expect(await log.notes.replace('', 'late')).toBe(false)
    expect(await log.notes.read()).toMatchObject({ text: '{"größe":1}' })
    expect(await log.notes.replace('{"größe":1}', 'next')).toBe(true)
    expect(await log.notes.read()).toMatchObject({ text: 'next' })
  })

  test('random batches leave what a plain list would', async () => {
    const { log, append, read } = await setup()
    const expected = new Map<string, string[]>()
    for (let round = 0; round < 60; round++) {
      const batch = Array.from({ length: 1 + Math.floor(Math.random() * 20) }, (_, n) => ({
        room: `room:${Math.floor(Math.random() * 3)}`,
        text: `${round}/${n}`,
        retention: { ...roomy, messages: 25 },
      }))
      await append(...batch)
      for (const { room, text } of batch) expected.set(room, [...(expected.get(room) ?? []), text])
    }
    for (const [room, all] of expected) {
      await append({ room, text: 'last', retention: { ...roomy, messages: 25 } })
      const { head, messages } = await read(room)
      expect(head.seq).toBe(all.length + 1)
      expect(messages.map(({ data }) => JSON.parse(data.toString()))).toEqual([...all, 'last'].slice(-25))
    }
    expect(log.stats().rooms).toBe(expected.size)
  })
}
