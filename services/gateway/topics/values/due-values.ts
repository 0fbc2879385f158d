// The states that a subscription to a value is due, and their frames. A session is owed states, not a history: whatever
// happened to a key since the session was last written to, it is sent the latest.
import { encode, errorMessage } from '@keycast/protocol'
import type { Counts } from '../../counts.ts'
import type { Encoding } from '../../encodings/encoding.ts'
import type { Piece } from '../../transport/transport.ts'
import { PARKED } from '../topics.ts'
import type { Entry } from './cache.ts'
import { type Failure, problemNow } from './failure.ts'
import { askedAtOf } from './staleness.ts'
import type { ValueSubscription } from './subscriptions.ts'
import { emptySlots, type Value } from './value.ts'

/** Bits of the due states: the value; `current`, where the client holds it already; `stale` or `error`. */
export const VALUE = 1
export const CURRENT = 2
export const PROBLEM = 4

/** Set beside VALUE where the value changed while the subscription stood: how long that takes to be written is measured. */
export const CHANGED = 8

/** The frames of one problem serve further sessions for this long; later the age in `stale` would be too far off. */
const PROBLEM_FRAME_MS = 1_000

/**
 * Adds the frames that give a subscription the state its key has now.
 *
 * @returns bytes added
 */
export function addDueFrames(
  pieces: Piece[],
  subscription: Pick<ValueSubscription, 'session' | 'topic' | 'due' | 'clientVersion'>,
  counts: Pick<Counts, 'sent' | 'errors' | 'deltaSavedBytes' | 'deliveries'>,
  nowMs: number,
): number {
  const { session, topic: entry, due } = subscription
  const { encoding } = session
  const { sent } = counts
  const { value } = entry
  if (!value) {
    if (!entry.failure) return 0
    sent.error++
    counts.errors[entry.failure.problem.code]++
    return push(pieces, problemFrame(entry, entry.failure, encoding, nowMs))
  }
  let bytes = 0
  if (due & VALUE) {
    const delta = deltaFor(subscription)
    if (delta) {
      sent.delta++
      counts.deltaSavedBytes += value.body.length - delta.length
      bytes += push(pieces, delta)
    } else {
      sent.value++
      bytes += encoding.addValue(value, pieces)
    }
  } else if (due & CURRENT || !entry.stale) {
    // A problem that ended before its message was written also comes here: the client is told that its value is
    // current.
    sent.current++
    bytes += push(pieces, currentFrame(value, encoding))
  }
  if (due & CHANGED) counts.deliveries.observe(nowMs - value.receivedAtMs)
  if (encoding.delta) subscription.clientVersion = value.version
  if (entry.stale && entry.failure) {
    sent.stale++
    counts.errors[entry.failure.problem.code]++
    bytes += push(pieces, problemFrame(entry, entry.failure, encoding, nowMs))
  }
  return bytes
}

/**
 * Whether a subscription that is due its key's value has to wait until the encoding has made the value's form: it is
 * parked then, and the encoding has the outbox resume it.
 */
export function mustWait(subscription: ValueSubscription) {
  const { session, topic: entry } = subscription
  if (!session.encoding.mustWait || !entry.value || !(subscription.due & VALUE) || deltaFor(subscription)) return false
  if (!session.encoding.mustWait(entry.value, subscription)) return false
  subscription.due |= PARKED
  return true
}

/**
 * The frame of the delta between the version that a subscription's client holds and the key's value, if there is one.
 */
function deltaFor({
  session,
  topic: { value },
  clientVersion,
}: Pick<ValueSubscription, 'session' | 'topic' | 'clientVersion'>) {
  if (clientVersion === undefined || value?.delta?.from !== clientVersion) return undefined
  return session.encoding.delta?.(value)
}

function currentFrame(value: Value, { slot, control }: Encoding) {
  value.currentFrames ??= emptySlots()
  value.currentFrames[slot] ??= control(
    encode({ type: 'current', key: value.key, version: value.version, order: value.order }),
  )
  return value.currentFrames[slot]
}

/**
 * The frame that tells every subscriber of a problem: `stale` where there is a value, else `error`.
 *
 * @param failure its own
 */
function problemFrame(entry: Entry, failure: Failure, { slot, control }: Encoding, nowMs: number) {
  if (!entry.problemFrames || nowMs - entry.problemFramesAtMs >= PROBLEM_FRAME_MS) {
    entry.problemFrames = emptySlots()
    entry.problemFramesAtMs = nowMs
  }
  entry.problemFrames[slot] ??= control(textOf(entry, failure, entry.problemFramesAtMs))
  return entry.problemFrames[slot]
}

function textOf(entry: Entry, failure: Failure, nowMs: number) {
  const { key, value } = entry
  if (!value) return encode(errorMessage(problemNow(failure, nowMs), { key, subscribed: true }))
  return encode({ type: 'stale', key, sinceMs: Math.round(nowMs - askedAtOf(entry)), code: failure.problem.code })
}

function push(pieces: Piece[], frame: Buffer) {
  pieces.push(frame)
  return frame.length
}
