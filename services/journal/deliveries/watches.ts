// Sends a link the messages after its cursor in each room that it watches. The history is the queue: a slow gateway
// costs one cursor per room, and no copy of unsent messages.
import { gapFrom } from '@keycast/backbone'
import { createBeatKeys } from './beat-keys.ts'
import { failed, RETRY_MS } from './failed.ts'

/**
 * @typedef {import('@keycast/backbone').Message} Message
 * @typedef {import('@keycast/backbone').Position} Position
 * @typedef {import('@keycast/backbone').RoomAnswer} Answer
 *
 * A link's interest in a room. `cursor`: how far the link was sent the room; `undefined` until the head is known. `said`:
 * goes before the messages. `read`: came from the log and waits for credit. `takesSlot`: a read is under way or waits.
 *
 * @typedef {object} Watch
 * @property {string} key
 * @property {Position | undefined} position that was asked for
 * @property {string} epoch
 * @property {number | undefined} cursor
 * @property {Answer | undefined} said
 * @property {Message[] | undefined} read
 * @property {boolean} takesSlot
 * @property {boolean} isFailed its last read failed: tried again at the next beat
 */

/** The result of one read of a room's history, one message at least. */
const READ_BYTES = 64 * 1024
const READ_MESSAGES_MAX = 1_000

/** Rooms with a position in one beat. */
const HEADS_MAX = 2_000

const NOTHING = Object.freeze({ answers: [], more: false })

/**
 * @param {object} deps
 * @param {string} deps.link
 * @param {import('./read-slots.ts').ReadSlots} deps.slots
 * @param {Pick<import('../log/log.ts').Log, 'head' | 'read'>} deps.log
 * @param {ReturnType<typeof import('../watched-rooms.ts').createWatchedRooms>} deps.rooms
 * @param {(key: string) => boolean} deps.isRoom
 * @param {(link: string, key: string) => void} deps.tell
 * @param {{ resumed: (outcome: 'new' | 'whole' | import('@keycast/backbone').GapReason) => void, gap: () => void,
 *   read: (from: 'tail' | 'log', messages: number) => void }} deps.counts
 * @param {(error: Error) => void} deps.onReadFailed
 */
export function createWatches({ link, slots, log, rooms, isRoom, tell, counts, onReadFailed }) {
  /** @type {Map<string, Watch>} */
  const watches = new Map()
  const beatKeys = createBeatKeys(watches)

  /** @param {{ key: string, position: Position | undefined }} want */
  function watch({ key, position }) {
    const before = watches.get(key)
    if (before) slots.release(before)
    /** @type {Watch} */
    const added = {
      key,
      position,
      epoch: '',
      cursor: undefined,
      said: undefined,
      read: undefined,
      takesSlot: false,
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

  /** @param {string} key */
  function unwatch(key) {
    const watched = watches.get(key)
    if (!watched) return
    watches.delete(key)
    beatKeys.forget(key)
    rooms.unwatch(key, link)
    slots.release(watched)
  }

  /** Tells where the room stands, and where its stream continues for this link. @param {Watch} watched */
  async function place(watched) {
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
    watched.said = reason
      ? { type: 'gap', key, epoch, seq, oldest, reason }
      : { type: 'head', key, epoch, seq, oldest, after: watched.cursor }
    for (const other of rooms.raise(key, head)) tell(other, key)
    tell(link, key)
  }

  /** The room's messages are of another epoch than the link knows. @param {Watch} watched @param {number} cursor */
  function placeAnew(watched, cursor) {
    slots.release(watched)
    watched.position = { epoch: watched.epoch, seq: cursor }
    watched.cursor = undefined
    place(watched)
  }

  /** @param {Watch} watched has a cursor */
  function isBehind({ key, epoch, cursor = 0 }) {
    const room = rooms.get(key)
    return room !== undefined && (room.epoch !== epoch || room.head > cursor)
  }

  /** @param {Watch} watched @param {unknown} error */
  function fail(watched, error) {
    onReadFailed(/** @type {Error} */ (error))
    slots.release(watched)
    if (!isCurrent(watched)) return
    watched.isFailed = true
    beatKeys.add(watched.key)
    watched.said ??= failed(watched.key, 'journal_unavailable', RETRY_MS)
    tell(link, watched.key)
  }

  /** @param {Watch} watched */
  const isCurrent = watched => watches.get(watched.key) === watched

  /** @param {string} key @param {number} bytesLeft */
  function answersFor(key, bytesLeft) {
    const watched = watches.get(key)
    if (!watched) return NOTHING
    /** @type {Answer[]} */
    const answers = []
    if (watched.said) answers.push(watched.said)
    watched.said = undefined
    if (watched.cursor === undefined) return { answers, more: false }
    const messages = nextOf(watched, watched.cursor, bytesLeft)
    if (messages.length > 0) {
      answers.push({ type: 'messages', key, epoch: watched.epoch, messages })
      watched.cursor = /** @type {Message} */ (messages.at(-1)).seq
      beatKeys.add(key)
    }
    return { answers, more: isBehind(watched) }
  }

  /** @param {Watch} watched @param {number} cursor @param {number} bytesLeft @returns {Message[]} */
  function nextOf(watched, cursor, bytesLeft) {
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

  /** @param {Watch} watched @param {number} cursor */
  async function readOn(watched, cursor) {
    if (!slots.take(watched)) return
    const { key } = watched
    let found
    try {
      found = await log.read(key, { after: cursor, limit: READ_MESSAGES_MAX, bytesMax: READ_BYTES })
    } catch (error) {
      return fail(watched, error)
    }
    if (!isCurrent(watched)) return
    if (watched.cursor !== cursor) {
      // Placed anew meanwhile: this part is of another epoch.
      slots.release(watched)
      return tell(link, key)
    }
    const { head, messages } = found
    counts.read('log', messages.length)
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
      for (const other of rooms.raise(key, head)) tell(other, key)
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

  /** @param {Watch} watched */
  function retry(watched) {
    if (watched.cursor === undefined) return void place(watched)
    watched.isFailed = false
    return tell(link, watched.key)
  }

  return {
    watch,
    unwatch,
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
     * @param {string} key
     * @returns {{ link: string, sent: number | null, isBehind: boolean } | undefined} `sent`: `null` until its place is
     *   known
     */
    describe(key) {
      const watched = watches.get(key)
      return watched && { link, sent: watched.cursor ?? null, isBehind: isBehind(watched) }
    },
    count: () => watches.size,
  }
}
