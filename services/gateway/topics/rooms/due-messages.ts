// Writes what a session is due of a room: where its stream begins, the members, word of a gap, the messages after its
// cursor, answers that had to wait for them.
import { type ControlMessage, encode, type Problem } from '@keycast/protocol'
import type { Rights } from '../../access/rights.ts'
import type { Counts } from '../../counts.ts'
import type { Act } from '../../gate/gate.ts'
import type { Piece } from '../../transport/transport.ts'
import { errorAbout } from '../topics.ts'
import { takeAnswers } from './held-answers.ts'
import { wholeFrame } from './presence/member-list.ts'
import { MEMBERS, MESSAGES, type Placing, type Room, type RoomSubscription } from './room.ts'
import { type Encoded, framesAfter } from './shared-frames.ts'

export type DueMessages = ReturnType<typeof createDueMessages>

interface Deps {
  gate: {
    check(rights: Rights, act: Act, key: string): Problem | undefined
    grants(rights: Rights, act: Act, key: string): boolean
  }
  tails: { following(room: Room, cursor: number): Encoded | undefined }
  watching: { begin(subscription: RoomSubscription): Problem | undefined }
  /** The messages after its cursor are not held any more. */
  onBehind: (subscription: RoomSubscription) => void
  counts: Pick<Counts, 'sent' | 'errors' | 'messageDeliveries'>
}

export function createDueMessages({ gate, tails, watching, onBehind, counts }: Deps) {
  const { sent } = counts

  /**
   * Adds what follows the subscription's cursor, some `bytesMax` of it.
   *
   * @param subscription whose place is known
   * @returns bytes added. `due` is 0 where nothing more can be added now
   */
  return function addDueMessages(
    subscription: RoomSubscription,
    pieces: Piece[],
    bytesMax: number,
    nowMs: number,
  ): number {
    const { topic: room, placing } = subscription
    let bytes = 0
    if (placing?.head !== undefined) bytes += addBeginning(pieces, subscription, placing, placing.head)
    if (subscription.due & MEMBERS) bytes += addMembers(pieces, subscription)
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
    subscription.due = subscription.cursor < room.reached ? MESSAGES : 0
    return bytes
  }

  /** Every message after the cursor follows. */
  function addBeginning(pieces: Piece[], subscription: RoomSubscription, placing: Placing, seq: number) {
    const { start, isRecovered } = placing
    const { id, presence, isPaused } = start
    const { session } = subscription
    const { key, epoch = '', oldest } = subscription.topic
    subscription.placing = undefined
    // The client may have had the right when it asked: the journal, or a backend that decides, may have been away since.
    const mayHaveBefore = isPaused || subscription.cursor === seq || gate.grants(session.rights, 'history', key)
    if (!mayHaveBefore) subscription.cursor = seq
    const recovered = isRecovered && mayHaveBefore
    const begun = { key, epoch, seq, oldest, recovered, count: seq - subscription.cursor }
    const bytes = add(pieces, { type: 'subscribed', id, keys: [begun] })
    if (!presence) return bytes
    const problem = gate.check(session.rights, 'members', key) ?? watching.begin(subscription)
    if (!problem) return bytes
    // Nobody tries again for it.
    const error = { ...errorAbout(session, key, problem, id), retryAfterMs: undefined }
    return bytes + add(pieces, error)
  }

  function addMembers(pieces: Piece[], { members }: RoomSubscription) {
    if (!members) return 0
    const frame = wholeFrame(members.list)
    sent.members++
    pieces.push(frame)
    return frame.length
  }

  function addGap(pieces: Piece[], subscription: RoomSubscription) {
    const { topic, cursor, gap = '' } = subscription
    const { key, epoch = '', oldest } = topic
    subscription.gap = undefined
    return add(pieces, { type: 'gap', key, epoch, seq: cursor, oldest, reason: gap })
  }

  /** A publisher sees its message before it hears that it is kept. */
  function addAnswers(pieces: Piece[], subscription: RoomSubscription) {
    let bytes = 0
    for (const answer of takeAnswers(subscription, subscription.cursor)) bytes += add(pieces, answer)
    return bytes
  }

  function add(pieces: Piece[], message: ControlMessage) {
    sent[message.type]++
    if (message.type === 'error') counts.errors[message.code]++
    const text = encode(message)
    pieces.push(text)
    return Buffer.byteLength(text)
  }
}
