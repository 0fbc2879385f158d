// Parts of histories that gateways ask for on behalf of a client: each is read once, answered once, and forgotten.
import { HISTORY_BYTES_MAX, readHistoryKey } from '@keycast/backbone'
import { failed, RETRY_MS } from './failed.ts'

/**
 * @typedef {import('@keycast/backbone').RoomAnswer} Answer
 *
 * @typedef {{ key: string, answer: Answer | undefined, takesSlot: boolean }} Get
 */

/**
 * @param {object} deps
 * @param {string} deps.link
 * @param {import('./read-slots.ts').ReadSlots} deps.slots
 * @param {Pick<import('../log/log.ts').Log, 'read'>} deps.log
 * @param {(key: string) => boolean} deps.isRoom
 * @param {(link: string, key: string) => void} deps.tell
 * @param {{ read: (from: 'log', messages: number) => void }} deps.counts
 * @param {(error: Error) => void} deps.onReadFailed
 */
export function createHistories({ link, slots, log, isRoom, tell, counts, onReadFailed }) {
  /** @type {Map<string, Get>} */
  const gets = new Map()

  /** @param {string} key */
  function get(key) {
    cancel(key)
    /** @type {Get} */
    const wanted = { key, answer: undefined, takesSlot: false }
    gets.set(key, wanted)
    const asked = readHistoryKey(key)
    if (!asked || !isRoom(asked.room)) {
      wanted.answer = failed(key, asked ? 'unknown_namespace' : 'bad_message')
      return tell(link, key)
    }
    readPart(wanted, asked)
  }

  /** @param {string} key */
  function cancel(key) {
    const wanted = gets.get(key)
    if (!wanted) return
    gets.delete(key)
    slots.release(wanted)
  }

  /** @param {Get} wanted @param {NonNullable<ReturnType<typeof readHistoryKey>>} asked */
  async function readPart(wanted, { room, range }) {
    if (!slots.take(wanted)) return
    const { key } = wanted
    const { epoch: wantedEpoch, limit, after } = range
    try {
      const bounds = after === undefined ? { before: range.before } : { after }
      const { head, messages } = await log.read(room, {
        ...bounds,
        epoch: wantedEpoch,
        limit,
        bytesMax: HISTORY_BYTES_MAX,
      })
      const { epoch, seq: newest, oldest } = head
      const [first, last] = [messages[0]?.seq, messages.at(-1)?.seq]
      const isEnd = after === undefined ? (first ?? oldest) <= oldest : (last ?? newest) >= newest
      const more = messages.length > 0 && !isEnd
      const truncated = after !== undefined && after + 1 < oldest
      wanted.answer =
        wantedEpoch !== undefined && wantedEpoch !== epoch
          ? failed(key, 'other_epoch')
          : { type: 'history', key, epoch, oldest, newest, messages, more, truncated }
      counts.read('log', messages.length)
    } catch (error) {
      onReadFailed(/** @type {Error} */ (error))
      wanted.answer = failed(key, 'journal_unavailable', RETRY_MS)
    }
    if (gets.get(key) === wanted) tell(link, key)
  }

  /** @param {string} key @returns {Answer[] | undefined} `undefined` if nobody asked for it */
  function answersFor(key) {
    const wanted = gets.get(key)
    if (!wanted) return undefined
    if (wanted.answer) {
      cancel(key)
      return [wanted.answer]
    }
    const asked = readHistoryKey(key)
    if (asked) readPart(wanted, asked) // it had to wait for a slot
    return []
  }

  return { get, cancel, answersFor }
}
