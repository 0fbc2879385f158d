// Writes what a session is due of a room: word of a gap, the messages after its cursor, answers that had to wait for them.
import { encode } from '@keycast/protocol'
import { takeAnswers } from './held-answers.ts'
import { framesAfter } from './shared-frames.ts'

/**
 * @typedef {import('../transport/transport.ts').Piece} Piece
 * @typedef {import('./room.ts').RoomSubscription} RoomSubscription
 * @typedef {ReturnType<typeof createDueMessages>} DueMessages
 */

/**
 * @param {object} deps
 * @param {Pick<import('./tails.ts').Tails, 'following'>} deps.tails
 * @param {(subscription: RoomSubscription) => void} deps.onBehind the messages after its cursor are not held any more
 * @param {Pick<import('../counts.ts').Counts, 'sent' | 'errors' | 'messageDeliveries'>} deps.counts
 */
export function createDueMessages({ tails, onBehind, counts }) {
  const { sent } = counts

  /**
   * Adds what follows the subscription's cursor, some `bytesMax` of it.
   *
   * @param {Piece[]} pieces
   * @param {RoomSubscription} subscription
   * @param {number} bytesMax
   * @param {number} nowMs
   * @returns {number} bytes added. `due` is 0 where nothing more can be added now
   */
  return function addDueMessages(pieces, subscription, bytesMax, nowMs) {
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

  /** @param {Piece[]} pieces @param {RoomSubscription} subscription */
  function addGap(pieces, subscription) {
    const { room, cursor, gap = '' } = subscription
    const { key, epoch = '', oldest } = room
    const text = encode({ type: 'gap', key, epoch, seq: cursor, oldest, reason: gap })
    subscription.gap = undefined
    sent.gap++
    pieces.push(text)
    return Buffer.byteLength(text)
  }

  /**
   * A publisher sees its message before it hears that it is kept.
   *
   * @param {Piece[]} pieces
   * @param {RoomSubscription} subscription
   */
  function addAnswers(pieces, subscription) {
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
