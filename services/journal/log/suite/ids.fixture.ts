// Messages with an id: each is kept once, and the id is known for long enough.
import { USER_CHARACTERS_MAX } from '@keycast/protocol'
import { ID_MS, ROOM_BYTES } from '../log.ts'
import { DAY_MS, newId, roomy, type Suite } from './setup.fixture.ts'

export function testIds({ setup, idBytes }: Suite) {
  test('the same messageId of the same publisher in the same room is the same message, also within a batch', async () => {
    const { append, read, clock } = await setup()
    const messageId = newId()
    const [first, again] = await append({ messageId }, { messageId })
    clock.at += 1_000
    const [later] = await append({ messageId })
    expect(again).toEqual({ ...first, oldest: undefined, duplicate: true })
    expect(later).toEqual({ ...first, oldest: undefined, duplicate: true })
    const [ofBob, inAnother] = await append({ messageId, from: 'bob' }, { messageId, room: 'room:2' })
    expect([ofBob, inAnother]).toMatchObject([{ duplicate: false }, { duplicate: false }])
    expect((await read('room:1')).seqs).toEqual([1, 2])
  })

  test('the longest name that a user can have publishes as others do', async () => {
    const { append, read } = await setup()
    const publish = { from: '€'.repeat(USER_CHARACTERS_MAX), messageId: 'm'.repeat(64) }
    const [first, again] = await append(publish, publish)
    expect(again).toEqual({ ...first, oldest: undefined, duplicate: true })
    expect((await read('room:1')).messages).toMatchObject([publish])
  })

  test('the same messageId with other data is refused, and takes no number', async () => {
    const { append, read } = await setup()
    const messageId = newId()
    const [, conflict] = await append({ messageId }, { messageId, text: 'y' })
    expect(conflict).toEqual({ error: 'id_conflict' })
    await append({})
    expect((await read('room:1')).seqs).toEqual([1, 2])
  })

  test('an id outlives a trimmed message by five minutes, and a held one for as long as it is held', async () => {
    const { log, append, clock } = await setup()
    const trimmed = newId()
    const held = newId()
    const one = { ...roomy, messages: 1 }
    await append({ messageId: trimmed, retention: one }, { messageId: held, room: 'room:2' })
    await append({ retention: one })
    clock.at += ID_MS - 1
    await log.expire()
    expect(await append({ messageId: trimmed, retention: one })).toMatchObject([
      { duplicate: true, position: { seq: 1 } },
    ])
    clock.at += 2 * ID_MS
    await log.expire()
    expect(await append({ messageId: trimmed, retention: one })).toMatchObject([{ duplicate: false }])
    expect(await append({ messageId: held, room: 'room:2' })).toMatchObject([{ duplicate: true }])
  })

  test('an id that is remembered counts: where there is no room for more, a publish is refused, and none is forgotten', async () => {
    const { log, append, clock } = await setup({ bytesMax: 5_000 })
    const one = { ...roomy, messages: 1 }
    const kept: string[] = []
    for (;;) {
      const messageId = newId()
      const [{ error }] = await append({ messageId, retention: one })
      if (error !== undefined) break
      kept.push(messageId)
    }
    expect((await log.head('room:1')).bytes).toBeLessThan(200)
    expect(kept.length).toBeLessThanOrEqual(5_000 / idBytes)
    expect(log.stats().bytes).toBeGreaterThan(4_000)
    clock.at += ID_MS
    await log.expire()
    for (const messageId of kept) {
      expect(await append({ messageId, retention: one })).toMatchObject([{ duplicate: true }])
    }
    clock.at++
    await log.expire()
    expect(log.stats().bytes).toBeLessThan(500 + ROOM_BYTES)
    expect(await append({ messageId: kept[0], retention: one })).toMatchObject([{ duplicate: false }])
  })

  test('an id goes with its message, however old', async () => {
    const { log, append, clock } = await setup()
    const messageId = newId()
    const two = { ...roomy, messages: 2 }
    const other = { room: 'room:2', messageId: newId() }
    await append({ messageId, retention: two }, other)
    const empty = log.stats().bytes
    clock.at += ID_MS + 1
    await log.expire()
    await append({ retention: two })
    expect(await append({ messageId, retention: two })).toMatchObject([{ duplicate: true }])
    await append({ retention: two })
    expect(await append({ messageId, retention: two })).toMatchObject([{ duplicate: false }])
    expect(await append(other)).toMatchObject([{ duplicate: true }])
    clock.at += DAY_MS + 1
    await log.expire()
    await log.expire()
    expect(log.stats().bytes).toBe(2 * ROOM_BYTES)
    expect(empty).toBeGreaterThan(0)
  })
}
