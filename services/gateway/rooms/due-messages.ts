// Writes what a session is due of a room: word of a gap, the messages after its cursor, answers that had to wait for them.
import { encode } from '@keycast/protocol'
import type { Counts } from '../counts.ts'
import type { Piece } from '../transport/transport.ts'
import { takeAnswers } from './held-answers.ts'
import type { RoomSubscription } from './room.ts'
import { framesAfter } from './shared-frames.ts'
import type { Tails } from './tails.ts'

export type DueMessages = ReturnType<typeof createDueMessages>

interface Deps {
  tails: Pick<Tails, 'following'>
  /** The messages after its cursor are not held any more. */
  onBehind: (subscription: RoomSubscription) => void
  counts: Pick<Counts, 'sent' | 'errors' | 'messageDeliveries'>
}

export function createDueMessages({ tails, onBehind, counts }: Deps) {
  const { sent } = counts

  /**
   * Adds what follows the subscription's cursor, some `bytesMax` of it.
   *
   * @returns bytes added. `due` is 0 where nothing more can be added now
   */
  return function addDueMessages(
    pieces: Piece[],
    subscription: RoomSubscription,
    bytesMax: number,
    nowMs: number,
  ): number {
    const { room } = subscription
    let bytes = 0
    if (subscription.gap !== undefined) bytes += addGap(pieces, subscription)
    while (subscription.cursor < room.reached && bytes < bytesMax) {
      const segment = tails.following(room, subscription.cursor)
      if (!segment) {
        subscription.due = 0
        onBehind(subscription)
        return bytes
      }
      const frames = framesAfter(segment, subscription.cursor)
      pieces.push(frames)
      bytes += frames.length
      sent.message += segment.last - subscription.cursor
      subscription.cursor = segment.last
      counts.messageDeliveries.observe(nowMs - segment.receivedAtMs)
    }
    if (subscription.answers !== undefined) bytes += addAnswers(pieces, subscription)
    if (subscription.cursor >= room.reached) subscription.due = 0
    return bytes
  }

  function addGap(pieces: Piece[], subscription: RoomSubscription) {
    const { room, cursor, gap = '' } = subscription
    const { key, epoch = '', oldest } = room
    const text = encode({ type: 'gap', key, epoch, seq: cursor, oldest, reason: gap })
    subscription.gap = undefined
    sent.gap++
    pieces.push(text)
    return Buffer.byteLength(text)
  }

  /** A publisher sees its message before it hears that it is kept. */
  function addAnswers(pieces: Piece[], subscription: RoomSubscription) {
    let bytes = 0
    for (const answer of takeAnswers(subscription, subscription.cursor)) {
      sent[answer.type]++
      if (answer.type === 'error') counts.errors[answer.code]++
      const text = encode(answer)
      pieces.push(text)
      bytes += Buffer.byteLength(text)
    }
    return bytes
  }
}
