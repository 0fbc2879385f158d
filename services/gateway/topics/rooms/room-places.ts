// Bounds the memory that followed rooms take, here and in the journal. Sessions at a few addresses could else follow so many
// different rooms that either ends. Each room counts for one who follows it, and each account has a share.
import { createStock, type Holder } from '@keycast/service'
import type { Session } from '../../sessions/session.ts'

export type RoomPlaces = ReturnType<typeof createRoomPlaces>

/** A room takes some 2 KB here. One that many follow costs no more, so there may be fewer rooms than subscriptions. */
const SUBSCRIPTIONS_PER_PLACE = 4

/** A list of members takes as much again here, and in the journal, which has those of all gateways, five times as much. */
export const LIST_PLACES = 5

/** Of one room, or of its list. */
export interface Place {
  readonly places: number
  session: Session
  holder: Holder | undefined
}

export function createRoomPlaces({ subscriptionsMax }: { subscriptionsMax: number }) {
  const placesMax = Math.ceil(subscriptionsMax / SUBSCRIPTIONS_PER_PLACE)
  let taken = 0
  const stock = createStock({ free: () => placesMax - taken })

  function letGo({ holder, places }: Place) {
    if (holder) stock.change(holder, -places)
  }

  return {
    /** Whether there is room, and within the share of the session's accounts. */
    hasRoom: ({ payer }: Session, places: number) => taken + places <= placesMax && stock.hasRoom(payer, places),

    take(session: Session, places: number): Place {
      taken += places
      return { places, session, holder: stock.charge(session.payer, places) }
    },

    /** The session follows the room no more, and another one does. */
    leave(place: Place, session: Session, other: Session) {
      if (place.session !== session) return
      letGo(place)
      place.session = other
      place.holder = stock.charge(other.payer, place.places)
    },

    giveBack(place: Place) {
      taken -= place.places
      letGo(place)
    },

    taken: () => taken,
  }
}
