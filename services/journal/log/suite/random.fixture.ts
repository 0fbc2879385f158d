// Whatever is published, deleted, read and let go of in any order, also while something is written: a log and a simple
// model agree.
import { realWorld } from '@keycast/service'
import { createRandom } from '../../../../test/support/random.js'
import { bytesOf, EMPTY_MS, FLOOR_STEP, type Head, ID_MS, type Log, type Publish, type Retention } from '../log.ts'
import { type Deps, newId } from './setup.fixture.ts'

/** `keptAt`: by the clock that only goes on. */
interface Known {
  seq: number
  at: number
  keptAt: number
  publish: Publish
  isDeleted: boolean
  isNotice: boolean
}

/** `next`: of the next message, if that is certain. `oldest`: as the log last told it. */
interface Room {
  last: number
  oldest: number
  next: number | undefined
  isWatched: boolean
  retention: Retention
  messages: Map<number, Known>
}

const retentions: Retention[] = [2, 5, 1_000].flatMap(messages =>
  [5, 1_000, 1e6].flatMap(ageMs => [200, 1_000, 1e9].map(bytes => ({ messages, ageMs, bytes }))),
)

export function testRandom({ open, tellsTrims = true, keepsFloors = true }: Deps) {
  describe('whatever happens', () => {
    test.each([1, 2, 3, 4, 5, 6, 7, 8])('the log and a model agree, seed %d', async seed => {
      const random = createRandom(seed)
      const { integer, pick } = random
      const clock = { now: 1e6, wall: 1_700_000_000_000 }
      const hasSteps = integer(3) === 0
      const world = {
        ...realWorld,
        now: () => clock.now,
        wallNow: () => Math.floor(clock.wall),
        random: () => integer(1_000) / 1_000,
      }
      const log: Log = await open({ ...world, bytesMax: pick([10_000, 100_000, 2 ** 30]) })
      try {
        await run(log, clock, hasSteps, integer, pick)
      } finally {
        await log.close()
      }
    })

    async function run(
      log: Log,
      clock: { now: number; wall: number },
      hasSteps: boolean,
      integer: (below: number) => number,
      pick: <T>(list: T[]) => T,
    ) {
      const names = ['room:1', 'room:2', 'room:3', 'room:4']
      const rooms = new Map<string, Room>()
      const ids: { room: string; from: string; messageId: string }[] = []
      const keptIds = new Map<string, Known>()
      const roomOf = (name: string) => {
        const room = rooms.get(name) ?? {
          last: 0,
          oldest: 1,
          next: undefined,
          isWatched: false,
          retention: retentions[0],
          messages: new Map(),
        }
        rooms.set(name, room)
        return room
      }
      const pass = (ms: number) => {
        clock.now += ms
        clock.wall += ms
      }
      /** Done while something is written; checked after it. */
      const checks: (() => void)[] = []

      const look = async () => {
        const name = pick(names)
        const room = roomOf(name)
        const { last, oldest } = room
        if (integer(4) === 0) {
          if (room.isWatched && integer(2) === 0) {
            room.isWatched = false
            room.next = undefined
            log.unwatch(name)
          } else {
            room.isWatched = true
            log.watch(name)
            const head = await log.head(name)
            checks.push(() => {
              if (room.isWatched && room.last <= head.seq && keepsFloors) room.next = head.seq + 1
            })
          }
          return
        }
        const limit = pick([1, 2, 10])
        const range = pick<{ after?: number; before: number } | { after: number }>([
          { after: Math.max(0, last - integer(8)) },
          { before: last + 1 - integer(3) },
        ])
        const { head, messages } = await log.read(name, { ...range, limit, bytesMax: pick([1, 100, 1e6]) })
        checks.push(() => {
          expect(head.oldest).toBeLessThanOrEqual(head.seq + 1)
          if (head.seq >= last && last > 0 && head.oldest <= last + 1)
            expect(head.oldest).toBeGreaterThanOrEqual(oldest)
          for (const [index, { seq }] of messages.entries())
            if (index > 0) expect(seq).toBe(messages[index - 1].seq + 1)
          if (!('before' in range)) {
            const begin = Math.max(range.after + 1, head.oldest)
            if (begin <= head.seq) expect(messages[0]?.seq).toBe(begin)
            else expect(messages).toEqual([])
          } else {
            const end = Math.min(range.before - 1, head.seq)
            if (end >= head.oldest) expect(messages.at(-1)?.seq).toBe(end)
            else expect(messages).toEqual([])
          }
          for (const { seq, at, data, from, messageId, deleted, deletes } of messages) {
            const known = room.messages.get(seq)
            expect(known).toBeDefined()
            if (!known) continue
            if (known.isNotice) expect(deletes).toBeDefined()
            else if (!deleted) {
              expect(deletes).toBeUndefined()
              const { publish } = known
              expect({ at, data: String(data), from, messageId }).toEqual({
                at: known.at,
                data: String(publish.data),
                from: publish.from,
                messageId: publish.messageId,
              })
            } else expect(known.isDeleted).toBe(true)
          }
        })
      }

      /** Others read meanwhile. */
      async function writing<T>(write: () => Promise<T>): Promise<T> {
        const looks = []
        for (let n = integer(3); n > 0; n--) looks.push(look())
        const writes = write()
        for (let n = integer(3); n > 0; n--) {
          if (integer(2) === 0) await undefined
          looks.push(look())
        }
        const result = await writes
        await Promise.all(looks)
        return result
      }

      function noteKept(name: string, seq: number, at: number, publish: Publish, isNotice = false) {
        const room = roomOf(name)
        if (room.next !== undefined) expect([name, seq]).toEqual([name, room.next])
        else if (seq !== room.last + 1) {
          // It was forgotten.
          expect(seq).toBeGreaterThan(room.last)
          expect((seq - 1) % FLOOR_STEP).toBe(0)
          expect([...room.messages.values()].filter(each => each.seq >= room.oldest)).toEqual([])
          room.oldest = seq
        }
        room.last = seq
        room.next = room.isWatched ? seq + 1 : undefined
        const known = { seq, at, keptAt: clock.now, publish, isDeleted: false, isNotice }
        room.messages.set(seq, known)
        return known
      }

      /** Messages went, for a reason. */
      function noteOldest(name: string, oldest: number) {
        const room = roomOf(name)
        expect(oldest).toBeGreaterThanOrEqual(room.oldest)
        expect(oldest).toBeLessThanOrEqual(room.last + 1)
        room.oldest = oldest
      }

      async function append() {
        const publishes = Array.from({ length: 1 + integer(pick([1, 3, 12])) }, (): Publish => {
          const again = ids.length > 0 && integer(4) === 0 ? pick(ids) : undefined
          const said = again ?? { room: pick(names), from: pick(['ann', 'bob', '']), messageId: newId() }
          if (!again) ids.push(said)
          const messageId = again || integer(3) > 0 ? said.messageId : undefined
          const before = keptIds.get(`${said.room} ${said.from} ${messageId}`)
          const data = before && integer(5) > 0 ? before.publish.data : Buffer.from(`"${'x'.repeat(integer(80))}"`)
          const retention = pick([roomOf(said.room).retention, pick(retentions)])
          return { ...said, messageId, data, retention, payer: pick([undefined, 'a1.u1', 'a1.u2', 'g.A1']) }
        })
        const heldBefore = new Map(names.map(name => [name, roomOf(name).oldest]))
        const outcomes = await writing(() => log.append(publishes))
        for (const [index, outcome] of outcomes.entries()) {
          const publish = publishes[index]
          const { room: name, from, messageId } = publish
          const room = roomOf(name)
          const id = `${name} ${from} ${messageId}`
          const known = messageId === undefined ? undefined : keptIds.get(id)
          const isHeld = known && !known.isDeleted && known.seq >= (heldBefore.get(name) ?? 0)
          const isRecent = known && clock.now - known.keptAt <= ID_MS && !known.isDeleted
          if (outcome.error !== undefined) {
            if (outcome.error === 'id_conflict') {
              expect(known?.publish.data.equals(publish.data)).toBe(false)
            }
            continue
          }
          const { seq } = outcome.position
          if (outcome.duplicate) {
            expect(known).toBeDefined()
            expect([seq, outcome.at]).toEqual([known?.seq, known?.at])
            if (!known?.isDeleted) expect(known?.publish.data.equals(publish.data)).toBe(true)
            continue
          }
          if (!hasSteps && (isRecent || (isHeld && seq - (known?.seq ?? 0) < 2)))
            expect({ id, seq, known }).toBeUndefined()
          room.retention = publish.retention
          const kept = noteKept(name, seq, outcome.at, publish)
          if (messageId !== undefined) keptIds.set(id, kept)
        }
        const last = new Map(outcomes.map((outcome, index) => [publishes[index].room, outcome]))
        for (const [index, outcome] of outcomes.entries()) {
          if (outcome.error === undefined && !outcome.duplicate) last.set(publishes[index].room, outcome)
        }
        for (const [name, outcome] of last) {
          if (outcome.error === undefined && outcome.oldest !== undefined) noteOldest(name, outcome.oldest)
        }
      }

      async function expire() {
        const retentionOf = integer(5) === 0 ? () => undefined : undefined
        for (let rounds = 0; rounds < 50; rounds++) {
          const { trimmed, more } = await writing(() => log.expire(retentionOf))
          for (const { room, head } of trimmed) if (roomOf(room).last <= head.seq) noteOldest(room, head.oldest)
          if (!more) break
        }
      }

      async function remove() {
        const name = pick(names)
        const room = roomOf(name)
        const seqs = integer(3) === 0 ? undefined : [room.last - integer(4), room.last + 1].filter(seq => seq > 0)
        const deletion = await writing(() => log.delete(name, seqs))
        if ('error' in deletion) return
        for (const message of room.messages.values()) {
          if (!message.isNotice && (seqs ? seqs.includes(message.seq) : true)) message.isDeleted = true
        }
        if (!deletion.notice) return
        const { message, oldest } = deletion.notice
        noteKept(name, message.seq, message.at, { data: message.data, from: '', messageId: undefined } as Publish, true)
        noteOldest(name, oldest)
      }

      async function checkAll(isExpired: boolean) {
        for (const [name, room] of rooms) {
          const head: Head = await log.head(name)
          const isThere = head.seq === room.last && room.messages.size > 0
          if (!isThere) {
            if (room.next !== undefined) expect([name, head.seq]).toEqual([name, room.next - 1])
            expect(head.oldest).toBe(head.seq + 1)
            continue
          }
          if (tellsTrims) expect([name, head.oldest]).toEqual([name, room.oldest])
          else noteOldest(name, head.oldest)
          const held = [...room.messages.values()].filter(({ seq }) => seq >= head.oldest)
          if (!isExpired || hasSteps) continue
          const wall = Math.floor(clock.wall)
          const { messages, ageMs, bytes } = room.retention
          if (held.length > 1) {
            expect(held.length).toBeLessThanOrEqual(messages)
            expect(head.bytes).toBeLessThanOrEqual(bytes)
          }
          // Where a log keeps no place of a deleted one, it goes with the next.
          for (const { at, isDeleted } of held) if (!isDeleted) expect(wall - at).toBeLessThanOrEqual(ageMs)
          if (tellsTrims) {
            const sum = held.reduce((total, { publish, isDeleted }) => {
              return (
                total + bytesOf(isDeleted ? { data: Buffer.from('null'), from: '', messageId: undefined } : publish)
              )
            }, 0)
            expect([name, head.bytes]).toEqual([name, sum])
          }
        }
      }

      for (let step = 0; step < 150; step++) {
        const what = integer(12)
        if (what < 5) await append()
        else if (what < 7)
          pass(pick([0, 0.25, 0.5, 1, 3, 5.5, 300, 1_000.75, ID_MS - 1, ID_MS + 0.5, EMPTY_MS, EMPTY_MS + 1]))
        else if (what < 9) await expire()
        else if (what < 10) await remove()
        else await look()
        if (hasSteps && integer(10) === 0) clock.wall += pick([-3_600_000, -5, -0.5, 5, 3_600_000])
        for (const check of checks.splice(0)) check()
        await checkAll(what >= 7 && what < 9)
      }
      for (const [name] of rooms) log.unwatch(name)
      for (const ms of [2e6, EMPTY_MS, ID_MS, EMPTY_MS + 3_600_000 * 200, 2e6, EMPTY_MS + 1]) {
        pass(ms)
        for (let rounds = 0; rounds < 5; rounds++) await log.expire()
      }
      const { bytes, rooms: left, charged } = log.stats()
      expect({ bytes, left, charged }).toEqual({ bytes: 0, left: 0, charged: { users: 0, guests: 0, addresses: 0 } })
    }
  })
}
