// Puts the parts of rooms together: the journal's messages, who follows them, who publishes, who is there.
import type { RoomsBackbone, RoomsEvents } from '@keycast/backbone'
import { type Containment, type JournalNamespaces, revocationsRoom } from '@keycast/service'
import { createSharedRevocations } from '../../access/revocations/shared-revocations.ts'
import type { Counts } from '../../counts.ts'
import type { Outbox } from '../../delivery/outbox.ts'
import type { Gate } from '../../gate/gate.ts'
import type { GatewaySettings } from '../../gateway.ts'
import type { Log } from '../../sessions/session-log.ts'
import { createBehind } from './behind.ts'
import { createDueMessages } from './due-messages.ts'
import { createFollowers } from './followers.ts'
import { createHistoryReader } from './histories.ts'
import { createPages } from './pages.ts'
import { createPlacing } from './placing.ts'
import { createJoins } from './presence/joins.ts'
import { createWatching } from './presence/watching.ts'
import { createPublishes } from './publishes.ts'
import type { Room } from './room.ts'
import { createRooms } from './rooms.ts'

interface Deps {
  namespaces: JournalNamespaces
  createRoomsBackbone: (events: RoomsEvents) => RoomsBackbone
  /** Of all rooms that clients can name. */
  events: RoomsEvents
  applyRevocations: Parameters<typeof createSharedRevocations>[0]['apply']
  gate: Pick<Gate, 'enter' | 'operator' | 'hold' | 'release'>
  tails: ReturnType<typeof import('./tails.ts').createTails>
  outbox: Outbox
  settings: Pick<GatewaySettings, 'publishMs' | 'publishesPendingMax'>
  containment: Pick<Containment, 'guard'>
  counts: Counts
  log?: Log
  /** Monotonic, in milliseconds. */
  now: () => number
}

export function assembleRooms({
  namespaces,
  createRoomsBackbone,
  events,
  applyRevocations,
  gate,
  tails,
  outbox,
  settings,
  containment,
  counts,
  log,
  now,
}: Deps) {
  const roomsBackbone = createRoomsBackbone({
    onHead: (key, head) => eventsOf(key).onHead(key, head),
    onMessages: (key, batch) => eventsOf(key).onMessages(key, batch),
    onGap: (key, gap) => eventsOf(key).onGap(key, gap),
    onFailed: (key, failure) => eventsOf(key).onFailed(key, failure),
    onRouted: () => events.onRouted?.(),
    onMembers: (key, members) => events.onMembers?.(key, members),
    onPresence: (key, change) => events.onPresence?.(key, change),
  })
  const watching = createWatching({ backbone: roomsBackbone, outbox, counts })
  const sharedRevocations =
    namespaces.names.length === 0
      ? undefined
      : createSharedRevocations({ backbone: roomsBackbone, apply: applyRevocations, log })
  const eventsOf = (key: string) => (key === revocationsRoom && sharedRevocations ? sharedRevocations.events : events)
  const byKey = new Map<string, Room>()
  const followers = createFollowers({ rooms: byKey, backbone: roomsBackbone, tails, outbox, watching })
  const pages = createPages({ backbone: roomsBackbone, tails, counts })
  const placing = createPlacing({
    backbone: roomsBackbone,
    tails,
    pages,
    followers,
    gate,
    watching,
    outbox,
    containment,
    counts,
  })
  const behind = createBehind({ tails, pages, outbox, counts })
  const write = createDueMessages({ tails, watching, onBehind: behind.readOn, counts })
  const rooms = createRooms({
    namespaces,
    rooms: byKey,
    write,
    followers,
    placing,
    behind,
    tails,
    backbone: roomsBackbone,
    outbox,
    counts,
    now,
  })
  const histories = createHistoryReader({ backbone: roomsBackbone })
  const publishes = createPublishes({
    namespaces,
    gate,
    backbone: roomsBackbone,
    outbox,
    publishMs: settings.publishMs,
    publishesPendingMax: settings.publishesPendingMax,
    counts,
    now,
  })
  const joins = createJoins({
    gate,
    backbone: roomsBackbone,
    outbox,
    joinMs: settings.publishMs,
    containment,
    counts,
  })

  return { roomsBackbone, sharedRevocations, watching, rooms, histories, publishes, joins }
}
