// Sends a link the messages after its cursor in each room that it watches. The history is the queue: a slow gateway
// costs one cursor per room, and no copy of unsent messages.
import { type RoomAnswer as Answer, type GapReason, gapFrom, type Message } from '@keycast/backbone'
import type { Position } from '@keycast/protocol'
import type { Log } from '../log/log.ts'
import { failed } from '../problems.ts'
import type { WatchedRooms } from '../watched-rooms.ts'
import { createBeatKeys } from './beat-keys.ts'
import type { ReadSlots } from './read-slots.ts'

/**
 * A link's interest in a room. `cursor`: how far the link was sent the room; `undefined` until the head is known.
 * `oldest`: the first message that is held, as the link was told.
 * `said`: goes before the messages. `read`: came from the log and waits for credit. `takesSlot`: a read is under way or
 * waits. `isReading`: one is under way, perhaps of a position before.
 */
interface Watch {
  key: string
  /** That was asked for. */
  position: Position | undefined
  epoch: string
  cursor: number | undefined
  oldest: number
  said: Answer | undefined
  read: Message[] | undefined
  takesSlot: boolean
  isReading: boolean
  /** Its last read failed: tried again at the next beat. */
  isFailed: boolean
}

/** The result of one read of a room's history, one message at least. */
const READ_BYTES = 64 * 1024
const READ_MESSAGES_MAX = 1_000

/** Rooms with a position in one beat. */
const HEADS_MAX = 2_000

const NOTHING = Object.freeze({ answers: [], more: false })

interface Deps {
  link: string
  slots: ReadSlots
  log: { head: Log['head']; read: Log['read'] }
  rooms: WatchedRooms
  isRoom: (key: string) => boolean
  tell: (link: string, key: string) => void
  counts: {
    resumed: (outcome: 'new' | 'whole' | GapReason) => void
    gap: () => void
    read: (from: 'tail' | 'log', messages: number) => void
  }
  onReadFailed: (error: Error) => void
}

export function createWatches({ link, slots, log, rooms, isRoom, tell, counts, onReadFailed }: Deps) {
  const watches = new Map<string, Watch>()
  const beatKeys = createBeatKeys(watches)

  function watch({ key, position }: { key: string; position: Position | undefined }) {
    const before = watches.get(key)
    if (before) slots.release(before)
    const added: Watch = {
      key,
      position,
      epoch: '',
      cursor: undefined,
      oldest: 0,
      said: undefined,
      read: undefined,
      takesSlot: false,
      isReading: false,
      isFailed: false,
    }
    watches.set(key, added)
    if (!isRoom(key)) {
      added.said = failed(key, 'unknown_namespace')
      return tell(link, key)
    }
    rooms.watch(key, link)
    place(added)
  }

  function unwatch(key: string) {
    const watched = watches.get(key)
    if (!watched) return
    watches.delete(key)
    beatKeys.forget(key)
    rooms.unwatch(key, link)
    slots.release(watched)
  }

  /** Some messages of the room are gone: what was read of it, or is being read, is read anew. */
  function forget(key: string) {
    const watched = watches.get(key)
    if (!watched?.takesSlot) return
    slots.release(watched)
    watches.set(key, { ...watched, read: undefined, isReading: false })
    tell(link, key)
  }

  /** Tells where the room stands, and where its stream continues for this link. */
  async function place(watched: Watch) {
    const { key, position } = watched
    watched.isFailed = false
    let head
    try {
      head = await log.head(key)
    } catch (error) {
      return fail(watched, error)
    }
    if (!isCurrent(watched)) return
    const { epoch, seq, oldest } = head
    const reason = position && gapFrom(position, head)
    counts.resumed(position ? (reason ?? 'whole') : 'new')
    watched.epoch = epoch
    watched.cursor = position && !reason ? position.seq : seq
    watched.oldest = oldest
    watched.said = reason
      ? { type: 'gap', key, epoch, seq, oldest, reason }
      : { type: 'head', key, epoch, seq, oldest, after: watched.cursor }
    rooms.raise(key, head)
    tell(link, key)
  }

  /** The room's messages are of another epoch than the link knows. */
  function placeAnew(watched: Watch, cursor: number) {
    slots.release(watched)
    watched.position = { epoch: watched.epoch, seq: cursor }
    watched.cursor = undefined
    place(watched)
  }

  /** @param watched has a cursor */
  function isBehind({ key, epoch, cursor = 0 }: Watch) {
    const room = rooms.get(key)
    return room !== undefined && (room.epoch !== epoch || room.head > cursor)
  }

  function fail(watched: Watch, error: unknown) {
    onReadFailed(error as Error)
    slots.release(watched)
    if (!isCurrent(watched)) return
    watched.isFailed = true
    beatKeys.add(watched.key)
    watched.said ??= failed(watched.key, 'journal_unavailable')
    tell(link, watched.key)
  }

  const isCurrent = (watched: Watch) => watches.get(watched.key) === watched

  function answersFor(key: string, bytesLeft: number) {
    const watched = watches.get(key)
    if (!watched) return NOTHING
    const answers: Answer[] = []
    if (watched.said) answers.push(watched.said)
    watched.said = undefined
    if (watched.cursor === undefined) return { answers, more: false }
    const { epoch, cursor, oldest } = watched
    const messages = nextOf(watched, cursor, bytesLeft)
    const room = rooms.get(key)
    if (room?.epoch === epoch) watched.oldest = Math.max(oldest, room.oldest)
    if (messages.length > 0) {
      answers.push({ type: 'messages', key, epoch, oldest: watched.oldest, messages })
      watched.cursor = (messages.at(-1) as Message).seq
      beatKeys.add(key)
    } else if (room && watched.oldest > oldest) {
      answers.push({ type: 'head', key, epoch, seq: room.head, oldest: watched.oldest, after: cursor })
    }
    return { answers, more: isBehind(watched) }
  }

  function nextOf(watched: Watch, cursor: number, bytesLeft: number): Message[] {
    const { read } = watched
    if (read) {
      watched.read = undefined
      slots.release(watched)
      if (read[0].seq === cursor + 1) return read
    }
    const room = rooms.get(watched.key)
    if (!room || !isBehind(watched) || watched.isFailed) return []
    if (room.epoch !== watched.epoch) {
      placeAnew(watched, cursor)
      return []
    }
    const messages = rooms.following(room, cursor, bytesLeft)
    if (!messages) readOn(watched, cursor)
    else counts.read('tail', messages.length)
    return messages ?? []
  }

  async function readOn(watched: Watch, cursor: number) {
    if (!slots.take(watched)) return
    const { key } = watched
    let found
    try {
      found = await log.read(key, { after: cursor, limit: READ_MESSAGES_MAX, bytesMax: READ_BYTES })
    } catch (error) {
      return fail(watched, error)
    } finally {
      slots.ended(watched)
    }
    if (!isCurrent(watched)) return
    if (watched.cursor !== cursor) {
      // Placed anew meanwhile: this part is of another epoch.
      slots.release(watched)
      return tell(link, key)
    }
    const { head, messages } = found
    counts.read('log', messages.length)
    if (messages.some(({ deletes }) => deletes)) rooms.forget(key) // another journal of the log may have deleted them
    const follows = head.epoch === watched.epoch && messages[0]?.seq === cursor + 1
    if (follows) watched.read = messages
    else {
      slots.release(watched)
      const { epoch, seq, oldest } = head
      const reason = gapFrom({ epoch: watched.epoch, seq: cursor }, head)
      if (!reason) return // there is nothing more
      counts.gap()
      watched.said = { type: 'gap', key, epoch, seq, oldest, reason }
      watched.epoch = epoch
      watched.cursor = seq
      watched.oldest = oldest
      rooms.raise(key, head)
    }
    tell(link, key)
  }

  /**
   * The link's position in some of its rooms. A room with unsent messages is announced again: a failed read, or one
   * that a fault of this program forgot, continues with the next beat.
   */
  function headsForBeat() {
    const heads = []
    for (const key of beatKeys.next()) {
      const watched = watches.get(key)
      if (!watched) continue
      if (watched.isFailed) retry(watched)
      if (watched.cursor === undefined) continue
      if (heads.length < HEADS_MAX) heads.push({ key, epoch: watched.epoch, seq: watched.cursor })
      if (isBehind(watched)) tell(link, key)
    }
    return heads
  }

  function retry(watched: Watch) {
    if (watched.cursor === undefined) return void place(watched)
    watched.isFailed = false
    return tell(link, watched.key)
  }

  return {
    watch,
    unwatch,
    forget,
    answersFor,
    headsForBeat,
    /** The link is gone. */
    close() {
      for (const key of watches.keys()) rooms.unwatch(key, link)
      watches.clear()
    },
    keys: () => watches.keys(),
    /**
     * The link's position in a room, for an operator.
     *
     * @returns `sent`: `null` until its place is known
     */
    describe(key: string): { link: string; sent: number | null; isBehind: boolean } | undefined {
      const watched = watches.get(key)
      return watched && { link, sent: watched.cursor ?? null, isBehind: isBehind(watched) }
    },
  }
}
