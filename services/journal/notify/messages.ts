// Tells backends of the messages that were kept: each at least once, those of a room in their order. What is still to be
// told stands in the log's outbox; here is only which rooms have something there.
import type { Position } from '@keycast/protocol'
import { namespaceOf } from '@keycast/protocol'
import {
  type Calendar,
  createCalendar,
  createOnceAMinute,
  createRecent,
  createUniqueQueue,
  type Notify,
  type Log as ServiceLog,
  SWEEP_MS,
  type UniqueQueue,
  type World,
} from '@keycast/service'
import { createPace, type Outcome, type Pace, type Post, pauseMs } from '@keycast/service/notify'
import type { Between } from '../group-commit.ts'
import { gapBytesOf, type Outbox, OWN_MS, type Untold, untoldBytesOf } from '../log/log.ts'
import { messagesBody } from './bodies.ts'

/** Messages of one call, and bytes of their data. */
const CALL_MESSAGES_MAX = 100
const CALL_BYTES_MAX = 256 * 1_024

/** Messages that are dropped at once: of each room, and bytes of all rooms. */
const CUT_MESSAGES_MAX = 500
const CUT_BYTES_MAX = 4 * 2 ** 20

/** A message that no backend took for so long is dropped. */
const AGE_MS_MAX = 24 * 3_600_000

const BOUNDS_MS = 1_000

/** Rooms taken out at once, a commit each. */
const TAKES_MAX = 100

/** Gaps are dropped for so long at a time: publishes wait for the commits. */
const DROP_MS = 200

/** The journal that tells says so again, well before another one could. */
const OWN_AGAIN_MS = 3_000
const OWN_SPARE_MS = 2_000

/** A stop waits so long for calls under way. */
const STOP_MS = 2_000

/** A room of a namespace that tells nobody any more is looked at again after so long. */
const UNWANTED_MS = 60_000

/**
 * A room that has something in the outbox. `firstAt`: the time of its first message. `isBusy`: a call is under way, or
 * it is being cut. `isNews`: something came meanwhile. `aloneUpTo`: as far as this seq messages are told one by one.
 */
interface Room {
  key: string
  firstAt: number
  failures: number
  isBusy: boolean
  isNews: boolean
  isGapAlone: boolean
  aloneUpTo: number
  calendarPage: number
}

interface Lane {
  pace: Pace
  ready: UniqueQueue<Room>
}

/** Taken out together, in one commit, once nothing else writes. */
interface Takes {
  parts: Parameters<Outbox['take']>[0]
  taken: Promise<void>
}

/** Whether the next message of a room is to go. @param now by the log's clock */
type IsPast = (message: Untold, now: number, room: string) => boolean

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
  outbox,
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
  /** Those that were told last, or cut, are last. */
  let rooms = createRecent<string, Room>()
  const lanes = new Map<string, Lane>()
  /** Rooms that wait after a failure. */
  const later: Calendar<Room> = createCalendar()
  let takes: Takes | undefined
  const isLogDue = createOnceAMinute(now)
  /** Until then this journal is the one that tells. */
  let ownedUntil = outbox.own ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY
  /** Of the rooms that are not being told nothing more can go: those that are make room themselves. */
  let isOver = false
  let isLoaded = false
  let isLooking = false
  let isStopped = false
  const stops: (() => void)[] = []

  /** How far this clock is ahead of the log's, as of the last read: it may have jumped, and the log not have followed. */
  let aheadMs = 0
  const logNow = () => wallNow() - aheadMs

  const isOwner = () => !isStopped && now() < ownedUntil

  function laneOf(key: string): Lane {
    const name = namespaceOf(key)
    const lane = lanes.get(name) ?? { pace: createPace({ now, random }), ready: createUniqueQueue<Room>() }
    lanes.set(name, lane)
    return lane
  }

  /** Something came into the outbox. */
  function wake(key: string, at: number) {
    if (!isOwner()) return
    const known = rooms.get(key)
    if (known) {
      known.isNews = true
      known.isGapAlone = false
      return
    }
    const room: Room = {
      key,
      firstAt: at,
      failures: 0,
      isBusy: false,
      isNews: false,
      isGapAlone: false,
      aloneUpTo: 0,
      calendarPage: Number.POSITIVE_INFINITY,
    }
    rooms.set(key, room)
    enqueue(room)
    pump(laneOf(key))
  }

  function enqueue(room: Room) {
    if (!room.isBusy && rooms.get(room.key) === room) laneOf(room.key).ready.add(room)
  }

  function pump(lane: Lane) {
    while (lane.ready.size > 0 && lane.pace.admits() && isOwner()) {
      const room = lane.ready.take() as Room
      if (!room.isBusy && rooms.get(room.key) === room) void tell(lane, room)
    }
  }

  function putOff(room: Room, ms: number) {
    if (rooms.get(room.key) === room) later.schedule(room, now() + ms)
  }

  function putLast(room: Room) {
    if (rooms.get(room.key) === room) rooms.set(room.key, room)
  }

  /** @returns never rejects */
  async function tell(lane: Lane, room: Room) {
    lane.pace.start()
    room.isBusy = true
    room.isNews = false
    let cameBack = false
    try {
      cameBack = await tellPart(lane, room)
    } catch (error) {
      lane.pace.end(undefined)
      room.isBusy = false
      putOff(room, pauseMs(++room.failures, random))
      onUnusable(error)
    }
    if (cameBack) for (const { value: other } of rooms) callNow(other, lane)
    pump(lane)
  }

  function onUnusable(error: unknown) {
    if (isLogDue(`outbox ${(error as Error).message}`)) report.error({ err: error }, 'the outbox cannot be used')
  }

  /** A room that waits since its last call failed need not any more. */
  function callNow(room: Room, lane: Lane) {
    if (room.calendarPage === Number.POSITIVE_INFINITY || laneOf(room.key) !== lane) return
    later.cancel(room)
    enqueue(room)
  }

  async function read(key: string, range: { limit: number; bytesMax: number }) {
    const part = await outbox.read(key, range)
    aheadMs = wallNow() - part.now
    return part
  }

  /** @returns whether the backend came back @throws {Error} of the log, with nothing ended */
  async function tellPart(lane: Lane, room: Room): Promise<boolean> {
    const { key } = room
    const limit = room.aloneUpTo > 0 ? 1 : CALL_MESSAGES_MAX
    const { gap, messages } = await read(key, { limit, bytesMax: CALL_BYTES_MAX })
    const [first] = messages
    if (first) room.firstAt = first.at
    else if (gap) room.isGapAlone = true
    const rules = rulesOf(key)
    if (!rules || !(first || gap)) {
      lane.pace.end(undefined)
      room.isBusy = false
      if (first || gap) putOff(room, UNWANTED_MS)
      else if (room.isNews) enqueue(room)
      else rooms.delete(key)
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
      putOff(room, Math.max(pauseMs(++room.failures, random), outcome.retryAfterMs ?? 0))
      lane.pace.end(false, outcome.retryAfterMs)
      return false
    }
    const isOneOfMany = outcome.kind === 'refused' && messages.length > 1
    if (isOneOfMany) room.aloneUpTo = upTo
    else {
      await take({ room: key, upTo })
      if (outcome.kind === 'refused') setAside(room, messages, outcome.why)
      else counts.told('told', messages.length)
    }
    room.failures = 0
    room.isGapAlone = false
    while (isOver && outbox.stats().bytes > bytesMax && (await dropFirst(room, 'bytes', 1, isExcess())));
    room.isBusy = false
    putLast(room)
    enqueue(room)
    return lane.pace.end(true)
  }

  function setAside({ key }: Room, messages: Untold[], why: string) {
    counts.told('set_aside', messages.length)
    const { epoch, seq } = messages.at(-1) ?? {}
    if (isLogDue(`set aside ${why}`))
      report.warn({ room: key, epoch, seq, why }, 'a message was set aside: its backend refused it')
  }

  function take(part: Takes['parts'][number]): Promise<void> {
    if (!takes || takes.parts.length === TAKES_MAX) takes = nextTakes()
    takes.parts.push(part)
    return takes.taken
  }

  function nextTakes(): Takes {
    const parts: Takes['parts'] = []
    const taken = between(() => {
      if (takes?.parts === parts) takes = undefined
      return outbox.take(parts)
    })
    return { parts, taken }
  }

  async function load() {
    for await (const { room, at } of outbox.rooms()) wake(room, at)
    isLoaded = true
  }

  /** Finds out whether this journal tells, and what other journals appended. */
  async function look(isOwnDue: boolean) {
    if (isLooking) return
    isLooking = true
    try {
      if (outbox.own && isOwnDue) {
        const askedAt = now()
        const wasOwner = isOwner()
        const isMine = await outbox.own()
        ownedUntil = isMine ? askedAt + OWN_MS - OWN_SPARE_MS : Number.NEGATIVE_INFINITY
        if (!isMine || !wasOwner) isLoaded = false
      }
      if (!isOwner()) rooms = createRecent()
      else if (!isLoaded) await load()
      else for (const key of (await outbox.news?.()) ?? []) wake(key, wallNow())
    } catch (error) {
      isLoaded = false // news may be lost
      onUnusable(error)
    } finally {
      isLooking = false
    }
  }

  function sweep() {
    if (!isOwner()) return
    for (let room = later.takeDue(now()); room; room = later.takeDue(now())) enqueue(room)
    for (const lane of lanes.values()) pump(lane)
  }

  /**
   * Drops the first messages of a room, and leaves a gap to be named.
   *
   * @param room that is busy
   * @param among so many rooms that are cut at a time
   * @returns whether anything went
   */
  async function dropFirst(room: Room, why: 'age' | 'bytes', among: number, isPast: IsPast): Promise<boolean> {
    const { key } = room
    const { gap, messages, now } = await read(key, { limit: CUT_MESSAGES_MAX, bytesMax: CUT_BYTES_MAX / among })
    const left = messages.findIndex(message => !isPast(message, now, key))
    const dropped = left < 0 ? messages : messages.slice(0, left)
    room.firstAt = (left < 0 ? undefined : messages[left])?.at ?? wallNow()
    room.isGapAlone = dropped.length === messages.length && (gap !== undefined || dropped.length > 0)
    if (dropped.length === 0) return false
    const to = dropped[dropped.length - 1]
    const isTold = rulesOf(key) !== undefined
    const named = { from: gap?.from ?? positionOf(dropped[0]), to: positionOf(to) }
    await take({ room: key, upTo: to.seq, gap: isTold ? named : undefined })
    counts.told('dropped', dropped.length)
    if (isLogDue(`dropped ${why}`)) {
      report.error(
        { room: key, why, messages: dropped.length },
        'messages that no backend took are dropped: their room is told a gap',
      )
    }
    return true
  }

  async function cut(room: Room, ...how: [why: 'age' | 'bytes', among: number, isPast: IsPast]): Promise<boolean> {
    room.isBusy = true
    try {
      return await dropFirst(room, ...how)
    } finally {
      room.isBusy = false
      putLast(room)
      // A room that waits after a failure goes on waiting.
      if (room.calendarPage === Number.POSITIVE_INFINITY) enqueue(room)
    }
  }

  async function keepAge() {
    const past = logNow() - AGE_MS_MAX
    const isDue = ({ firstAt, isBusy, isGapAlone }: Room) => !isBusy && !isGapAlone && firstAt < past
    const due = Array.from(rooms, ({ value }) => value).filter(isDue)
    for (let start = 0; start < due.length; start += TAKES_MAX) {
      const part = due.slice(start, start + TAKES_MAX).filter(isDue)
      await Promise.all(part.map(room => cut(room, 'age', part.length, ({ at }, now) => now - at > AGE_MS_MAX)))
    }
  }

  /** Rooms that were not told for the longest lose first. Gaps stay as long as there is anything else. */
  async function keepBytes() {
    for (let isCut = true; isCut && outbox.stats().bytes > bytesMax; ) {
      const due = roomsToCut()
      const isPast = isExcess()
      isCut = (await Promise.all(due.map(room => cut(room, 'bytes', due.length, isPast)))).includes(true)
    }
    if (outbox.stats().bytes > bytesMax) await dropGaps()
    isOver = outbox.stats().bytes > bytesMax
  }

  /** As much is to go as is too much. */
  function isExcess(): IsPast {
    let excess = outbox.stats().bytes - bytesMax
    return (message, _, room) => {
      const isPast = excess > 0
      excess -= untoldBytesOf(room, message)
      return isPast
    }
  }

  /** As many as have what is too much, if all have as much, and go out at once. */
  function roomsToCut() {
    const { bytes } = outbox.stats()
    const count = Math.min(TAKES_MAX, Math.ceil(((bytes - bytesMax) * rooms.size) / bytes))
    const due: Room[] = []
    for (const { value: room } of rooms) {
      if (due.length >= count) break
      if (!room.isBusy && !room.isGapAlone) due.push(room)
    }
    return due
  }

  /** Nothing but gaps, in more rooms than there is place for. */
  async function dropGaps() {
    const endsAt = now() + DROP_MS
    let dropped = 0
    while (now() < endsAt) {
      const due = gapsToDrop()
      if (due.length === 0) break
      await Promise.all(due.map(({ key }) => take({ room: key, upTo: 0 })))
      dropped += due.length
      for (const room of due) {
        // Else something came meanwhile.
        if (room.isGapAlone && !room.isBusy) forget(room)
      }
    }
    if (dropped > 0 && isLogDue('gap dropped'))
      report.error({ gaps: dropped }, 'gaps were dropped: backends will not hear that they missed messages')
  }

  /** As many as take what is too much, and go out at once. */
  function gapsToDrop() {
    const due: Room[] = []
    let excess = outbox.stats().bytes - bytesMax
    for (const { value: room } of rooms) {
      if (excess <= 0 || due.length === TAKES_MAX) break
      if (!room.isGapAlone || room.isBusy) continue
      due.push(room)
      excess -= gapBytesOf(room.key)
    }
    return due
  }

  function forget(room: Room) {
    later.cancel(room)
    rooms.delete(room.key)
  }

  let isBounding = false
  async function keepBounds() {
    if (isBounding || !isOwner()) return
    isBounding = true
    try {
      await keepAge()
      await keepBytes()
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
        const isOwnNeeded = outbox.own !== undefined && (isNeeded() || rooms.size > 0)
        const isOwnDue = isOwnNeeded && now() >= ownDueAt
        if (isOwnDue) ownDueAt = now() + OWN_AGAIN_MS
        if (isOwnNeeded || (!outbox.own && !isLoaded)) void look(isOwnDue)
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
      while (now() < endsAt && [...lanes.values()].some(({ pace }) => !pace.isIdle())) {
        await new Promise<void>(resolve => after(SWEEP_MS / 5, resolve))
      }
    },

    stats() {
      let firstAt = Number.POSITIVE_INFINITY
      for (const { value: room } of rooms) if (!room.isGapAlone) firstAt = Math.min(firstAt, room.firstAt)
      return {
        bytes: outbox.stats().bytes,
        rooms: rooms.size,
        oldestMs: Number.isFinite(firstAt) ? Math.max(0, logNow() - firstAt) : 0,
      }
    },
  }
}

const positionOf = ({ epoch, seq }: Position): Position => ({ epoch, seq })
