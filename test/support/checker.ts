// Judges a run of rooms by the acknowledged messages and by everybody's view of them, and by nothing of Keycast's own.
// It finds messages that were lost, came twice or in another order, and a part that was passed off as the whole.

/**
 * The events of a viewer of a room. `head`: it stands at `seq`, and everything after `after` follows. `gap`: what
 * followed the last message cannot be given, and everything after `seq` follows.
 */
type Sight =
  | { type: 'head'; epoch: string; seq: number; after: number }
  | { type: 'gap'; epoch: string; seq: number }
  | { type: 'message'; epoch: string; seq: number; messageId: string | undefined; data?: string }

interface Placed {
  epoch: string
  seq: number
  messageId: string | undefined
  data?: string
}

export function createChecker() {
  /** Acknowledged publishes of each publisher and room, in the order sent. */
  const acknowledged = new Map<string, (Placed & { duplicate: boolean })[]>()
  /** By viewer and room. */
  const views = new Map<string, { room: string; sights: Sight[] }>()
  const histories = new Map<string, { epoch: string; oldest: number; newest: number; messages: Placed[] }>()

  function entry<T>(map: Map<string, T>, key: string, make: () => T): T {
    const found = map.get(key) ?? make()
    map.set(key, found)
    return found
  }

  /** Everything that is wrong, each in words that name the room and the place. */
  function problems(): string[] {
    const found: string[] = []
    /** The message at each place, as the first reader had it. */
    const places = new Map<string, { messageId: string | undefined; data: string | undefined; who: string }>()

    function place(who: string, room: string, { epoch, seq, messageId, data }: Placed) {
      const where = `${room} ${epoch}/${seq}`
      const first = entry(places, where, () => ({ messageId, data, who }))
      if (first.messageId !== messageId || (data !== undefined && first.data !== undefined && first.data !== data)) {
        found.push(`disorder: at ${where} ${first.who} has ${first.messageId}, ${who} has ${messageId}`)
      }
    }

    for (const [room, { epoch, oldest, newest, messages }] of histories) {
      const seqs = messages.map(({ seq }) => seq)
      const expected = Array.from({ length: newest - oldest + 1 }, (_, index) => oldest + index)
      if (seqs.join() !== expected.join()) {
        found.push(`part as whole: the history of ${room} says ${oldest} to ${newest} and has ${seqs.length} messages`)
      }
      const seqOfId = new Map<string, number>()
      for (const message of messages) {
        place('the history', room, message)
        const { messageId, seq } = message
        if (messageId === undefined) continue
        const first = seqOfId.get(messageId)
        if (first !== undefined) found.push(`duplicate: ${messageId} stands in ${room} at ${epoch}/${first} and ${seq}`)
        seqOfId.set(messageId, seq)
      }
    }

    const held = new Map<string, Set<number>>(
      [...histories].map(([room, { messages }]) => [room, new Set(messages.map(({ seq }) => seq))]),
    )
    for (const [publisher, placed] of acknowledged) {
      const [who, room] = publisher.split('\n')
      const history = histories.get(room)
      let before = { epoch: '', seq: 0 }
      for (const { epoch, seq, messageId, duplicate, data } of placed) {
        place(`${who}'s acknowledgement`, room, { epoch, seq, messageId, data })
        if (!duplicate && epoch === before.epoch && seq <= before.seq)
          found.push(`disorder: ${who} sent ${messageId} to ${room} after ${before.seq}, and it is ${seq}`)
        if (!duplicate) before = { epoch, seq }
        if (!history || history.epoch !== epoch || seq < history.oldest) continue
        if (!held.get(room)?.has(seq)) {
          found.push(`loss: ${messageId}, acknowledged as ${room} ${epoch}/${seq}, is not in the history`)
        }
      }
    }

    for (const [viewer, { room, sights }] of views) checkView(viewer.split('\n')[0], room, sights, found, place)
    return found
  }

  return {
    /** A publish was acknowledged. To be called in the order sent. */
    acknowledged: (publisher: string, room: string, placed: Placed & { duplicate: boolean }) =>
      void entry(acknowledged, `${publisher}\n${room}`, () => []).push(placed),
    saw: (viewer: string, room: string, sight: Sight) =>
      void entry(views, `${viewer}\n${room}`, () => ({ room, sights: [] })).sights.push(sight),
    /** The whole history that is held in the end. */
    history: (room: string, history: { epoch: string; oldest: number; newest: number; messages: Placed[] }) =>
      void histories.set(room, history),
    problems,
  }
}

function checkView(
  who: string,
  room: string,
  sights: Sight[],
  found: string[],
  place: (who: string, room: string, placed: Placed) => void,
) {
  let position: { epoch: string; seq: number } | undefined
  let promised = 0
  for (const sight of sights) {
    const { type, epoch, seq } = sight
    if (type === 'gap') {
      position = { epoch, seq }
      promised = seq
    } else if (type === 'head') {
      if (position && (position.epoch !== epoch || position.seq !== sight.after)) {
        found.push(
          `part as whole: ${who} was at ${room} ${position.epoch}/${position.seq} and goes on after ${sight.after}`,
        )
      }
      position = { epoch, seq: sight.after }
      promised = seq
    } else if (!position) {
      found.push(`disorder: ${who} saw ${room} ${epoch}/${seq} before any head`)
      position = { epoch, seq }
    } else {
      place(who, room, sight)
      if (epoch !== position.epoch) found.push(`disorder: ${who} saw ${room} ${epoch}/${seq} without a gap`)
      else if (seq <= position.seq) {
        found.push(
          `${seq === position.seq ? 'duplicate' : 'disorder'}: ${who} saw ${room} ${seq} after ${position.seq}`,
        )
      } else if (seq > position.seq + 1) {
        found.push(`loss: ${who} did not see ${room} ${position.seq + 1} to ${seq - 1}`)
      }
      position = { epoch, seq }
    }
  }
  if (position && position.seq < promised) {
    found.push(`part as whole: ${who} was told that ${room} is at ${promised}, and was given it up to ${position.seq}`)
  }
}
