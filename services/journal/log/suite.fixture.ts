// The tests of a log's promise (log.ts): each log's own test file runs them.
import { randomBytes } from 'node:crypto'
import { USER_CHARACTERS_MAX } from '@keycast/protocol'
import { realWorld, type World } from '@keycast/service'
import {
  bytesOf,
  type Deletion,
  EMPTY_MS,
  FLOOR_STEP,
  ID_BYTES,
  ID_MS,
  type Log,
  MESSAGE_BYTES,
  type Message,
  NO_DATA,
  type Publish,
  ROOM_BYTES,
} from './log.ts'

const DAY_MS = 86_400_000
const roomy = { messages: 1_000, ageMs: DAY_MS, bytes: 2 ** 24 }
const newId = () => randomBytes(12).toString('base64url')

interface Deps {
  /** A fresh, empty log. */
  open: (options: World & { bytesMax: number }) => Promise<Log>
  /** That an id counts. */
  idBytes?: number
}

export function testLog({ open, idBytes = ID_BYTES }: Deps) {
  const opened: Log[] = []
  afterEach(async () => {
    for (const log of opened.splice(0)) await log.close()
  })

  async function setup({ bytesMax = 2 ** 30 }: { bytesMax?: number } = {}) {
    const clock = { at: 1_700_000_000_000 }
    const log = await open({ ...realWorld, now: () => clock.at, wallNow: () => clock.at, bytesMax })
    opened.push(log)
    const publishOf = ({ text = 'x', ...publish }: Partial<Publish> & { text?: string } = {}): Publish => ({
      room: 'room:1',
      messageId: newId(),
      from: 'ann',
      data: Buffer.from(JSON.stringify(text)),
      retention: roomy,
      ...publish,
    })
    const append = (...publishes: Parameters<typeof publishOf>[0][]): Promise<any[]> =>
      log.append(publishes.map(publishOf))
    const read = async (
      room: string,
      range: Partial<{ after: number; before: number; limit: number; bytesMax: number; epoch: string }> = {},
    ) => {
      const bounds = range.before === undefined ? { after: range.after ?? 0 } : { before: range.before }
      const { head, messages } = await log.read(room, { limit: 1e6, bytesMax: 1e9, ...range, ...bounds } as any)
      return { head, seqs: messages.map(({ seq }) => seq), messages }
    }
    return { log, clock, append, read, publishOf }
  }

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

  test('rooms count: ever new ones fill the log, and it is free again when they are forgotten', async () => {
    const { append, log, clock } = await setup({ bytesMax: 20_000 })
    let kept = 0
    while (
      (await append({ room: `room:${kept}`, messageId: undefined, retention: { ...roomy, ageMs: 1_000 } }))[0].position
    )
      kept++
    expect(kept).toBeLessThanOrEqual(20_000 / ROOM_BYTES)
    clock.at += 1_001
    await log.expire()
    expect(log.stats().bytes).toBe(kept * ROOM_BYTES)
    clock.at += EMPTY_MS + 1
    await log.expire()
    expect(log.stats()).toMatchObject({ rooms: 0, bytes: 0 })
    expect(await append({})).toMatchObject([{ duplicate: false }])
  })

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

  test('a log that has no room keeps what still fits, and takes messages again when there is some', async () => {
    const { append, read, log, clock } = await setup({ bytesMax: 1_200 + 2 * ROOM_BYTES })
    const messageId = newId()
    await append({ text: 'y'.repeat(500), messageId })
    expect(
      await append({ room: 'room:2', text: 'y'.repeat(500) }, { text: 'y'.repeat(500), messageId }, {}),
    ).toMatchObject([{ error: 'log_full' }, { duplicate: true }, { position: { seq: 2 } }])
    expect(await read('room:2')).toMatchObject({ head: { seq: 0 }, seqs: [] })
    clock.at += DAY_MS + 1
    await log.expire()
    expect(await append({ room: 'room:2', text: 'y'.repeat(500) })).toMatchObject([{ position: { seq: 1 } }])
  })

  test('a full log takes a message that drives out as much as it brings, and no other', async () => {
    const { append, read, log } = await setup({ bytesMax: 20_000 })
    const ten = { ...roomy, messages: 10 }
    const old = { messageId: undefined, text: 'y'.repeat(500), retention: ten }
    for (let n = 0; n < 10; n++) await append(old)
    while ((await append({ ...old, room: 'room:2', retention: roomy }))[0].position);
    const { bytes } = log.stats()
    const outcomes = await append(old, { ...old, room: 'room:2', retention: roomy }, old)
    expect(outcomes).toMatchObject([{ position: { seq: 11 } }, { error: 'log_full' }, { position: { seq: 12 } }])
    expect(await append({ ...old, text: 'y'.repeat(3_000) })).toEqual([{ error: 'log_full' }])
    expect((await read('room:1')).seqs).toEqual([3, 4, 5, 6, 7, 8, 9, 10, 11, 12])
    expect(log.stats().bytes).toBe(bytes)
  })

  test('what may fill only a share of the log leaves the rest to others', async () => {
    const { append, log } = await setup({ bytesMax: 20_000 })
    while ((await append({ text: 'y'.repeat(300), share: 0.75 }))[0].position);
    expect(log.stats().bytes).toBeGreaterThan(14_000)
    expect(log.stats().bytes).toBeLessThanOrEqual(15_000)
    expect(await append({ text: 'y'.repeat(300) })).toMatchObject([{ duplicate: false }])
  })

  describe('shares', () => {
    const big = { text: 'y'.repeat(500), messageId: undefined }

    /** A log, and `fill`, which has payers in turn publish until each is refused; it gives what they are told then. */
    async function setupShares(bytesMax = 200_000) {
      const given = await setup({ bytesMax })
      const fill = async (payers: string[], publish: Parameters<typeof given.publishOf>[0] = big) => {
        const told = new Map<string, string>()
        for (let n = 0; told.size < payers.length; n++) {
          const payer = payers[n % payers.length]
          const [{ error }] = await given.append({ ...publish, payer })
          if (error !== undefined) told.set(payer, error)
          else told.delete(payer)
        }
        return [...told.values()]
      }
      /** Of the log, as it says after its next look at what is old. */
      const charged = async () => {
        await given.log.expire()
        const { users, guests, addresses } = given.log.stats().charged
        return [users, guests, addresses].map(bytes => bytes / bytesMax)
      }
      return { ...given, fill, charged }
    }

    test.each([
      ['a user', ['n1.a1.u1'], 1 / 9, 0],
      ['users without end at one address', Array.from({ length: 30 }, (_, n) => `a1.u${n}`), 1 / 2, 0],
      ['all who come without a token', Array.from({ length: 30 }, (_, n) => `g.A${n}`), 1 / 4, 1],
      ['where nobody has a token, an address', ['a1'], 1 / 2, 2],
    ])('%s: no more than a share of the log is kept, and others go on', async (_, payers, share, kind) => {
      const { fill, charged, append, log } = await setupShares()
      expect(new Set(await fill(payers))).toEqual(new Set(['capacity']))
      const held = await charged()
      expect(held[kind]).toBeGreaterThan(share - 0.02)
      // The last one that was kept.
      expect(held[kind]).toBeLessThanOrEqual(share + 1_000 / 200_000)
      expect(held.reduce((sum, each) => sum + each, 0)).toBe(held[kind])
      expect(log.stats().bytes / log.stats().bytesMax).toBeCloseTo(held[kind], 2)
      expect(await append({ ...big, payer: 'n2.a2.u2' }, big, { ...big, payer: payers[0] })).toMatchObject([
        { duplicate: false },
        { duplicate: false },
        { error: 'capacity' },
      ])
    })

    test('what is gone counts for nobody any more, whether it was old, deleted, or went with its room', async () => {
      const { fill, charged, append, log, clock } = await setupShares()
      const publish = { ...big, payer: 'a1.u1' }
      await fill(['a1.u1'])
      await log.delete('room:1', [1, 2])
      expect(await append(publish)).toMatchObject([{ duplicate: false }])
      await fill(['a1.u1'])
      await log.delete('room:1')
      expect(await append(publish)).toMatchObject([{ duplicate: false }])
      await fill(['a1.u1'])
      clock.at += DAY_MS + 1
      expect((await charged())[0] * 200_000).toBe(ROOM_BYTES)
      clock.at += EMPTY_MS + 1
      expect(await charged()).toEqual([0, 0, 0])
      expect(await append(publish)).toMatchObject([{ duplicate: false }])
    })

    test('a room counts for its first publisher until it is forgotten', async () => {
      const { append, charged, log, clock } = await setupShares()
      const publish = (room: string) => ({ room, messageId: undefined, payer: 'a1.u1' })
      let rooms = 0
      while ((await append(publish(`room:${rooms}`)))[0].error === undefined) rooms++
      expect(rooms).toBeLessThanOrEqual(200_000 / 9 / ROOM_BYTES)
      clock.at += DAY_MS + 1
      expect((await charged())[0] * 200_000).toBe(rooms * ROOM_BYTES)
      clock.at += EMPTY_MS + 1
      await log.expire()
      expect(await charged()).toEqual([0, 0, 0])
      expect(await append(publish('room:0'))).toMatchObject([{ duplicate: false }])
    })

    test('whoever has had their share may publish what drives out as much as it brings, and no more', async () => {
      const { append, fill } = await setupShares()
      const ten = { ...big, retention: { ...roomy, messages: 10 }, payer: 'a1.u1' }
      for (let n = 0; n < 10; n++) await append(ten)
      const other = { ...big, room: 'room:2' }
      await fill(['a1.u1'], other)
      const outcomes = await append(ten, { ...other, payer: 'a1.u1' }, ten, { ...ten, text: 'y'.repeat(20_000) })
      expect(outcomes).toMatchObject([
        { position: { seq: 11 } },
        { error: 'capacity' },
        { position: { seq: 12 } },
        { error: 'capacity' },
      ])
    })

    test('what is kept for others leaves a payer nothing at last: the log is full, and it is told so', async () => {
      const { append } = await setupShares()
      while ((await append(big))[0].error === undefined);
      expect(await append({ text: 'y', messageId: undefined, payer: 'a1.u1' })).toEqual([{ error: 'log_full' }])
    })

    test('many small messages of a large log are charged as what they are, in few charges', async () => {
      const bytesMax = 2 ** 30
      const { append, charged } = await setupShares(bytesMax)
      const count = 20_000
      for (let n = 0; n < count; n += 1_000) {
        const some = Array.from({ length: 1_000 }, () => ({ ...big, retention: { ...roomy, messages: count } }))
        await append(...some.map(publish => ({ ...publish, payer: 'a1.u1' })))
      }
      const bytes = count * bytesOf({ data: Buffer.from(JSON.stringify(big.text)), from: 'ann', messageId: undefined })
      const [users] = await charged()
      // Six times what chance makes of it two times in three.
      expect(Math.abs((users * bytesMax) / bytes - 1)).toBeLessThan(6 / Math.sqrt(bytes / (bytesMax / 2 ** 15)))
    })
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

    test('a room is emptied in calls that each end soon, and then says that all are gone', async () => {
      const { append, read, log } = await setup()
      const retention = { ...roomy, messages: 100_000 }
      for (let batch = 0; batch < 12; batch++) {
        await append(...Array.from({ length: 1_000 }, () => ({ retention, messageId: undefined })))
      }
      let messages = 0
      for (let more = true; more; ) {
        const deletion = (await log.delete('room:1')) as Deletion
        messages += deletion.messages
        more = deletion.more
        expect(deletion.notice === undefined).toBe(more)
      }
      expect(messages).toBe(12_000)
      const { head, messages: left } = await read('room:1')
      expect(head).toMatchObject({ seq: 12_001, oldest: 12_001, bytes: MESSAGE_BYTES + NO_DATA.length })
      expect(left).toMatchObject([{ seq: 12_001, deletes: [[1, 12_000]] }])
      expect(await log.delete('room:1')).toEqual({ messages: 0, more: false, notice: undefined })
      expect(await append({})).toMatchObject([{ position: { seq: 12_002 } }])
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
      const named = []
      for (let cursor: string | undefined = ''; cursor !== undefined; ) {
        const part: Awaited<ReturnType<Log['rooms']>> = await log.rooms(cursor)
        named.push(...part.rooms)
        cursor = part.cursor
      }
      expect(named.sort()).toEqual(expected.sort())
    })
  })

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

  describe('the outbox', () => {
    async function setupOutbox() {
      const given = await setup()
      const { outbox } = given.log
      const tell = (...publishes: Parameters<typeof given.publishOf>[0][]) =>
        given.append(...publishes.map(publish => ({ isTold: true, ...publish })))
      const untold = async (room: string, range = {}) => outbox.read(room, { limit: 100, bytesMax: 1e6, ...range })
      const seqsOf = async (room: string, range = {}) => (await untold(room, range)).messages.map(({ seq }) => seq)
      const roomsOf = async () => {
        const { rooms } = await outbox.rooms('')
        return rooms.map(({ room }) => room).sort()
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
      expect(await roomsOf()).toEqual(['room:1'])
      await outbox.take([{ room: 'room:1', upTo: 4 }])
      expect(outbox.stats().bytes).toBe(0)
    })

    test('rooms without number are all named', async () => {
      const { log, tell } = await setupOutbox()
      const expected = Array.from({ length: 1_150 }, (_, n) => `room:${n}`)
      await tell(...expected.map(room => ({ room })))
      const named: string[] = []
      for (let cursor: string | undefined = ''; cursor !== undefined; ) {
        const part: Awaited<ReturnType<Log['outbox']['rooms']>> = await log.outbox.rooms(cursor)
        named.push(...part.rooms.map(({ room }) => room))
        cursor = part.cursor
      }
      expect(named.sort()).toEqual(expected.sort())
    })

    test('rooms that are taken out while they are named keep no other from being named', async () => {
      const { tell, outbox } = await setupOutbox()
      const expected = Array.from({ length: 2_500 }, (_, n) => `room:${n}`)
      await tell(...expected.map(room => ({ room })))
      const named = new Set<string>()
      for (let cursor: string | undefined = ''; cursor !== undefined; ) {
        const part: Awaited<ReturnType<Log['outbox']['rooms']>> = await outbox.rooms(cursor)
        await outbox.take(part.rooms.map(({ room }) => ({ room, upTo: 1 })))
        for (const { room } of part.rooms) named.add(room)
        cursor = part.cursor
      }
      expect(named.size).toBe(expected.length)
    })
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
