import type { Notify } from '@keycast/service'
import type { Outcome } from '@keycast/service/notify'
import { createTestWorld, failed, refused, taken } from '@keycast/service/notify/test-world'
import { gapBytesOf, type Outbox, type Publish } from '../log/log.ts'
import { createMemoryLog } from '../log/memory/memory.ts'
import { createMessagesTeller } from './messages.ts'

const HOUR_MS = 3_600_000

/** @param options `answer`: of the backend, by room and the seqs of a call */
function setup({
  answer = () => taken,
  bytesMax = 2 ** 30,
  isNeeded = () => true,
}: {
  answer?: (room: string, seqs: number[]) => Outcome | Promise<Outcome>
  bytesMax?: number
  isNeeded?: () => boolean
} = {}) {
  const time = createTestWorld()
  const log = createMemoryLog({ ...time.world, bytesMax: 2 ** 30 })
  const calls: { key: string; gap?: any; messages: any[] }[] = []
  const counts: Record<string, number> = { told: 0, set_aside: 0, dropped: 0 }
  const logged: string[] = []
  const backend = { answer }
  const note = (_: unknown, text?: string) => logged.push(String(text))
  const told = (outcome: string, messages: number) => {
    counts[outcome] += messages
  }
  const tellers: ReturnType<typeof createMessagesTeller>[] = []
  const start = (outbox: Outbox = log.outbox) => {
    const teller = createMessagesTeller({
      ...time.world,
      outbox,
      between: async write => {
        await undefined
        return write()
      },
      isNeeded,
      rulesOf: room => (room.startsWith('quiet:') ? undefined : ({} as Notify)),
      async post(_, body) {
        const call = JSON.parse(body)
        calls.push(call)
        return backend.answer(
          call.key,
          call.messages.map(({ seq }: any) => seq),
        )
      },
      bytesMax,
      counts: { called: () => {}, told },
      report: { warn: note, error: note } as any,
    })
    tellers.push(teller)
    return teller
  }
  const teller = start()
  async function publish(room: string, ...texts: string[]) {
    const retention = { messages: 1, ageMs: 1_000, bytes: 1e9 }
    const publishes = texts.map((text): Publish => {
      return {
        room,
        messageId: undefined,
        from: 'ann',
        data: Buffer.from(JSON.stringify(text)),
        retention,
        isTold: true,
      }
    })
    for (const outcome of await log.append(publishes)) if (!outcome.error) tellers.at(-1)?.wake(room, outcome.at)
    await time.settle()
  }
  const seqs = (room = 'room:1') =>
    calls.filter(({ key }) => key === room).map(call => call.messages.map(({ seq }) => seq))
  return { ...time, log, teller, start, publish, calls, seqs, counts, logged, backend }
}

test('a backend is told of each message as it was kept, and then it leaves the outbox', async () => {
  const { teller, publish, calls, log, counts, world } = setup()
  await teller.start()
  await publish('room:1', 'grüße')
  const { epoch } = await log.head('room:1')
  const message = { epoch, seq: 1, at: world.wallNow(), from: 'ann', data: 'grüße' }
  expect(calls).toEqual([{ key: 'room:1', messages: [message] }])
  expect(log.outbox.stats().bytes).toBe(0)
  expect(counts).toEqual({ told: 1, set_aside: 0, dropped: 0 })
  expect(teller.stats()).toEqual({ bytes: 0, rooms: 0, oldestMs: 0 })
})

test('of a room one call is under way at a time, and all that came meanwhile is the next; other rooms do not wait', async () => {
  const ends: (() => void)[] = []
  const { teller, publish, seqs, settle } = setup({
    answer: room => (room === 'room:1' ? new Promise(resolve => ends.push(() => resolve(taken))) : taken),
  })
  await teller.start()
  await publish('room:1', 'a')
  await publish('room:1', 'b', 'c')
  await publish('room:2', 'a')
  expect([seqs(), seqs('room:2')]).toEqual([[[1]], [[1]]])
  ends[0]()
  await settle()
  expect(seqs()).toEqual([[1], [2, 3]])
})

test('a backend that is down for an hour misses no message, and is asked now and then meanwhile', async () => {
  const { teller, publish, calls, pass, backend, log, counts } = setup({ answer: () => failed })
  await teller.start()
  for (let minute = 0; minute < 60; minute++) {
    for (const room of ['room:1', 'room:2', 'room:3']) await publish(room, `${minute}`, `${minute} again`)
    await pass(60_000)
  }
  expect(calls.length).toBeLessThan(400)
  calls.length = 0
  backend.answer = () => taken
  await pass(60_000)
  for (const room of ['room:1', 'room:2', 'room:3']) {
    const told = calls.filter(({ key }) => key === room).flatMap(({ messages }) => messages)
    expect(told.map(({ seq }) => seq)).toEqual(Array.from({ length: 120 }, (_, n) => n + 1))
    expect(calls.every(({ gap }) => gap === undefined)).toBe(true)
  }
  expect([log.outbox.stats().bytes, counts]).toEqual([0, { told: 360, set_aside: 0, dropped: 0 }])
})

test('a backend that says when it will be there is left alone until then', async () => {
  const { teller, publish, calls, pass, backend } = setup({
    answer: () => ({ ...failed, retryAfterMs: 20_000 }) as Outcome,
  })
  await teller.start()
  await publish('room:1', 'a')
  await publish('room:2', 'a')
  backend.answer = () => taken
  await pass(19_500)
  expect(calls).toHaveLength(1)
  await pass(1_000)
  expect(calls.map(({ key }) => key)).toEqual(['room:1', 'room:2', 'room:1'])
})

test('a room for which a backend says when to come again waits until then, also where it takes those of others', async () => {
  const ends: (() => void)[] = []
  const { teller, publish, seqs, pass } = setup({
    answer: room =>
      room === 'room:1' ? { ...failed, retryAfterMs: 60_000 } : new Promise(resolve => ends.push(() => resolve(taken))),
  })
  await teller.start()
  await publish('room:2', 'a')
  await publish('room:1', 'a')
  ends[0]()
  await pass(59_000)
  expect(seqs()).toEqual([[1]])
  await pass(2_000)
  expect(seqs()).toEqual([[1], [1]])
})

test('a message that a backend refuses is set aside, and those beside it are told', async () => {
  const { teller, publish, seqs, counts, log, backend, pass, logged } = setup({ answer: () => failed })
  await teller.start()
  await publish('room:1', 'a', 'b', 'c', 'd')
  backend.answer = (_, of) => (of.includes(2) ? refused : taken)
  await pass(30_000)
  await publish('room:1', 'e', 'f')
  expect(seqs()).toEqual([[1, 2, 3, 4], [1, 2, 3, 4], [1], [2], [3], [4], [5, 6]])
  expect(counts).toEqual({ told: 5, set_aside: 1, dropped: 0 })
  expect(log.outbox.stats().bytes).toBe(0)
  expect(logged).toContain('a message was set aside: its backend refused it')
})

test('one room that fails keeps no other back', async () => {
  const { teller, publish, seqs, pass } = setup({ answer: room => (room === 'room:1' ? failed : taken) })
  await teller.start()
  for (let n = 0; n < 10; n++) {
    await publish('room:1', 'a')
    await publish('room:2', 'a')
    await pass(1_000)
  }
  expect(seqs('room:2').flat()).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
  expect(seqs().length).toBeGreaterThan(3)
})

test('after 24 h a message is dropped, and the next call names the gap', async () => {
  const { teller, publish, calls, pass, leap, backend, counts, log } = setup({ answer: () => failed })
  await teller.start()
  await publish('room:1', 'a', 'b')
  await publish('room:2', 'a')
  leap(23 * HOUR_MS)
  await publish('room:1', 'c')
  leap(HOUR_MS)
  await pass(2_000)
  expect(counts.dropped).toBe(3)
  calls.length = 0
  backend.answer = () => taken
  await pass(60_000)
  const { epoch } = await log.head('room:1')
  const at = (seq: number) => ({ epoch, seq })
  expect(calls).toMatchObject(
    [
      { key: 'room:2', gap: { from: at(1), to: at(1) }, messages: [] },
      { key: 'room:1', gap: { from: at(1), to: at(2) }, messages: [{ seq: 3 }] },
    ].sort(
      (one, other) => calls.findIndex(call => call.key === one.key) - calls.findIndex(call => call.key === other.key),
    ),
  )
  await publish('room:1', 'd')
  expect(calls.at(-1)).toEqual({ key: 'room:1', messages: [expect.objectContaining({ seq: 4 })] })
  expect(log.outbox.stats().bytes).toBe(0)
})

test('past its bytes the outbox loses the oldest messages of the rooms that wait longest, and says so', async () => {
  const { teller, publish, calls, pass, backend, counts, log } = setup({ answer: () => failed, bytesMax: 20_000 })
  await teller.start()
  for (let n = 0; n < 30; n++) await publish('room:1', 'x'.repeat(1_000))
  await publish('room:2', 'x')
  await pass(1_000)
  expect(log.outbox.stats().bytes).toBeLessThanOrEqual(20_000)
  expect(counts.dropped).toBeGreaterThan(10)
  backend.answer = () => taken
  await pass(60_000)
  const told = calls.filter(({ key }) => key === 'room:1').at(-1)
  expect(told?.gap).toMatchObject({ from: { seq: 1 }, to: { seq: counts.dropped } })
  expect(told?.messages[0].seq).toBe(counts.dropped + 1)
  expect(told?.messages.at(-1).seq).toBe(30)
  expect(calls.at(-1)?.gap ?? calls.find(({ key }) => key === 'room:2')?.gap).not.toEqual(null)
})

test('of many rooms with a message each, as many are cut at once as are too many, and no more', async () => {
  const { teller, publish, pass, log, counts } = setup({ answer: () => failed, bytesMax: 50_000 })
  let takes = 0
  const { take } = log.outbox
  log.outbox.take = parts => {
    takes++
    return take(parts)
  }
  await teller.start()
  for (let n = 1_000; n < 1_300; n++) await publish(`room:${n}`, 'x'.repeat(10_000))
  await pass(1_000)
  expect(log.outbox.stats().bytes).toBeLessThanOrEqual(50_000)
  expect(takes).toBeLessThan(20)
  expect(counts.dropped).toBeLessThanOrEqual(300)
})

test('no gap is dropped for what a room holds that is being told', async () => {
  const { teller, publish, pass, calls, backend, logged } = setup({ answer: () => failed, bytesMax: 1_000 })
  await teller.start()
  await publish('room:2', 'x'.repeat(1_000))
  await pass(1_000)
  const { promise, resolve } = Promise.withResolvers<Outcome>()
  backend.answer = room => (room === 'room:1' ? promise : failed)
  await publish('room:1', 'x'.repeat(1_000))
  for (let seconds = 0; seconds < 70; seconds++) await pass(1_000)
  expect(logged).not.toContain('gaps were dropped: backends will not hear that they missed messages')
  backend.answer = () => taken
  resolve(taken)
  for (let seconds = 0; seconds < 70; seconds++) await pass(1_000)
  expect(calls.filter(({ key }) => key === 'room:2').at(-1)?.gap).toMatchObject({ from: { seq: 1 }, to: { seq: 1 } })
})

test('gaps of more rooms than there is place for are dropped, as many at once as are too many: the outbox stays bounded', async () => {
  const { teller, publish, pass, log, logged, backend, calls } = setup({ answer: () => failed, bytesMax: 10_000 })
  await teller.start()
  for (let n = 100; n < 500; n++) await publish(`room:${n}`, 'x')
  await pass(2_000)
  const { bytes } = log.outbox.stats()
  expect(bytes).toBeLessThanOrEqual(10_000)
  expect(bytes).toBeGreaterThan(9_000)
  expect(logged).toContain('gaps were dropped: backends will not hear that they missed messages')
  backend.answer = () => taken
  calls.length = 0
  await pass(60_000)
  expect(new Set(calls.map(({ key }) => key)).size).toBe(bytes / gapBytesOf('room:100'))
  expect(log.outbox.stats().bytes).toBe(0)
})

test('the next one that tells goes on with what was not acknowledged', async () => {
  const { teller, publish, start, seqs, settle, backend } = setup({ answer: () => new Promise(() => {}) })
  await teller.start()
  await publish('room:1', 'a', 'b')
  backend.answer = () => taken
  const next = start()
  await next.start()
  await settle()
  expect(seqs()).toEqual([
    [1, 2],
    [1, 2],
  ])
})

test('of two that share an outbox one tells, and the other when that one is gone', async () => {
  const { log, start, publish, pass, calls, settle, world } = setup()
  let owner: string | undefined
  let ownedUntil = 0
  const untold = new Set<string>()
  const outboxOf = (name: string): Outbox => ({
    ...log.outbox,
    async own() {
      if (owner !== name && world.now() < ownedUntil) return false
      owner = name
      ownedUntil = world.now() + 10_000
      return true
    },
    async news() {
      const news = [...untold]
      untold.clear()
      return news
    },
  })
  const one = start(outboxOf('one'))
  const other = start(outboxOf('other'))
  await one.start()
  await other.start()
  await publish('room:1', 'a')
  untold.add('room:1')
  await pass(500)
  expect(calls).toHaveLength(1)
  await one.stop()
  await publish('room:1', 'b')
  other.wake('room:1', world.wallNow())
  await pass(5_000)
  expect(calls).toHaveLength(1)
  await pass(10_000)
  await settle()
  expect(calls.map(({ messages }) => messages.map(({ seq }) => seq))).toEqual([[1], [2]])
})

test('where no backend is told anything, no journal asks whether it is the one, nor for news; it does once one is', async () => {
  let isNeeded = false
  const { log, start, publish, pass, calls } = setup({ isNeeded: () => isNeeded })
  let asked = 0
  const outbox: Outbox = {
    ...log.outbox,
    async own() {
      asked++
      return true
    },
    async news() {
      asked++
      return []
    },
  }
  await start(outbox).start()
  asked = 0
  await pass(60_000)
  expect(asked).toBe(0)
  isNeeded = true
  await publish('room:1', 'a')
  await pass(500)
  expect(calls).toHaveLength(1)
  isNeeded = false
  await pass(1_000)
  asked = 0
  await pass(60_000)
  expect(asked).toBe(0)
})

test('an outbox that cannot be reached is asked again, and nothing is told twice at a time', async () => {
  const { log, start, publish, pass, seqs, logged } = setup()
  let isAway = true
  const away =
    <A extends unknown[], R>(call: (...args: A) => Promise<R>) =>
    async (...args: A) => {
      if (isAway) throw new Error('Valkey cannot be reached')
      return call(...args)
    }
  const { outbox } = log
  const teller = start({
    ...outbox,
    async *rooms() {
      if (isAway) throw new Error('Valkey cannot be reached')
      yield* outbox.rooms()
    },
    read: away(outbox.read),
    take: away(outbox.take),
  })
  await publish('room:1', 'a')
  await teller.start()
  await pass(3_000)
  expect(seqs()).toEqual([])
  expect(logged).toContain('the outbox cannot be used')
  isAway = false
  await pass(5_000)
  expect(seqs()).toEqual([[1]])
})

test('what was kept for a backend that is to be told nothing any more goes after a day, and is no gap', async () => {
  const { teller, publish, pass, leap, calls, log } = setup()
  await teller.start()
  await publish('quiet:1', 'a')
  await pass(60_000)
  expect(log.outbox.stats().bytes).toBeGreaterThan(0)
  leap(24 * HOUR_MS)
  await pass(120_000)
  expect([calls, log.outbox.stats().bytes, teller.stats().rooms]).toEqual([[], 0, 0])
})

test('while the clock is ahead of the log, rooms are not looked at again and again for what is too old', async () => {
  const { log, start, publish, pass, leap, calls, counts } = setup({ answer: () => failed })
  const { outbox } = log
  let reads = 0
  let aheadMs = 0
  const teller = start({
    ...outbox,
    async read(...of) {
      reads++
      const part = await outbox.read(...of)
      return { ...part, now: part.now - aheadMs }
    },
  })
  for (let n = 0; n < 20; n++) await publish(`room:${n}`, 'a')
  await teller.start()
  await pass(5_000)
  aheadMs = 25 * HOUR_MS
  leap(aheadMs)
  await pass(2_000)
  reads = 0
  const callsBefore = calls.length
  await pass(10_000)
  expect(reads).toBe(calls.length - callsBefore)
  expect([counts.dropped, teller.stats().oldestMs < HOUR_MS]).toEqual([0, true])
})

test('a room of which a slow backend is told all along keeps to the bound, too', async () => {
  const ends: (() => void)[] = []
  const { teller, publish, calls, pass, log, settle, counts } = setup({
    answer: () => new Promise(resolve => ends.push(() => resolve(taken))),
    bytesMax: 100_000,
  })
  await teller.start()
  for (let second = 0; second < 20; second++) {
    await publish('room:1', ...Array.from({ length: 150 }, () => 'a'))
    await pass(1_000)
    ends.shift()?.()
    await settle()
    expect(log.outbox.stats().bytes).toBeLessThan(200_000)
  }
  expect(counts.dropped).toBeGreaterThan(0)
  const heard = calls.flatMap(({ gap, messages }) => [...(gap ? [gap.from.seq, gap.to.seq] : []), messages[0].seq])
  expect(heard).toEqual(heard.toSorted((one, other) => one - other))
})
