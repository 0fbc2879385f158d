// Parts of histories that gateways ask for on behalf of a client: each is read once, answered once, and forgotten.
import { type RoomAnswer as Answer, HISTORY_BYTES_MAX, readHistoryKey } from '@keycast/backbone'
import type { Payer } from '@keycast/service'
import type { Log } from '../log/log.ts'
import { failed } from '../problems.ts'
import type { ReadSlots } from './read-slots.ts'

interface Get {
  key: string
  answer: Answer | undefined
  takesSlot: boolean
  isReading: boolean
  payer: Payer | undefined
}

interface Deps {
  link: string
  slots: ReadSlots
  log: { read: Log['read'] }
  isRoom: (key: string) => boolean
  tell: (link: string, key: string) => void
  counts: { read: (from: 'log', messages: number) => void }
  onReadFailed: (error: Error) => void
}

export function createHistories({ link, slots, log, isRoom, tell, counts, onReadFailed }: Deps) {
  const gets = new Map<string, Get>()

  function get({ key, payer }: { key: string; payer?: Payer }) {
    cancel(key)
    const wanted: Get = { key, answer: undefined, takesSlot: false, isReading: false, payer }
    gets.set(key, wanted)
    const asked = readHistoryKey(key)
    if (!asked || !isRoom(asked.room)) {
      wanted.answer = failed(key, asked ? 'unknown_namespace' : 'bad_message')
      return tell(link, key)
    }
    readPart(wanted, asked)
  }

  function cancel(key: string) {
    const wanted = gets.get(key)
    if (!wanted) return
    gets.delete(key)
    slots.release(wanted)
  }

  async function readPart(wanted: Get, { room, range }: NonNullable<ReturnType<typeof readHistoryKey>>) {
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
      onReadFailed(error as Error)
      wanted.answer = failed(key, 'journal_unavailable')
    }
    slots.ended(wanted)
    if (gets.get(key) === wanted) tell(link, key)
  }

  /** Some messages of the room are gone: what was read of it before is read anew. */
  function forget(room: string) {
    for (const { key, payer } of [...gets.values()]) if (readHistoryKey(key)?.room === room) get({ key, payer })
  }

  /** @returns `undefined` if nobody asked for it */
  function answersFor(key: string): Answer[] | undefined {
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

  return { get, cancel, forget, answersFor }
}
