// Puts the parts of rooms together: the journal's messages, who follows them, who is there.
import type { RoomsBackbone, RoomsEvents } from '@keycast/backbone'
import type { Containment, JournalNamespaces, World } from '@keycast/service'
import type { Counts } from '../../counts.ts'
import type { Outbox } from '../../delivery/outbox.ts'
import type { GatePart } from '../../gate/index.ts'
import { createCatchUp } from './catch-up.ts'
import { createCatchUpReads } from './catch-up-reads.ts'
import { createDueMessages } from './due-messages.ts'
import { createFollowers } from './followers.ts'
import { createHistoryReader } from './histories.ts'
import { createDueMembers } from './presence/due-members.ts'
import { createJoins } from './presence/joins.ts'
import type { Room } from './room.ts'
import { createRoomPlaces } from './room-places.ts'
import { createRooms } from './rooms.ts'
import { createStreamStart } from './stream-start.ts'
import { createTails } from './tails.ts'

/** All but those of values. */
type FollowedEvents = Required<Omit<RoomsEvents, 'heldVersion' | 'onPushed'>>

interface Deps {
  settings: { publishMs: number; tailBytesMax: number; subscriptionsMax: number }
  namespaces: JournalNamespaces
  backbone: RoomsBackbone
  gate: GatePart
  outbox: Outbox
  containment: Pick<Containment, 'guard'>
  counts: Counts
  now: () => number
  after: World['after']
}

export function assembleRooms(deps: Deps) {
  const { tailBytesMax, publishMs } = deps.settings
  const byKey = new Map<string, Room>()
  const tails = createTails({ ...deps, bytesMax: tailBytesMax })
  const places = createRoomPlaces(deps.settings)
  const watching = createDueMembers({ ...deps, places })
  const followers = createFollowers({ ...deps, rooms: byKey, tails, watching, places })
  const pages = createCatchUpReads({ ...deps, tails })
  const streamStart = createStreamStart({ ...deps, tails, pages, followers, watching })
  const behind = createCatchUp({ ...deps, tails, pages })
  const write = createDueMessages({ ...deps, tails, watching, onBehind: behind.readOn })
  const rooms = createRooms({ ...deps, rooms: byKey, write, followers, streamStart, behind, tails, places })
  const events: FollowedEvents = { ...rooms.events, ...watching.events }

  return {
    rooms,
    events,
    watcher: watching.watcher,
    histories: createHistoryReader(deps),
    joins: createJoins({ ...deps, joinMs: publishMs }),

    sweep() {
      rooms.sweep()
      watching.sweep()
    },

    stats: () => ({ ...rooms.stats(), ...watching.stats() }),
  }
}
