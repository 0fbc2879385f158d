// What each link is sent: of every watched room what follows its cursor, of every get the part it asks for. The history
// is the queue: a gateway that is slow costs a cursor a room, and no copy of what it has not been sent.
import { gapFrom, HISTORY_BYTES_MAX, readHistoryKey, roomErrorCodes } from '@keycast/backbone'

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
 *
 * @typedef {{ key: string, answer: Answer | undefined, takesSlot: boolean }} Get
 *
 * `slots`: reads under way, and what they gave while it waits for credit. `waiting`: keys that wait for one. `sent`: rooms
 * of which something was sent since the last beat, `sentBefore` since the one before that. `rotation`: of all its rooms.
 *
 * @typedef {object} Link
 * @property {string} id
 * @property {Map<string, Watch>} watches
 * @property {Map<string, Get>} gets
 * @property {number} slots
 * @property {Set<string>} waiting
 * @property {Set<string>} sent
 * @property {Set<string>} sentBefore
 * @property {Iterator<string> | undefined} rotation
 */

/** Reads of one link, so that one that comes back with 10,000 rooms holds 16 parts of a history and not 10,000. */
const SLOTS_MAX = 16

/** What one read of a room's history gives, one message at least. */
const READ_BYTES = 64 * 1024
const READ_MESSAGES_MAX = 1_000

/** Rooms whose position goes with a beat: those that were sent something lately, and in turn some of the others. */
const HEADS_MAX = 2_000
const HEADS_IN_TURN = 200

/** Beats come once a second, and with them what failed is tried again. */
const RETRY_MS = 1_000

const NOTHING = Object.freeze({ answers: [], more: false })

/**
 * @param {object} deps
 * @param {Pick<import('../log/log.js').Log, 'head' | 'read'>} deps.log
 * @param {ReturnType<typeof import('../rooms.js').createRooms>} deps.rooms
 * @param {(key: string) => boolean} deps.isRoom
 * @param {(link: string, key: string) => void} deps.tell
 * @param {{ resumed: (outcome: 'new' | 'whole' | import('@keycast/backbone').GapReason) => void, gap: () => void,
 *   read: (from: 'tail' | 'log', messages: number) => void }} deps.counts
 * @param {(error: Error) => void} deps.onReadFailed
 */
export function createDeliveries({ log, rooms, isRoom, tell, counts, onReadFailed }) {
  /** @type {Map<string, Link>} */
  const links = new Map()

  /** @param {string} id */
  function linkOf(id) {
    /** @type {Link} */
    const link = links.get(id) ?? {
      id,
      watches: new Map(),
      gets: new Map(),
      slots: 0,
      waiting: new Set(),
      sent: new Set(),
      sentBefore: new Set(),
      rotation: undefined,
    }
    links.set(id, link)
    return link
  }

  /** @param {string} id @param {{ key: string, position: Position | undefined }} want */
  function onWatch(id, { key, position }) {
    const link = linkOf(id)
    const before = link.watches.get(key)
    if (before) release(link, before)
    /** @type {Watch} */
    const watch = {
      key,
      position,
      epoch: '',
      cursor: undefined,
      said: undefined,
      read: undefined,
      takesSlot: false,
      isFailed: false,
    }
    link.watches.set(key, watch)
    if (!isRoom(key)) {
      watch.said = failed(key, 'unknown_namespace')
      return tell(id, key)
    }
    rooms.watch(key, id)
    place(link, watch)
  }

  /** Says where the room stands, and where its stream goes on for this link. @param {Link} link @param {Watch} watch */
  async function place(link, watch) {
    const { key, position } = watch
    watch.isFailed = false
    let head
    try {
      head = await log.head(key)
    } catch (error) {
      return fail(link, watch, error)
    }
    if (!isCurrent(link, watch)) return
    const { epoch, seq, oldest } = head
    const reason = position && gapFrom(position, head)
    counts.resumed(position ? (reason ?? 'whole') : 'new')
    watch.epoch = epoch
    watch.cursor = position && !reason ? position.seq : seq
    watch.said = reason
      ? { type: 'gap', key, epoch, seq, oldest, reason }
      : { type: 'head', key, epoch, seq, oldest, after: watch.cursor }
    raiseHead(key, seq)
    tell(link.id, key)
  }

  /** @param {string} key @param {number} seq */
  function raiseHead(key, seq) {
    const room = rooms.get(key)
    if (room) room.head = Math.max(room.head, seq)
  }

  /** @param {Link} link @param {Watch} watch @param {unknown} error */
  function fail(link, watch, error) {
    onReadFailed(/** @type {Error} */ (error))
    release(link, watch)
    if (!isCurrent(link, watch)) return
    watch.isFailed = true
    link.sent.add(watch.key) // so that the next beat looks at it
    watch.said ??= failed(watch.key, 'journal_unavailable', RETRY_MS)
    tell(link.id, watch.key)
  }

  /** @param {Link} link @param {Watch} watch */
  const isCurrent = (link, watch) => links.get(link.id) === link && link.watches.get(watch.key) === watch

  /** @param {string} id @param {string} key */
  function onUnwatch(id, key) {
    const link = links.get(id)
    const watch = link?.watches.get(key)
    if (!link || !watch) return
    link.watches.delete(key)
    link.sent.delete(key)
    link.sentBefore.delete(key)
    rooms.unwatch(key, id)
    release(link, watch)
  }

  /** @param {string} id @param {{ key: string }} want */
  function onGet(id, { key }) {
    const link = linkOf(id)
    onCancelGet(id, key)
    /** @type {Get} */
    const get = { key, answer: undefined, takesSlot: false }
    link.gets.set(key, get)
    const asked = readHistoryKey(key)
    if (!asked || !isRoom(asked.room)) {
      get.answer = failed(key, asked ? 'unknown_namespace' : 'bad_message')
      return tell(id, key)
    }
    readPart(link, get, asked)
  }

  /** @param {string} id @param {string} key */
  function onCancelGet(id, key) {
    const link = links.get(id)
    const get = link?.gets.get(key)
    if (!link || !get) return
    link.gets.delete(key)
    release(link, get)
  }

  /** @param {Link} link @param {Get} get @param {NonNullable<ReturnType<typeof readHistoryKey>>} asked */
  async function readPart(link, get, { room, range }) {
    if (!takeSlot(link, get)) return
    const { key } = get
    const { epoch: wanted, limit, after } = range
    try {
      const bounds = after === undefined ? { before: range.before } : { after }
      const { head, messages } = await log.read(room, { ...bounds, limit, bytesMax: HISTORY_BYTES_MAX })
      const { epoch, seq: newest, oldest } = head
      const [first, last] = [messages[0]?.seq, messages.at(-1)?.seq]
      const isEnd = after === undefined ? (first ?? oldest) <= oldest : (last ?? newest) >= newest
      get.answer =
        wanted !== undefined && wanted !== epoch
          ? failed(key, 'other_epoch')
          : {
              type: 'history',
              key,
              epoch,
              oldest,
              newest,
              messages,
              more: messages.length > 0 && !isEnd,
              truncated: after !== undefined && after + 1 < oldest,
            }
      counts.read('log', messages.length)
    } catch (error) {
      onReadFailed(/** @type {Error} */ (error))
      get.answer = failed(key, 'journal_unavailable', RETRY_MS)
    }
    if (link.gets.get(key) === get) tell(link.id, key)
  }

  /** @param {string} id */
  function onLinkLost(id) {
    const link = links.get(id)
    if (!link) return
    links.delete(id)
    for (const key of link.watches.keys()) rooms.unwatch(key, id)
  }

  /**
   * @param {Link} link @param {Watch | Get} interest
   * @returns {boolean} false where the link has none left: its key is told again when it has
   */
  function takeSlot(link, interest) {
    if (interest.takesSlot) return false
    if (link.slots >= SLOTS_MAX) {
      link.waiting.add(interest.key)
      return false
    }
    interest.takesSlot = true
    link.slots++
    return true
  }

  /** @param {Link} link @param {Watch | Get} interest */
  function release(link, interest) {
    link.waiting.delete(interest.key)
    if (!interest.takesSlot) return
    interest.takesSlot = false
    link.slots--
    for (const key of link.waiting) {
      link.waiting.delete(key)
      return tell(link.id, key)
    }
  }

  /** @param {string} id @param {string} key @param {number} bytesLeft */
  function answersFor(id, key, bytesLeft) {
    const link = links.get(id)
    const get = link?.gets.get(key)
    if (link && get) return answersToGet(link, get)
    const watch = link?.watches.get(key)
    if (!link || !watch) return NOTHING
    /** @type {Answer[]} */
    const answers = []
    if (watch.said) answers.push(watch.said)
    watch.said = undefined
    if (watch.cursor === undefined) return { answers, more: false }
    const messages = nextOf(link, watch, watch.cursor, bytesLeft)
    if (messages.length > 0) {
      answers.push({ type: 'messages', key, epoch: watch.epoch, messages })
      watch.cursor = /** @type {Message} */ (messages.at(-1)).seq
      link.sent.add(key)
    }
    return { answers, more: watch.cursor < (rooms.get(key)?.head ?? 0) }
  }

  /** @param {Link} link @param {Get} get */
  function answersToGet(link, get) {
    const { answer } = get
    if (answer) {
      link.gets.delete(get.key)
      release(link, get)
      return { answers: [answer], more: false }
    }
    const asked = readHistoryKey(get.key)
    if (asked) readPart(link, get, asked) // it had to wait for a slot
    return NOTHING
  }

  /** @param {Link} link @param {Watch} watch @param {number} cursor @param {number} bytesLeft @returns {Message[]} */
  function nextOf(link, watch, cursor, bytesLeft) {
    const { read } = watch
    if (read) {
      watch.read = undefined
      release(link, watch)
      if (read[0].seq === cursor + 1) return read
    }
    const room = rooms.get(watch.key)
    if (!room || room.head <= cursor || watch.isFailed) return []
    const messages = rooms.following(room, cursor, bytesLeft)
    if (!messages) readOn(link, watch, cursor)
    else counts.read('tail', messages.length)
    return messages ?? []
  }

  /** @param {Link} link @param {Watch} watch @param {number} cursor */
  async function readOn(link, watch, cursor) {
    if (!takeSlot(link, watch)) return
    const { key } = watch
    let found
    try {
      found = await log.read(key, { after: cursor, limit: READ_MESSAGES_MAX, bytesMax: READ_BYTES })
    } catch (error) {
      return fail(link, watch, error)
    }
    if (!isCurrent(link, watch)) return
    const { head, messages } = found
    counts.read('log', messages.length)
    const follows = head.epoch === watch.epoch && messages[0]?.seq === cursor + 1
    if (follows) watch.read = messages
    else {
      release(link, watch)
      const { epoch, seq, oldest } = head
      const reason = gapFrom({ epoch: watch.epoch, seq: cursor }, head)
      if (!reason) return // there is nothing more
      counts.gap()
      watch.said = { type: 'gap', key, epoch, seq, oldest, reason }
      watch.epoch = epoch
      watch.cursor = seq
    }
    tell(link.id, key)
  }

  /**
   * How far the link was sent rooms of which something was sent lately, and some of the others in turn. A room that has
   * more is told again: what failed, or was forgotten by a fault of this program, goes on with the next beat.
   *
   * @param {string} id
   */
  function headsFor(id) {
    const link = links.get(id)
    if (!link) return undefined
    const keys = new Set([...link.sentBefore, ...link.sent])
    link.sentBefore = link.sent
    link.sent = new Set()
    for (let n = 0; n < HEADS_IN_TURN; n++) {
      link.rotation ??= link.watches.keys()
      const { value, done } = link.rotation.next()
      if (done) {
        link.rotation = undefined
        break
      }
      keys.add(value)
    }
    const heads = []
    for (const key of keys) {
      const watch = link.watches.get(key)
      if (!watch) continue
      if (watch.isFailed) retry(link, watch)
      if (watch.cursor === undefined) continue
      if (heads.length < HEADS_MAX) heads.push({ key, epoch: watch.epoch, seq: watch.cursor })
      if (watch.cursor < (rooms.get(key)?.head ?? 0)) tell(id, key)
    }
    return heads
  }

  /** @param {Link} link @param {Watch} watch */
  function retry(link, watch) {
    if (watch.cursor === undefined) return void place(link, watch)
    watch.isFailed = false
    return tell(link.id, watch.key)
  }

  /** The log could not say what it kept: every watched room's head is read anew. */
  async function onUncertain() {
    const keys = new Set([...links.values()].flatMap(({ watches }) => [...watches.keys()]))
    for (const key of keys) {
      try {
        raiseHead(key, (await log.head(key)).seq)
      } catch (error) {
        onReadFailed(/** @type {Error} */ (error))
      }
    }
    for (const { id, watches } of links.values()) for (const key of watches.keys()) tell(id, key)
  }

  function stats() {
    let watches = 0
    let slots = 0
    for (const link of links.values()) {
      watches += link.watches.size
      slots += link.slots
    }
    return { links: links.size, watches, readsUnderWay: slots }
  }

  return { onWatch, onUnwatch, onGet, onCancelGet, onLinkLost, onUncertain, answersFor, headsFor, stats }
}

/**
 * @param {string} key @param {import('@keycast/backbone').RoomErrorCode} code @param {number} [retryAfterMs]
 * @returns {Answer}
 */
const failed = (key, code, retryAfterMs) => ({
  type: 'failed',
  key,
  code,
  message: roomErrorCodes[code],
  ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
})
