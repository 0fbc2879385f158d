// The links to fetchers and journals. Most parts ask through them, so they come first; whom they tell is said at the end.
import type {
  Answer,
  Backbone,
  BackboneEvents,
  MessageEvents,
  PushedState,
  RoomsBackbone,
  RoomsEvents,
} from '@keycast/backbone'
import { namespaceOf } from '@keycast/protocol'
import type { PushedNamespaces } from '@keycast/service'

export type Links = ReturnType<typeof createLinks>

interface Handlers {
  values: Required<BackboneEvents>
  rooms: Required<Omit<RoomsEvents, 'heldVersion' | 'onPushed'>>
  /** Of the messages of rooms that no client can name, by room. */
  reserved: ReadonlyMap<string, MessageEvents> | undefined
}

interface Deps {
  createBackbone: (events: BackboneEvents) => Backbone
  createRoomsBackbone: (events: RoomsEvents) => RoomsBackbone
  /** Whose values the journal keeps. */
  pushed: PushedNamespaces
}

export function createLinks({ createBackbone, createRoomsBackbone, pushed }: Deps) {
  let handlers: Handlers
  /** Complete from the start on. */
  const valuesEvents = {} as Required<BackboneEvents>
  const fetched = createBackbone(valuesEvents)

  const rooms = createRoomsBackbone({
    onHead: (key, head) => eventsOf(key).onHead(key, head),
    onMessages: (key, batch) => eventsOf(key).onMessages(key, batch),
    onGap: (key, gap) => eventsOf(key).onGap(key, gap),
    onFailed: (key, failure) => eventsOf(key).onFailed(key, failure),
    onRouted: () => handlers.rooms.onRouted(),
    onMembers: (key, members) => handlers.rooms.onMembers(key, members),
    onPresence: (key, change) => handlers.rooms.onPresence(key, change),
    heldVersion: key => handlers.values.held(key, 'watch')?.version,
    onPushed(state, isGot) {
      const namespace = pushed.get(namespaceOf(state.key))
      if (namespace) handlers.values.onAnswer(answerOf(state, namespace.maxAgeMs), isGot)
    },
  })

  const eventsOf = (key: string): MessageEvents => handlers.reserved?.get(key) ?? handlers.rooms

  /** Fetchers have the keys that are fetched, journals those that are handed over. */
  const of = (key: string) => (pushed.get(namespaceOf(key)) ? rooms.values : fetched)

  const together: Backbone = {
    ...fetched,
    watch: key => of(key).watch(key),
    // Of both: the namespace may be gone by now, and with it the word on whose the key was.
    unwatch(key) {
      fetched.unwatch(key)
      rooms.values.unwatch(key)
    },
    get: key => of(key).get(key),
    cancelGet: key => of(key).cancelGet(key),
    renewWatch: key => of(key).renewWatch(key),
    handOver: (value, options) => of(value.key).handOver(value, options),
    ownerOf: key => of(key).ownerOf(key),
    nodesAlive: key => (key === undefined ? fetched : of(key)).nodesAlive(),
  }

  const values = pushed.names.length === 0 ? fetched : together

  return {
    values,
    rooms,

    start(given: Handlers) {
      handlers = given
      Object.assign(valuesEvents, given.values)
    },
    open: () => Promise.all([values.start(), rooms.start()]),
    close: () => Promise.all([values.stop(), rooms.stop()]),

    stats: () => ({
      nodesAlive: values.nodesAlive(),
      nodesHeld: values.nodesHeld(),
      journalNodesAlive: rooms.nodesAlive(),
      journalNodesHeld: rooms.nodesHeld(),
      journalLogs: rooms.logs(),
      roomsHealed: rooms.healed(),
    }),
  }
}

/** What a journal says is as of now. */
function answerOf(state: PushedState, maxAgeMs: number): Answer {
  const asOfNow = { ageMs: 0, maxAgeMs, store: true }
  if (state.type !== 'value') return { ...state, ...asOfNow }
  const { content, ...said } = state
  return { ...said, ...content, ...asOfNow }
}
