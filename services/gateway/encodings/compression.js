// Which values are compressed, when, and who waits for it: each version's body once, off the event loop, for all sessions
// that negotiated permessage-deflate and speak the same subprotocol. How it is done is in deflate.js.
//
// A session that lacks a value which is still being compressed waits for that; nobody else does. A version that is
// overtaken meanwhile is dropped, and whoever waited for it is sent the newer one uncompressed, lest a key that changes
// faster than it compresses leaves them waiting for ever.

import { AWAITS, deltaFor, VALUE } from '../delivery/due.js'
import { jsonOf } from '../keys/value.js'
import { DEFLATE_BYTES_MIN, deflateRest } from './deflate.js'

/**
 * @typedef {import('../keys/subscriptions.js').Subscription} Subscription
 * @typedef {import('../keys/value.js').Value} Value
 * @typedef {import('./compressed.js').Deflated} Deflated
 *
 * @typedef {{ value: Value, bytes: boolean, source: Buffer, deflated: Deflated, atMs: number }} Job
 * @typedef {ReturnType<typeof createCompression>} Compression
 */

/** At one time: libuv has four threads, which files and names need as well, and each takes 256 KB of zlib's. */
const RUNNING_MAX = 2

/** What may wait to be compressed, 0.1 s of work: past it values go uncompressed, rather than late. */
const BACKLOG_BYTES_MAX = 4 * 1024 ** 2

/**
 * @param {object} deps
 * @param {(key: string) => Value | undefined} deps.latest
 * @param {(key: string) => void} deps.kept the key's value takes more memory now
 * @param {(waiting: Subscription[]) => void} deps.resume they wait no longer
 * @param {import('../metrics.js').Counts} deps.counts
 * @param {(ms: number) => void} deps.observe how long one took, from when it was wanted
 * @param {() => number} deps.now monotonic, in milliseconds
 * @param {(source: Buffer) => Promise<Buffer>} [deps.deflate]
 */
export function createCompression({ latest, kept, resume, counts, observe, now, deflate = deflateRest }) {
  /** @type {Job[]} */
  const queue = []
  let running = 0
  let backlogBytes = 0

  /**
   * What is made of a value; from the first time it is asked for, that is being made.
   *
   * @param {Value} value
   * @param {boolean} bytes for `keycast.v1.bytes`
   * @returns {Deflated}
   */
  function of(value, bytes) {
    const made = bytes ? value.deflatedBytes : value.deflatedJson
    if (made) return made
    const source = bytes ? value.body : jsonOf(value).rest
    const isBusy = backlogBytes > 0 && backlogBytes + source.length > BACKLOG_BYTES_MAX
    const isSmall = source.length < DEFLATE_BYTES_MIN
    const deflated = put(value, bytes, isSmall || isBusy)
    if (isSmall) return deflated
    if (isBusy) {
      counts.compressions.busy++
      return deflated
    }
    backlogBytes += source.length
    queue.push({ value, bytes, source, deflated, atMs: now() })
    next()
    return deflated
  }

  function next() {
    while (running < RUNNING_MAX) {
      const job = queue.shift()
      if (!job) return
      running++
      void run(job).then(() => {
        running--
        backlogBytes -= job.source.length
        next()
      })
    }
  }

  /** Never rejects. @param {Job} job */
  async function run(job) {
    const { value, source, deflated } = job
    const rest = latest(value.key) === value ? await deflate(source).catch(() => undefined) : undefined
    if (latest(value.key) !== value) {
      counts.compressions.overtaken++
      goOn(job)
    } else if (rest && rest.length < source.length) {
      counts.compressions.kept++
      observe(now() - job.atMs)
      deflated.rest = rest
      deflated.savedBytes = source.length - rest.length
      kept(value.key)
    } else {
      counts.compressions[rest ? 'larger' : 'failed']++
    }
    deflated.plain = deflated.rest === undefined
    const { waiting } = deflated
    deflated.waiting = []
    resume(waiting)
  }

  /** The version that overtook this one is not waited for. @param {Job} job */
  function goOn({ value: { key }, bytes, deflated }) {
    const newer = latest(key)
    if (!newer || deflated.waiting.length === 0) return
    const its = bytes ? newer.deflatedBytes : newer.deflatedJson
    if (its) its.plain = true
    else put(newer, bytes, true)
  }

  /**
   * Whether a subscription that lacks its key's value has to wait until that is compressed. If so, `resume` tells when
   * it need not any more.
   *
   * @param {Subscription} subscription of a session that negotiated compression
   */
  function isAwaited(subscription) {
    const { value } = subscription.entry
    // A delta leaves as it is: little of it would be left out.
    if (!value || !(subscription.lacks & VALUE) || deltaFor(subscription)) return false
    const deflated = of(value, subscription.session.bytes)
    if (deflated.rest || deflated.plain) return false
    subscription.lacks |= AWAITS
    deflated.waiting.push(subscription)
    return true
  }

  return { of, isAwaited }
}

/** @param {Value} value @param {boolean} bytes @param {boolean} plain @returns {Deflated} */
function put(value, bytes, plain) {
  const deflated = { start: undefined, rest: undefined, savedBytes: 0, plain, waiting: [] }
  if (bytes) value.deflatedBytes = deflated
  else value.deflatedJson = deflated
  return deflated
}
