// The position of a gateway's side of rooms in each room, from its events: tests wait for a place in the order.
import type { Message, RoomsEvents } from '@keycast/backbone'
import type { Position } from '@keycast/protocol'

/**
 * @returns `events`: the same, to be given to the backbone. `positionOf`: `undefined` until the journal said where the
 *   room stands
 */
export function followPositions(events: RoomsEvents): {
  events: RoomsEvents
  positionOf: (room: string) => Position | undefined
} {
  const positions = new Map<string, Position>()
  return {
    positionOf: room => positions.get(room),
    events: {
      ...events,
      onHead(room, head) {
        positions.set(room, { epoch: head.epoch, seq: head.after })
        events.onHead(room, head)
      },
      onMessages(room, batch) {
        const { seq } = batch.messages.at(-1) as Message
        positions.set(room, { epoch: batch.epoch, seq })
        events.onMessages(room, batch)
      },
      onGap(room, gap) {
        positions.set(room, { epoch: gap.epoch, seq: gap.seq })
        events.onGap(room, gap)
      },
    },
  }
}
