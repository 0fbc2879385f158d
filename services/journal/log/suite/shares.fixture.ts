// A log that fills up: which messages it still takes, and of whom.
import { bytesOf, EMPTY_MS, ROOM_BYTES } from '../log.ts'
import { DAY_MS, newId, roomy, type Suite } from './setup.fixture.ts'

export function testShares({ setup }: Suite) {
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

  test('one message drives out a hundred others at most: each has to be looked at first', async () => {
    const { append } = await setup({ bytesMax: 40_000 })
    const small = { messageId: undefined, text: '', retention: { ...roomy, messages: 1_000 } }
    expect((await append(...Array.from({ length: 300 }, () => small))).at(-1)).toMatchObject({
      position: { seq: 300 },
    })
    const one = { messageId: undefined, retention: { ...roomy, messages: 1 } }
    expect(await append({ ...one, text: 'y'.repeat(22_000) })).toEqual([{ error: 'log_full' }])
    expect(await append(one)).toMatchObject([{ position: { seq: 301 } }])
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
}
