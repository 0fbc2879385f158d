// Whom the bytes of a log count for. Not every message is charged: one of a thousand bytes, in a log where a charge stands
// for a hundred thousand, is charged once in a hundred times, and then for all of those. So an account that holds a part
// of the log that matters is charged for that part, and there are no more than so many charges, however many messages and
// publishers there are (decision 37).
import { accountsOf, createStock, type Holder, type Payer, weightOf } from '@keycast/service'

/** About so many in a log that is full: an account that holds a ninth of it is charged 2 % more or less than it holds. */
const CHARGES_MAX = 2 ** 15

/** The place of a room's own charge: no message has this number. */
export const ROOM_ITSELF = 0

export type Kind = (typeof kinds)[number]

/** Who is charged: users; whoever has no token; and where nobody has one, addresses. */
export const kinds = ['users', 'guests', 'addresses'] as const

export const kindOf = (payer: Payer): Kind =>
  payer.startsWith('g') ? 'guests' : /(?:^|\.)u[\w-]*$/.test(payer) ? 'users' : 'addresses'

/** A charge as a log keeps it, beside the message that it is for. */
export interface Charge {
  payer: Payer
  bytes: number
}

/** @returns the bytes that are charged for so many; 0 for most, where they are few */
export function drawCharge(bytes: number, { bytesMax, random }: { bytesMax: number; random: () => number }): number {
  const unit = Math.ceil(bytesMax / CHARGES_MAX)
  if (bytes >= unit) return bytes
  return random() * unit < bytes ? unit : 0
}

/** Whether whoever holds nothing yet could hold so many of the bytes that are left. */
const fits = (payer: Payer, bytes: number, left: number) =>
  accountsOf(payer).every(account => bytes <= left * weightOf(account))

interface Held {
  holder: Holder
  bytes: number
}

/** Charges in memory. */
export function createCharges<Room>({ bytesMax, random }: { bytesMax: number; random: () => number }) {
  /** What is left to whoever publishes now. */
  let left = 0
  let stock = createStock({ free: () => left })
  let bytesOfKinds = { users: 0, guests: 0, addresses: 0 }
  /** By room, then by seq. */
  let held = new Map<Room, Map<number, Held>>()

  function put(room: Room, seq: number, { payer, bytes }: Charge) {
    const ofRoom = held.get(room) ?? new Map<number, Held>()
    held.set(room, ofRoom)
    ofRoom.set(seq, { holder: stock.charge(payer, bytes) as Holder, bytes })
    bytesOfKinds[kindOf(payer)] += bytes
  }

  return {
    /**
     * Why no more bytes are kept for a payer. `log_full`: for nobody are so many.
     *
     * @param leftNow bytes of the log that the publish may still take
     */
    refusalOf(payer: Payer | undefined, bytes: number, leftNow: number): 'capacity' | 'log_full' | undefined {
      left = leftNow
      if (payer === undefined || stock.hasRoom(payer, bytes)) return undefined
      return fits(payer, bytes, leftNow) ? 'capacity' : 'log_full'
    },

    /** @returns the charge that was drawn and put, if there is one */
    add(room: Room, seq: number, payer: Payer | undefined, bytes: number): Charge | undefined {
      const drawn = payer === undefined ? 0 : drawCharge(bytes, { bytesMax, random })
      if (payer === undefined || drawn === 0) return undefined
      const charge = { payer, bytes: drawn }
      put(room, seq, charge)
      return charge
    },

    put,

    /** @returns the charge that is gone, if there was one */
    take(room: Room, seq: number): Charge | undefined {
      const ofRoom = held.get(room)
      const found = ofRoom?.get(seq)
      if (!ofRoom || !found) return undefined
      const { holder, bytes } = found
      ofRoom.delete(seq)
      if (ofRoom.size === 0) held.delete(room)
      stock.change(holder, -bytes)
      bytesOfKinds[kindOf(holder.payer)] -= bytes
      return { payer: holder.payer, bytes }
    },

    /** Begins anew, with what is kept. */
    load(kept: Iterable<{ room: Room; seq: number; charge: Charge }>) {
      stock = createStock({ free: () => left })
      bytesOfKinds = { users: 0, guests: 0, addresses: 0 }
      held = new Map()
      for (const { room, seq, charge } of kept) put(room, seq, charge)
    },

    /** Bytes that are charged, by kind. */
    stats: () => ({ ...bytesOfKinds }),
  }
}
