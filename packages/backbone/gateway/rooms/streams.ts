// The messages of watched rooms, in order and without a hole: what does not follow is asked for again, and only a gap of
// the journal's breaks the order.
import type { Position, Problem } from '@keycast/protocol'
import { BEAT_MS, type World } from '@keycast/service'
import {
  type Answer,
  type GapReason,
  gapFrom,
  type HeadAnswer,
  type Heads,
  type Message,
  type MessagesAnswer,
} from '../../wire/rooms-codec.ts'
import { problemOf } from './problems.ts'

/**
 * The functions that a gateway gives it. Each room begins with `onHead` or `onGap`. Then messages follow each other
 * without a hole, and none comes twice; only `onGap` breaks that.
 */
export interface MessageEvents {
  /**
   * Where the room stands. Messages follow from `after` + 1 on: the position reached so far. Again whenever a link
   * began anew, and where `oldest` rose without a message.
   */
  onHead: (room: string, head: { epoch: string; seq: number; oldest: number; after: number }) => void
  /**
   * One at least. `data` may be kept; it is a slice of a batch of up to 64 KiB. A journal of an earlier release does not
   * say `oldest`.
   */
  onMessages: (room: string, batch: { epoch: string; oldest: number | undefined; messages: Message[] }) => void
  /** The messages after the position cannot be given; the stream continues after `seq`. */
  onGap: (room: string, gap: { epoch: string; seq: number; oldest: number; reason: GapReason }) => void
  /** The watch stands. With `retryAfterMs` the journal tries again by itself. */
  onFailed: (room: string, problem: Problem) => void
  /** The set of journals that answer may have changed: see `isAvailable`. */
  onRouted?: () => void
}

/**
 * `isPlaced`: the journal has told where the stream continues since the watch was last sent. Until then, and while a
 * hole is asked for again, messages that do not follow belong to an earlier watch. `healing`: the hole was asked for
 * within the last beat, and the journal has not placed the watch since. `isDue`: it answered what does not fit.
 */
interface Watched {
  position: Position | undefined
  isPlaced: boolean
  healing?: { isDue: boolean }
}

interface Options {
  router: { watch: (key: string) => void; unwatch: (key: string) => void; renewWatch: (key: string) => void }
  events: MessageEvents
  after: World['after']
}

export function createStreams({ router, events, after }: Options) {
  const watched = new Map<string, Watched>()
  let healed = 0

  function onAnswer(answer: Answer) {
    const { key } = answer
    const room = watched.get(key)
    if (!room) return
    switch (answer.type) {
      case 'head':
        return onHead(key, room, answer)
      case 'gap':
        // Made for the position of an earlier watch: what follows this one can be given, or is missing for another reason.
        if (room.position && gapFrom(room.position, answer) !== answer.reason) return heal(key, room)
        place(room)
        room.position = { epoch: answer.epoch, seq: answer.seq }
        return events.onGap(key, answer)
      case 'failed':
        return events.onFailed(key, problemOf(answer))
      case 'messages':
        return onMessages(key, room, answer)
    }
  }

  function onHead(key: string, room: Watched, { epoch, seq, oldest, after }: HeadAnswer) {
    const { position } = room
    // It was made for the position of an earlier watch: messages under way have passed it meanwhile, or it is of
    // another epoch.
    if (position && (position.epoch !== epoch || position.seq < after)) return heal(key, room)
    place(room)
    room.position ??= { epoch, seq: after }
    events.onHead(key, { epoch, seq, oldest, after: room.position.seq })
  }

  function onMessages(key: string, room: Watched, { epoch, oldest, messages }: MessagesAnswer) {
    const { position } = room
    if (!position) return
    const follows = epoch === position.epoch && messages[0].seq <= position.seq + 1
    if (!follows) return room.isPlaced ? heal(key, room) : undefined
    const fresh = messages.slice(position.seq + 1 - messages[0].seq)
    if (fresh.length === 0) return
    position.seq = (fresh.at(-1) as Message).seq
    events.onMessages(key, { epoch, oldest, messages: fresh })
  }

  /** The journal's position in each room: a message up to it that has not arrived was lost. */
  function onHeads(heads: Heads) {
    for (const { key, epoch, seq } of heads) {
      const room = watched.get(key)
      if (!room?.isPlaced || !room.position) continue
      if (room.position.epoch !== epoch || room.position.seq < seq) heal(key, room)
    }
  }

  /** The journal has told where the stream continues. */
  function place(room: Watched) {
    room.isPlaced = true
    room.healing = undefined
  }

  /**
   * Sends the watch again, with the position reached. Once a beat at most until that is answered: a journal whose answers
   * never fit would be asked as fast as it answers.
   */
  function heal(key: string, room: Watched) {
    room.isPlaced = false
    if (room.healing) {
      room.healing.isDue = true
      return
    }
    healed++
    router.renewWatch(key)
    const healing = { isDue: false }
    room.healing = healing
    after(BEAT_MS, () => {
      if (room.healing !== healing) return
      room.healing = undefined
      if (healing.isDue && watched.get(key) === room) heal(key, room)
    })
  }

  function watch(room: string, position?: Position) {
    if (watched.has(room)) return
    watched.set(room, { position: position && { ...position }, isPlaced: false })
    router.watch(room)
  }

  function unwatch(room: string) {
    if (watched.delete(room)) router.unwatch(room)
  }

  return {
    watch,
    unwatch,
    onAnswer,
    onHeads,
    positionOf: (room: string) => watched.get(room)?.position,
    /** The number of holes that were asked for again. */
    healed: () => healed,
  }
}
