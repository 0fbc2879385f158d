// The position of a gateway's side of rooms in each room, from its events: tests wait for a place in the order.

/**
 * @typedef {import('@keycast/backbone').Position} Position
 * @typedef {import('@keycast/backbone').RoomsEvents} RoomsEvents
 */

/**
 * @param {RoomsEvents} events
 * @returns {{ events: RoomsEvents, positionOf: (room: string) => Position | undefined }} `events`: the same, to be given
 *   to the backbone. `positionOf`: `undefined` until the journal said where the room stands
 */
export function followPositions(events) {
  /** @type {Map<string, Position>} */
  const positions = new Map()
  return {
    positionOf: room => positions.get(room),
    events: {
      ...events,
      onHead(room, head) {
        positions.set(room, { epoch: head.epoch, seq: head.after })
        events.onHead(room, head)
      },
      onMessages(room, batch) {
        const { seq } = /** @type {import('@keycast/backbone').Message} */ (batch.messages.at(-1))
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
