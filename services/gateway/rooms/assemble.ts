// Puts the parts of rooms together: the journal's messages, who follows them, who publishes, who is there.
import { revocationsRoom } from '@keycast/service'
import { createSharedRevocations } from '../access/revocations/shared-revocations.ts'
import { createJoins } from '../presence/joins.ts'
import { createWatching } from '../presence/watching.ts'
import { createBehind } from './behind.ts'
import { createFollowers } from './followers.ts'
import { createHistoryReader } from './histories.ts'
import { createPages } from './pages.ts'
import { createPlacing } from './placing.ts'
import { createPublishes } from './publishes.ts'
import { createRooms } from './rooms.ts'

/** @typedef {import('@keycast/backbone').RoomsEvents} RoomsEvents */

/**
 * @param {object} deps
 * @param {import('@keycast/service').JournalNamespaces} deps.namespaces
 * @param {(events: RoomsEvents) => import('@keycast/backbone').RoomsBackbone} deps.createRoomsBackbone
 * @param {RoomsEvents} deps.events of all rooms that clients can name
 * @param {Parameters<typeof createSharedRevocations>[0]['apply']} deps.applyRevocations
 * @param {import('../gate/gate.ts').Gate} deps.gate
 * @param {import('../access/backend/decisions.ts').Decisions} deps.decisions
 * @param {ReturnType<typeof import('./tails.ts').createTails>} deps.tails
 * @param {import('../delivery/outbox.ts').Outbox} deps.outbox
 * @param {ReturnType<typeof import('../keys/places.ts').createPlaces>} deps.places
 * @param {Pick<import('../gateway.ts').GatewaySettings, 'publishMs' | 'publishesPendingMax'>} deps.settings
 * @param {Pick<import('@keycast/service').Containment, 'guard'>} deps.containment
 * @param {import('../counts.ts').Counts} deps.counts
 * @param {import('../sessions/session-log.ts').Log} [deps.log]
 * @param {() => number} deps.now monotonic, in milliseconds
 */
export function assembleRooms({
  namespaces,
  createRoomsBackbone,
  events,
  applyRevocations,
  gate,
  decisions,
  tails,
  outbox,
  places,
  settings,
  containment,
  counts,
  log,
  now,
}) {
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
  /** @param {string} key */
  const eventsOf = key => (key === revocationsRoom && sharedRevocations ? sharedRevocations.events : events)
  const followers = createFollowers({
    namespaces,
    backbone: roomsBackbone,
    tails,
    outbox,
    watching,
    places,
    now,
  })
  const pages = createPages({ backbone: roomsBackbone, tails, counts })
  const placing = createPlacing({
    backbone: roomsBackbone,
    tails,
    pages,
    followers,
    decisions,
    watching,
    outbox,
    containment,
    counts,
  })
  const behind = createBehind({ tails, pages, outbox, counts })
  const rooms = createRooms({ followers, placing, behind, tails, backbone: roomsBackbone, outbox, counts, now })
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
    decisions,
    backbone: roomsBackbone,
    outbox,
    joinMs: settings.publishMs,
    counts,
    now,
  })

  return { roomsBackbone, sharedRevocations, watching, rooms, behind, histories, publishes, joins }
}
