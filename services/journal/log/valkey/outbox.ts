// The outbox of a log in Valkey, which many journals share: one of them tells backends, for as long as it says so.
import { type Outbox, OWN_MS, type Untold } from '../log.ts'
import type { Session } from './connection.ts'
import { call, look, scanAll } from './functions.ts'
import { type Entry, messageOf } from './messages.ts'

const ROOMS_AT_ONCE = 1_000

/** As in valkey.lua. */
const OUTBOX = 'keycast:outbox'

interface Deps {
  /** @throws {Error} where there is none */
  session: () => Session
  /** The time for a call; none if Valkey is to look at its clock. */
  time: () => string
  /** Names this journal. */
  journal: string
}

export function createValkeyOutbox({ session, time, journal }: Deps): Outbox {
  let bytes = 0

  return {
    async *rooms() {
      for await (const { room, score } of scanAll(session(), OUTBOX, ROOMS_AT_ONCE)) yield { room, at: score }
    },

    async read(room, { after = 0, limit, bytesMax }) {
      const args = [time(), room, String(after + 1), String(limit), String(bytesMax)]
      const [now, gap, entries] = await look<[number, Buffer, Entry[]]>(session(), 'untold', ...args)
      return { now, gap: gap.length > 0 ? JSON.parse(String(gap)) : undefined, messages: entries.map(untoldOf) }
    },

    async take(parts) {
      const args = parts.flatMap(({ room, upTo, gap }) => [room, String(upTo), gap ? JSON.stringify(gap) : ''])
      const left = await call<number>(session(), 'take', journal, ...args)
      if (left < 0) throw new Error('another journal tells backends')
      bytes = left
    },

    async remove(room, seqs) {
      bytes = await call<number>(session(), 'remove', room, ...seqs.map(String))
    },

    stats: () => ({ bytes }),

    async own() {
      const [isMine, bytesNow] = await call<[number, number]>(session(), 'own', journal, String(OWN_MS))
      bytes = bytesNow
      return isMine === 1
    },

    news: () => call<string[]>(session(), 'outbox_news', String(ROOMS_AT_ONCE)),
  }
}

/** The epoch stands before what a room's stream has of a message. */
function untoldOf([id, [, epoch, ...fields]]: Entry): Untold {
  return { epoch: String(epoch), ...messageOf([id, fields]) }
}
