// The outbox of a log in memory.
import { gapBytesOf, type Outbox, type Untellable, type Untold, untoldBytesOf } from '../log.ts'
import { partOf } from '../room.ts'

interface Room {
  gap: Untellable | undefined
  messages: Untold[]
}

export function createMemoryOutbox(wallNow: () => number): Outbox & { put: (room: string, message: Untold) => void } {
  const rooms = new Map<string, Room>()
  let bytes = 0

  /** Only what went is weighed: a room may have many more. */
  function keep(room: string, { gap, messages }: Room, went: Untold[]) {
    const before = rooms.get(room)?.gap
    bytes += (gap ? gapBytesOf(room) : 0) - (before ? gapBytesOf(room) : 0)
    for (const message of went) bytes -= untoldBytesOf(room, message)
    if (gap || messages.length > 0) rooms.set(room, { gap, messages })
    else rooms.delete(room)
  }

  return {
    put(room, message) {
      const known = rooms.get(room) ?? { gap: undefined, messages: [] }
      rooms.set(room, known)
      known.messages.push(message)
      bytes += untoldBytesOf(room, message)
    },

    async *rooms() {
      for (const [room, { messages }] of [...rooms]) yield { room, at: messages[0]?.at ?? wallNow() }
    },

    async read(room, { after = 0, ...bounds }) {
      const { gap, messages } = rooms.get(room) ?? { gap: undefined, messages: [] }
      const following = after > 0 ? messages.filter(({ seq }) => seq > after) : messages
      return { gap, messages: partOf(following, bounds), now: wallNow() }
    },

    async take(parts) {
      for (const { room, upTo, gap } of parts) {
        const messages = rooms.get(room)?.messages ?? []
        const left = messages.findIndex(({ seq }) => seq > upTo)
        const went = messages.splice(0, left < 0 ? messages.length : left)
        keep(room, { gap, messages }, went)
      }
    },

    async remove(room, seqs) {
      const { gap, messages } = rooms.get(room) ?? { gap: undefined, messages: [] }
      const going = new Set(seqs)
      const isGoing = ({ seq }: Untold) => going.has(seq)
      keep(room, { gap, messages: messages.filter(message => !isGoing(message)) }, messages.filter(isGoing))
    },

    stats: () => ({ bytes }),
  }
}
