// The backend is told (`notify` of a namespace): of each message that was kept, and who is in its rooms.
import { namespaceOf } from '@keycast/protocol'
import type { JournalNamespaces, Log as ServiceLog, World } from '@keycast/service'
import { createPost, createSecrets, createStatesTeller, type Outcome, type Post } from '@keycast/service/notify'
import type { Between } from '../group-commit.ts'
import type { Outbox } from '../log/log.ts'
import { createMessagesTeller } from './messages.ts'

/** The members of a room as they are told; a list only where the room's are named, and not too many for one. */
export interface MembersState {
  epoch: string
  rev: number
  count: number
  members?: object[]
}

interface Deps extends World {
  namespaces: JournalNamespaces
  outbox: Outbox
  between: Between
  /** Rooms that have members now. */
  occupied: () => Iterable<[room: string, state: () => MembersState | undefined]>
  /** Of the outbox. */
  bytesMax: number
  counts: {
    called: (what: 'messages' | 'members', outcome: Outcome['kind']) => void
    told: (outcome: 'told' | 'set_aside' | 'dropped', messages: number) => void
  }
  report: ServiceLog
  post?: Post & { close: () => void }
}

/** What is given may have more fields, which are others' business. */
const toTell = (stateNow: () => MembersState | undefined) => () => {
  const state = stateNow()
  if (!state) return undefined
  const { epoch, rev, count, members } = state
  return { epoch, rev, count, members }
}

export function createNotifier({
  namespaces,
  outbox,
  between,
  occupied,
  bytesMax,
  counts,
  report,
  post: given,
  ...world
}: Deps) {
  const notifyOf = (room: string) => namespaces.get(namespaceOf(room))?.notify
  const rulesFor = (what: 'messages' | 'members') => (room: string) => {
    const notify = notifyOf(room)
    return notify?.[what] ? notify : undefined
  }
  const post = given ?? createPost({ secrets: createSecrets(world), wallNow: world.wallNow })
  const messages = createMessagesTeller({
    ...world,
    outbox,
    between,
    isNeeded: () => namespaces.names.some(name => namespaces.get(name)?.notify?.messages),
    rulesOf: rulesFor('messages'),
    post,
    bytesMax,
    counts: { told: counts.told, called: outcome => counts.called('messages', outcome) },
    report,
  })
  const members = createStatesTeller({
    ...world,
    what: 'members',
    lingerMs: 0,
    *standing() {
      for (const [room, state] of occupied()) yield [room, toTell(state)]
    },
    rulesOf: rulesFor('members'),
    post,
    counts: { called: outcome => counts.called('members', outcome) },
    report,
  })

  return {
    /** Whether messages of the room go into the outbox. */
    isTold: (room: string) => rulesFor('messages')(room) !== undefined,
    /** A message of the room went into the outbox. */
    onKept: messages.wake,
    onMembers: (room: string, state: () => MembersState | undefined) => members.changed(room, toTell(state)),

    async start() {
      members.start()
      await messages.start()
    },

    /** Begins no more calls, and waits a little for those under way. */
    async stop() {
      members.stop()
      await messages.stop()
      post.close()
    },
    stats: messages.stats,
  }
}
