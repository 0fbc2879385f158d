// Puts the parts of rooms together: the journal's messages, who follows them, who publishes, who is there.
import type { RoomsBackbone, RoomsEvents } from '@keycast/backbone'
import type { Containment, JournalNamespaces } from '@keycast/service'
import type { Counts } from '../../counts.ts'
import type { Outbox } from '../../delivery/outbox.ts'
import type { Gate } from '../../gate/gate.ts'
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
import { createTails } from './tails.ts'

interface Deps {
  settings: { publishMs: number; publishesPendingBytesMax: number; tailBytesMax: number }
  namespaces: JournalNamespaces
  backbone: RoomsBackbone
  gate: Pick<Gate, 'enter' | 'check' | 'operator' | 'hold' | 'release'>
  outbox: Outbox
  containment: Pick<Containment, 'guard'>
  counts: Counts
  /** Monotonic, in milliseconds. */
  now: () => number
}

export function assembleRooms({ settings, namespaces, backbone, gate, outbox, containment, counts, now }: Deps) {
  const { publishMs, publishesPendingBytesMax } = settings
  const byKey = new Map<string, Room>()
  const tails = createTails({ bytesMax: settings.tailBytesMax, now })
  const watching = createWatching({ backbone, outbox, counts })
  const followers = createFollowers({ rooms: byKey, backbone, tails, outbox, watching })
  const pages = createPages({ backbone, tails, counts })
  const placing = createPlacing({ backbone, tails, pages, followers, gate, watching, outbox, containment, counts })
  const behind = createBehind({ tails, pages, outbox, counts })
  const write = createDueMessages({ gate, tails, watching, onBehind: behind.readOn, counts })
  const rooms = createRooms({
    namespaces,
    rooms: byKey,
    write,
    followers,
    placing,
    behind,
    tails,
    backbone,
    outbox,
    counts,
    now,
  })
  const events: Required<RoomsEvents> = { ...rooms.events, ...watching.events }

  return {
    rooms,
    events,
    watcher: watching.watcher,
    histories: createHistoryReader({ backbone }),
    publishes: createPublishes({
      namespaces,
      gate,
      backbone,
      outbox,
      publishMs,
      publishesPendingBytesMax,
      counts,
      now,
    }),
    joins: createJoins({ gate, backbone, outbox, joinMs: publishMs, containment, counts }),
    stats: () => ({ ...rooms.stats(), ...watching.stats() }),
  }
}
