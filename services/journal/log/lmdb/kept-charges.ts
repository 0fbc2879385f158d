// Whom a log in LMDB keeps bytes for: charges in memory and in a table of their own, which change together or not at all.
import type { Payer } from '@keycast/service'
import { createCharges, ROOM_ITSELF } from '../charges.ts'
import type { Write } from './commits.ts'
import type { Tables } from './layout.ts'

interface Deps {
  tables: Pick<Tables, 'charges' | 'rooms'>
  bytesMax: number
  random: () => number
}

export type KeptCharges = ReturnType<typeof createKeptCharges>

export function createKeptCharges({ tables: { charges: table, rooms }, bytesMax, random }: Deps) {
  /** By the id of a room, and seq. */
  const charges = createCharges<number>({ bytesMax, random })
  /** How charges become what they were before the writes that are not committed yet. */
  let undos: (() => void)[] = []

  function* kept() {
    for (const { key, value } of table.getRange({})) {
      const [id, seq] = key
      const room = rooms.get(value.room)
      if (room?.id === id && (seq === ROOM_ITSELF || seq >= room.oldest)) yield { room: id, seq, charge: value }
    }
  }

  return {
    load: () => charges.load(kept()),
    refusalOf: charges.refusalOf,
    stats: charges.stats,

    /** @param name of the room @param writes collects the charge */
    add(name: string, [id, seq]: [number, number], payer: Payer | undefined, bytes: number, writes: Write[]) {
      const charge = charges.add(id, seq, payer, bytes)
      if (!charge) return
      undos.push(() => charges.take(id, seq))
      writes.push(() => table.put([id, seq], { ...charge, room: name }))
    },

    /** @param writes collects the removal */
    take(id: number, seq: number, writes: Write[]) {
      const charge = charges.take(id, seq)
      if (!charge) return
      undos.push(() => charges.put(id, seq, charge))
      writes.push(() => table.remove([id, seq]))
    },

    /** Ends a batch. */
    settle(isKept: boolean) {
      if (!isKept) for (const undo of undos.reverse()) undo()
      undos = []
    },
  }
}
