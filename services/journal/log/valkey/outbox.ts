// The outbox of a log in Valkey, which many journals share: one of them tells backends, for as long as it says so.
import { type Outbox, OWN_MS, type Untold } from '../log.ts'
import type { Session } from './connection.ts'

const ROOMS_AT_ONCE = 1_000

/** As in valkey.lua. */
const OUTBOX = 'keycast:outbox'

type Entry = [id: Buffer, fields: Buffer[]]

interface Deps {
  /** The name of the library. */
  library: string
  /** @throws {Error} where there is none */
  session: () => Session
  /** The time for a call; none if Valkey is to look at its clock. */
  time: () => string
  /** Names this journal. */
  journal: string
}

export function createValkeyOutbox({ library, session, time, journal }: Deps): Outbox {
  let bytes = 0
  const call = (name: string, ...args: string[]) => ['FCALL', `${library}_${name}`, '0', ...args]

  return {
    async rooms(cursor) {
      // Not by their places: those of rooms that are told meanwhile move the others up.
      const args = ['ZSCAN', OUTBOX, cursor || '0', 'COUNT', String(ROOMS_AT_ONCE)]
      const [next, flat] = await session().write<[string, string[]]>(args)
      const rooms = flat.flatMap((room, index) =>
        index % 2 === 0 ? [{ room: String(room), at: Number(flat[index + 1]) }] : [],
      )
      return { rooms, cursor: String(next) === '0' ? undefined : String(next) }
    },

    async read(room, { after = 0, limit, bytesMax }) {
      const args = [time(), room, String(after + 1), String(limit), String(bytesMax)]
      const [now, gap, entries] = await session().read<[number, Buffer, Entry[]]>([
        'FCALL_RO',
        `${library}_untold`,
        '0',
        ...args,
      ])
      return { now, gap: gap.length > 0 ? JSON.parse(String(gap)) : undefined, messages: entries.map(untoldOf) }
    },

    async take(parts) {
      const args = parts.flatMap(({ room, upTo, gap }) => [room, String(upTo), gap ? JSON.stringify(gap) : ''])
      const left = await session().write<number>(call('take', journal, ...args))
      if (left < 0) throw new Error('another journal tells backends')
      bytes = left
    },

    async remove(room, seqs) {
      bytes = await session().write<number>(call('remove', room, ...seqs.map(String)))
    },

    stats: () => ({ bytes }),

    async own() {
      const [isMine, bytesNow] = await session().write<[number, number]>(call('own', journal, String(OWN_MS)))
      bytes = bytesNow
      return isMine === 1
    },

    news: () => session().write<string[]>(call('outbox_news', String(ROOMS_AT_ONCE))),
  }
}

function untoldOf([id, [, epoch, , at, , from, , messageId, , data, , deletes]]: Entry): Untold {
  return {
    epoch: String(epoch),
    seq: Number.parseInt(String(id), 10),
    at: Number(at),
    from: String(from),
    messageId: messageId.length > 0 ? String(messageId) : undefined,
    data,
    ...(deletes && { deletes: JSON.parse(String(deletes)) }),
  }
}
