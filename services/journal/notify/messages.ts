// Tells backends of the messages that were kept: each at least once, those of a room in their order. What is still to be
// told stands in the log's outbox; here is only which rooms have something there.
import { createOnceAMinute, type Notify, type Log as ServiceLog, SWEEP_MS, type World } from '@keycast/service'
import { type Outcome, type Post, pauseMs } from '@keycast/service/notify'
import type { Between } from '../group-commit.ts'
import { type Outbox, OWN_MS, type Untold } from '../log/log.ts'
import { messagesBody } from './bodies.ts'
import { createBounds } from './bounds.ts'
import { createBatchedOutbox } from './outbox.ts'
import { createRooms, type Lane, type Room } from './rooms.ts'

/** Messages of one call, and bytes of their data. */
const CALL_MESSAGES_MAX = 100
const CALL_BYTES_MAX = 256 * 1_024

const BOUNDS_MS = 1_000

/** The journal that tells says so again, well before another one could. */
const OWN_AGAIN_MS = 3_000
const OWN_SPARE_MS = 2_000

/** A stop waits so long for calls under way. */
const STOP_MS = 2_000

/** A room of a namespace that tells nobody any more is looked at again after so long. */
const UNWANTED_MS = 60_000

interface Deps extends Pick<World, 'now' | 'wallNow' | 'random' | 'every' | 'after'> {
  outbox: Outbox
  between: Between
  /** Whether any room's backend is told anything. */
  isNeeded: () => boolean
  /** `undefined` where the room's backend is told nothing, or nothing any more. */
  rulesOf: (room: string) => Notify | undefined
  post: Post
  bytesMax: number
  counts: {
    called: (outcome: Outcome['kind']) => void
    told: (outcome: 'told' | 'set_aside' | 'dropped', messages: number) => void
  }
  report: Pick<ServiceLog, 'warn' | 'error'>
}

export function createMessagesTeller({
  outbox: log,
  between,
  isNeeded,
  rulesOf,
  post,
  bytesMax,
  counts,
  report,
  now,
  wallNow,
  random,
  every,
  after,
}: Deps) {
  const rooms = createRooms({ now, random })
  const outbox = createBatchedOutbox({ outbox: log, between, wallNow })
  const bounds = createBounds({
    rooms,
    outbox,
    isTold: room => rulesOf(room) !== undefined,
    bytesMax,
    onDropped: messages => counts.told('dropped', messages),
    report,
    now,
    wallNow,
  })
  const isLogDue = createOnceAMinute(now)
  /** Until then this journal is the one that tells. */
  let ownedUntil = log.own ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY
  let isLoaded = false
  let isLooking = false
  let isStopped = false
  const stops: (() => void)[] = []

  const isOwner = () => !isStopped && now() < ownedUntil

  /** Something came into the outbox. */
  function wake(key: string, at: number) {
    if (!isOwner()) return
    const known = rooms.get(key)
    if (known) {
      known.isNews = true
      known.isGapAlone = false
      return
    }
    pump(rooms.add(key, at).lane)
  }

  function pump(lane: Lane) {
    while (lane.pace.admits() && isOwner()) {
      const room = rooms.take(lane)
      if (!room) return
      void tell(room)
    }
  }

  /** @returns never rejects */
  async function tell(room: Room) {
    const { lane } = room
    lane.pace.start()
    room.isBusy = true
    room.isNews = false
    let cameBack = false
    try {
      cameBack = await tellPart(room)
    } catch (error) {
      lane.pace.end(undefined)
      room.isBusy = false
      rooms.putOff(room, pauseMs(++room.failures, random))
      onUnusable(error)
    }
    if (cameBack) rooms.callNow(lane)
    pump(lane)
  }

  function onUnusable(error: unknown) {
    if (isLogDue(`outbox ${(error as Error).message}`)) report.error({ err: error }, 'the outbox cannot be used')
  }

  /** @returns whether the backend came back @throws {Error} of the log, with nothing ended */
  async function tellPart(room: Room): Promise<boolean> {
    const { key, lane } = room
    const limit = room.aloneUpTo > 0 ? 1 : CALL_MESSAGES_MAX
    const { gap, messages } = await outbox.read(key, { limit, bytesMax: CALL_BYTES_MAX })
    const [first] = messages
    if (first) room.firstAt = first.at
    else if (gap) room.isGapAlone = true
    const rules = rulesOf(key)
    if (!rules || !(first || gap)) {
      lane.pace.end(undefined)
      room.isBusy = false
      if (first || gap) rooms.putOff(room, UNWANTED_MS)
      else if (room.isNews) rooms.enqueue(room)
      else rooms.forget(room)
      return false
    }
    if (first && first.seq > room.aloneUpTo) room.aloneUpTo = 0
    const outcome = await post(rules, messagesBody(key, messages, gap))
    counts.called(outcome.kind)
    const upTo = messages.at(-1)?.seq ?? 0
    if (outcome.kind === 'failed') {
      if (isLogDue(outcome.why))
        report.warn({ room: key, why: outcome.why }, 'a backend was not told: it is tried again')
      room.isBusy = false
      // The lane's own rest is over once the backend takes a call of another room.
      rooms.putOff(room, Math.max(pauseMs(++room.failures, random), outcome.retryAfterMs ?? 0))
      lane.pace.end(false, outcome.retryAfterMs)
      return false
    }
    const isOneOfMany = outcome.kind === 'refused' && messages.length > 1
    if (isOneOfMany) room.aloneUpTo = upTo
    else {
      await outbox.take({ room: key, upTo })
      if (outcome.kind === 'refused') setAside(room, messages, outcome.why)
      else counts.told('told', messages.length)
    }
    room.failures = 0
    room.isGapAlone = false
    await bounds.makeRoom(room)
    room.isBusy = false
    rooms.putLast(room)
    rooms.enqueue(room)
    return lane.pace.end(true)
  }

  function setAside({ key }: Room, messages: Untold[], why: string) {
    counts.told('set_aside', messages.length)
    const { epoch, seq } = messages.at(-1) ?? {}
    if (isLogDue(`set aside ${why}`))
      report.warn({ room: key, epoch, seq, why }, 'a message was set aside: its backend refused it')
  }

  async function load() {
    for await (const { room, at } of log.rooms()) wake(room, at)
    isLoaded = true
  }

  /** Finds out whether this journal tells, and what other journals appended. */
  async function look(isOwnDue: boolean) {
    if (isLooking) return
    isLooking = true
    try {
      if (log.own && isOwnDue) {
        const askedAt = now()
        const wasOwner = isOwner()
        const isMine = await log.own()
        ownedUntil = isMine ? askedAt + OWN_MS - OWN_SPARE_MS : Number.NEGATIVE_INFINITY
        if (!isMine || !wasOwner) isLoaded = false
      }
      if (!isOwner()) rooms.clear()
      else if (!isLoaded) await load()
      else for (const key of (await log.news?.()) ?? []) wake(key, wallNow())
    } catch (error) {
      isLoaded = false // news may be lost
      onUnusable(error)
    } finally {
      isLooking = false
    }
  }

  function sweep() {
    if (!isOwner()) return
    rooms.sweep()
    for (const lane of rooms.lanes()) pump(lane)
  }

  let isBounding = false
  async function keepBounds() {
    if (isBounding || !isOwner()) return
    isBounding = true
    try {
      await bounds.keep()
    } catch (error) {
      onUnusable(error)
    } finally {
      isBounding = false
    }
  }

  return {
    wake,

    /** Resolves once it is known what was not told before. */
    async start() {
      await look(true)
      let ownDueAt = now() + OWN_AGAIN_MS
      const tick = () => {
        // Messages of namespaces that keycast.yaml has no more are dropped in the end, too.
        const isOwnNeeded = log.own !== undefined && (isNeeded() || rooms.size > 0)
        const isOwnDue = isOwnNeeded && now() >= ownDueAt
        if (isOwnDue) ownDueAt = now() + OWN_AGAIN_MS
        if (isOwnNeeded || (!log.own && !isLoaded)) void look(isOwnDue)
        sweep()
      }
      stops.push(
        every(SWEEP_MS, tick),
        every(BOUNDS_MS, () => void keepBounds()),
      )
    },

    /** Begins no more calls. Resolves once those under way have ended, or soon. */
    async stop() {
      isStopped = true
      for (const stop of stops) stop()
      const endsAt = now() + STOP_MS
      while (now() < endsAt && [...rooms.lanes()].some(({ pace }) => !pace.isIdle())) {
        await new Promise<void>(resolve => after(SWEEP_MS / 5, resolve))
      }
    },

    stats() {
      let firstAt = Number.POSITIVE_INFINITY
      for (const room of rooms) if (!room.isGapAlone) firstAt = Math.min(firstAt, room.firstAt)
      return {
        bytes: outbox.bytes(),
        rooms: rooms.size,
        oldestMs: Number.isFinite(firstAt) ? Math.max(0, outbox.now() - firstAt) : 0,
      }
    },
  }
}
