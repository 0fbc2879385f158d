// What a subscription can lack, and the frames that make up for it. A session is owed states, not a history: whatever
// happened to a key since it was last written to, it is sent the latest.
import { encode, encodeError } from '@keycast/protocol'
import { deflatedFrame } from '../encodings/compressed.js'
import { jsonOf, startOf } from '../keys/value.js'
import { countCompressed } from '../metrics.js'
import { textFrame } from '../transport/frames.js'

/**
 * @typedef {import('../keys/entry.js').Entry} Entry
 * @typedef {import('../keys/entry.js').Problem} Problem
 * @typedef {import('../transport/transport.js').Piece} Piece
 * @typedef {import('../keys/subscriptions.js').Subscription} Subscription
 */

/** Bits of what is lacking: the value; word that the version held is the latest; word of trouble. */
export const VALUE = 1
export const CURRENT = 2
export const TROUBLE = 4

/**
 * Set beside VALUE while the value is being compressed for the session: until that is done (compression.js) it is not
 * written to of this key.
 */
export const AWAITS = 8

/** Set beside VALUE where the value changed while the subscription stood: how long that takes to be written is measured. */
export const CHANGED = 16

/** How long one trouble's frame serves late comers: `sinceMs` in it grows old. */
const TROUBLE_FRAME_MS = 1_000

/**
 * Adds the frames that give a subscription the state its key has now.
 *
 * @param {Piece[]} pieces
 * @param {Pick<Subscription, 'session' | 'entry' | 'lacks' | 'held'>} subscription
 * @param {Pick<import('../metrics.js').Counts, 'sent' | 'errors' | 'sentCompressed' | 'savedBytes' | 'deltaSavedBytes' | 'deliveries'>} counts
 * @param {number} nowMs
 * @returns {number} bytes added
 */
export function makeUp(pieces, subscription, counts, nowMs) {
  const { session, entry, lacks } = subscription
  const { sent } = counts
  const { value } = entry
  if (!value) {
    if (!entry.problem) return 0
    sent.error++
    counts.errors[entry.problem.code]++
    return push(pieces, troubleFrame(entry, entry.problem, nowMs))
  }
  let bytes = 0
  const delta = lacks & VALUE ? deltaFor(subscription) : undefined
  if (delta) {
    sent.delta++
    counts.deltaSavedBytes += value.body.length - delta.length
    bytes += push(pieces, delta)
  } else if (lacks & VALUE) {
    sent.value++
    const deflated = session.compressed ? deflatedFrame(value, session.bytes) : undefined
    if (deflated) {
      bytes += push(pieces, deflated.start) + push(pieces, deflated.rest)
      countCompressed(counts, deflated.savedBytes)
    } else if (session.bytes) {
      bytes += push(pieces, startOf(value)) + push(pieces, value.body)
    } else {
      bytes += push(pieces, jsonOf(value).frame)
    }
  } else if (lacks & CURRENT || !entry.stale) {
    // Also where only word of a trouble is lacking that is over by now.
    sent.current++
    value.current ??= textFrame(encode({ type: 'current', key: entry.key, version: value.version })).frame
    bytes += push(pieces, value.current)
  }
  if (lacks & CHANGED) counts.deliveries.observe(nowMs - value.cameAtMs)
  if (session.bytes) subscription.held = value.version
  if (entry.stale && entry.problem) {
    sent.stale++
    counts.errors[entry.problem.code]++
    bytes += push(pieces, troubleFrame(entry, entry.problem, nowMs))
  }
  return bytes
}

/**
 * The frame of the delta from what a subscription's session holds to its key's value, where there is one.
 *
 * @param {Pick<Subscription, 'session' | 'entry' | 'held'>} subscription
 */
export function deltaFor({ session, entry, held }) {
  if (!session.bytes || held === undefined) return undefined
  const delta = entry.value?.delta
  return delta?.from === held ? delta.frame : undefined
}

/**
 * The frame that tells every subscriber of a trouble: `stale` where a value is held, else `error`.
 *
 * @param {Entry} entry
 * @param {Problem} problem its own
 * @param {number} nowMs
 */
function troubleFrame(entry, problem, nowMs) {
  if (entry.troubleFrame && nowMs - entry.troubleFrameAtMs < TROUBLE_FRAME_MS) return entry.troubleFrame
  const { key } = entry
  const { code, message, retryAfterMs } = problem
  const text = entry.value
    ? encode({ type: 'stale', key, sinceMs: Math.round(nowMs - entry.askedAtMs), code })
    : encodeError({ key, code, message, retryAfterMs })
  entry.troubleFrame = textFrame(text).frame
  entry.troubleFrameAtMs = nowMs
  return entry.troubleFrame
}

/** @param {Piece[]} pieces @param {Buffer} frame */
function push(pieces, frame) {
  pieces.push(frame)
  return frame.length
}
