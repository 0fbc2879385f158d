// The links to fetchers and journals. Most parts ask through them, so they come first; whom they tell is said at the end.
import type { Backbone, BackboneEvents, MessageEvents, RoomsBackbone, RoomsEvents } from '@keycast/backbone'

export type Links = ReturnType<typeof createLinks>

interface Handlers {
  values: Required<BackboneEvents>
  rooms: Required<RoomsEvents>
  /** Of the messages of a room that no client can name. */
  revocations: { room: string; events: MessageEvents } | undefined
}

interface Deps {
  createBackbone: (events: BackboneEvents) => Backbone
  createRoomsBackbone: (events: RoomsEvents) => RoomsBackbone
}

export function createLinks({ createBackbone, createRoomsBackbone }: Deps) {
  let handlers: Handlers
  /** Complete from the start on. */
  const valuesEvents = {} as Required<BackboneEvents>
  const values = createBackbone(valuesEvents)

  const rooms = createRoomsBackbone({
    onHead: (key, head) => eventsOf(key).onHead(key, head),
    onMessages: (key, batch) => eventsOf(key).onMessages(key, batch),
    onGap: (key, gap) => eventsOf(key).onGap(key, gap),
    onFailed: (key, failure) => eventsOf(key).onFailed(key, failure),
    onRouted: () => handlers.rooms.onRouted(),
    onMembers: (key, members) => handlers.rooms.onMembers(key, members),
    onPresence: (key, change) => handlers.rooms.onPresence(key, change),
  })

  const eventsOf = (key: string): MessageEvents =>
    key === handlers.revocations?.room ? handlers.revocations.events : handlers.rooms

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
