// What is forgotten: messages beyond their number, bytes or age, and rooms that stay empty.
import { bytesOf, EMPTY_MS, FLOOR_STEP, ROOM_BYTES } from '../log.ts'
import { DAY_MS, newId, roomy, type Suite } from './setup.fixture.ts'

export function testHistory({ setup, idBytes, trimsMax }: Suite) {
  test.each([
    ['messages', { ...roomy, messages: 3 }],
    ['bytes', { ...roomy, bytes: 3 * bytesOf({ data: Buffer.from('"x"'), from: 'ann', messageId: newId() }) }],
  ])('a bound of %s trims the oldest', async (_, retention) => {
    const { append, read, log } = await setup()
    for (let n = 0; n < 5; n++) await append({ retention })
    expect(await read('room:1')).toMatchObject({ head: { seq: 5, oldest: 3 }, seqs: [3, 4, 5] })
    expect(log.stats().bytes).toBe((await log.head('room:1')).bytes + 5 * idBytes + ROOM_BYTES)
  })

  test('the oldest message that a room holds is told with what is kept, and where age trims', async () => {
    const { append, log, clock } = await setup()
    const two = { ...roomy, messages: 2 }
    for (const oldest of [1, 1, 2, 3]) expect(await append({ retention: two })).toMatchObject([{ oldest }])
    expect(await append({ retention: two }, { room: 'room:2' })).toMatchObject([{ oldest: 4 }, { oldest: 1 }])
    clock.at += DAY_MS + 1
    const { trimmed } = await log.expire()
    const told = log.news ? await log.news.heads(['room:1', 'room:2']) : trimmed
    expect(told.map(({ room, head: { seq, oldest } }) => [room, seq, oldest]).sort()).toEqual([
      ['room:1', 5, 6],
      ['room:2', 1, 2],
    ])
  })

  test('a message heavier than the bound of bytes is held until the next one', async () => {
    const { append, read } = await setup()
    await append({ retention: { ...roomy, bytes: 1 } })
    expect((await read('room:1')).seqs).toEqual([1])
  })

  test('age trims by itself; a room emptied by it keeps its head', async () => {
    const { append, read, log, clock } = await setup()
    await append({}, {})
    clock.at += DAY_MS + 1
    await log.expire()
    expect(await read('room:1')).toMatchObject({ head: { seq: 2, oldest: 3, bytes: 0 }, seqs: [] })
    expect(await append({})).toMatchObject([{ position: { seq: 3 } }])
    expect((await read('room:1')).head.oldest).toBe(3)
  })

  test.each([
    ['age', { ...roomy, ageMs: 60_000 }, [0, 61_000], [2]],
    ['their number', { ...roomy, messages: 1, ageMs: 60_000 }, [0, 20_000, 40_000, 59_999], [4]],
  ])(
    'a message is held for its own age, where %s trimmed those before it as it came',
    async (_, retention, times, held) => {
      const { append, read, log, clock } = await setup()
      const startAt = clock.at
      for (const time of times) {
        clock.at = startAt + time
        await append({ retention })
      }
      const newestAt = clock.at
      for (const ageMs of [100, retention.ageMs]) {
        clock.at = newestAt + ageMs
        await log.expire()
        expect(await read('room:1')).toMatchObject({ head: { oldest: held[0] }, seqs: held })
      }
      clock.at++
      await log.expire()
      expect((await read('room:1')).seqs).toEqual([])
    },
  )

  test('a room that was empty for an hour leaves nothing, and its numbers never come again', async () => {
    const { append, read, log, clock } = await setup()
    await append({}, {}, { room: 'room:2' })
    clock.at += DAY_MS + 1
    await log.expire()
    clock.at += EMPTY_MS
    await log.expire()
    expect(log.stats()).toMatchObject({ rooms: 2, bytes: 2 * ROOM_BYTES })
    await append({ room: 'room:2' })
    clock.at += 1
    await log.expire()
    expect(log.stats().rooms).toBe(1)
    const there = { seq: FLOOR_STEP, oldest: FLOOR_STEP + 1, bytes: 0 }
    expect(await read('room:1')).toMatchObject({ head: there, seqs: [] })
    expect(await read('room:3')).toMatchObject({ head: there, seqs: [] })
    expect((await read('room:2')).head).toMatchObject({ seq: 2 })
    expect(await append({}, {})).toMatchObject([1, 2].map(n => ({ position: { seq: FLOOR_STEP + n } })))
    expect(await read('room:1')).toMatchObject({
      head: { oldest: FLOOR_STEP + 1 },
      seqs: [1, 2].map(n => FLOOR_STEP + n),
    })
    clock.at += DAY_MS + 1
    await log.expire()
    clock.at += EMPTY_MS + 1
    await log.expire()
    expect(log.stats()).toMatchObject({ rooms: 0, bytes: 0 })
    expect((await read('room:1')).head).toMatchObject({ seq: 2 * FLOOR_STEP })
  })

  test('a room is emptied by age however often it was empty before', async () => {
    const { append, read, log, clock } = await setup()
    const short = { ...roomy, ageMs: 1_000 }
    for (let seq = 1; seq <= 3; seq++) {
      expect(await append({ retention: short })).toMatchObject([{ position: { seq } }])
      clock.at += 1_001
      await log.expire()
      expect((await read('room:1')).seqs).toEqual([])
    }
  })

  test('a room that is watched stays where it is', async () => {
    const { append, log, clock } = await setup()
    if (log.news) return // tested with its server: watching reaches it on another connection
    log.watch('room:1')
    log.watch('room:2')
    await append({}, { room: 'room:3' })
    clock.at += DAY_MS + 1
    await log.expire()
    clock.at += EMPTY_MS + 1
    await log.expire()
    expect(log.stats().rooms).toBe(1)
    expect(await append({}, { room: 'room:2' }, { room: 'room:3' })).toMatchObject([
      { position: { seq: 2 } },
      { position: { seq: 1 } },
      { position: { seq: FLOOR_STEP + 1 } },
    ])
    clock.at += DAY_MS + 1
    await log.expire()
    log.unwatch('room:1')
    clock.at += EMPTY_MS + 1
    await log.expire()
    expect(await log.head('room:1')).toMatchObject({ seq: 2 * FLOOR_STEP })
    expect(await log.head('room:2')).toMatchObject({ seq: 1 })
  })

  test.each([0, 1, 2, 5, 20])(
    'a room goes on from where those were told who came as it was forgotten (%d)',
    async turns => {
      const { append, log, clock } = await setup()
      if (log.news) return
      await append({})
      clock.at += DAY_MS + 1
      await log.expire()
      clock.at += EMPTY_MS + 1
      const expiring = log.expire()
      for (let turn = 0; turn < turns; turn++) await undefined
      log.watch('room:1')
      const { seq } = await log.head('room:1')
      await expiring
      expect(await append({})).toMatchObject([{ position: { seq: seq + 1 } }])
      clock.at += DAY_MS + 1
      await log.expire()
      log.unwatch('room:1')
      clock.at += EMPTY_MS + 1
      await log.expire()
      expect(log.stats()).toMatchObject({ rooms: 0, bytes: 0 })
    },
  )

  test('less history than before frees room though nobody can publish, and only in rooms that are still set', async () => {
    const { append, read, log, clock } = await setup({ bytesMax: 4_000 + 3 * ROOM_BYTES })
    for (const room of ['room:1', 'room:2', 'other:1']) {
      for (let n = 0; n < 6; n++) await append({ room, text: 'y'.repeat(100), messageId: undefined })
    }
    expect(await append({ text: 'y'.repeat(1_000) })).toEqual([{ error: 'log_full' }])
    const bytes = log.stats().bytes - 3 * ROOM_BYTES

    const fewer = { ...roomy, messages: 2 }
    const retentionOf = (room: string) => (room.startsWith('room:') ? fewer : undefined)
    clock.at += 1
    for (let call = 0; call < 3; call++) await log.expire(retentionOf)
    expect(await read('room:1')).toMatchObject({ head: { seq: 6, oldest: 5 }, seqs: [5, 6] })
    expect((await read('room:2')).seqs).toEqual([5, 6])
    expect((await read('other:1')).seqs).toEqual([1, 2, 3, 4, 5, 6])
    expect(log.stats().bytes).toBe((bytes / 18) * 10 + 3 * ROOM_BYTES)
    expect(await append({ text: 'y'.repeat(1_000) })).toMatchObject([{ position: { seq: 7 } }])
  })

  test.each([
    ['longer', 2 * DAY_MS, [1, 2]],
    ['shorter', DAY_MS / 2, []],
  ])('a history that becomes %s as its messages are past their age holds', async (_, ageMs, held) => {
    const { append, read, log, clock } = await setup()
    await append({ messageId: undefined }, { messageId: undefined })
    clock.at += DAY_MS + 1
    const retentionOf = () => ({ ...roomy, ageMs })
    for (let call = 0; call < 3; call++) await log.expire(retentionOf)
    const { seqs, head } = await read('room:1')
    expect(seqs).toEqual(held)
    expect(log.stats().bytes).toBe(head.bytes + ROOM_BYTES)
  })

  test('of a history that became far shorter all goes in parts, whether or not somebody publishes', async () => {
    const { append, read, log, clock } = await setup()
    const long = { messageId: undefined, retention: { ...roomy, messages: 100_000 } }
    for (const room of ['room:1', 'room:2']) {
      for (let part = 0; part < 6; part++) await append(...Array.from({ length: 2_000 }, () => ({ ...long, room })))
    }

    const few = { ...roomy, messages: 10 }
    clock.at += 1
    await append({ ...long, retention: few })
    const { oldest } = await log.head('room:1')
    expect(oldest - 1).toBeLessThanOrEqual(trimsMax)
    const retentionOf = () => few
    for (let call = 0; call < 10; call++) await log.expire(retentionOf)
    expect(await read('room:1')).toMatchObject({ head: { seq: 12_001, oldest: 11_992 } })
    expect(await read('room:2')).toMatchObject({ head: { seq: 12_000, oldest: 11_991 } })
    expect((await read('room:2')).seqs).toHaveLength(10)
  })
}
