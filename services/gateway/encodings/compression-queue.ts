// Compresses values: each version's body once per encoding, off the event loop, for all sessions that negotiated
// permessage-deflate. deflate.ts has the format; this file decides which values, in which order, and who waits.
//
// A session that is due a value which is still being compressed waits for that; nobody else does. A version that is
// overtaken meanwhile is dropped, and sessions that waited for it are sent the newer one uncompressed: otherwise a key
// that changes faster than it compresses would keep them waiting for ever.
import { DEFLATE_BYTES_MIN, deflateBlocks } from './deflate.ts'

/**
 * @typedef {import('../keys/subscriptions.ts').Subscription} Subscription
 * @typedef {import('../keys/value.ts').Value} Value
 * @typedef {import('./encoding.ts').PlainEncoding} PlainEncoding
 *
 * The compressed form of one version for one encoding. While it has neither `blocks` nor `isPlain`, it is being made.
 * @typedef {object} CompressedForm
 * @property {Buffer | undefined} start the bytes before the blocks, in the frame that every session is sent
 * @property {Buffer | undefined} blocks the body, compressed: the end of every frame
 * @property {number} savedBytes the difference between the plain body's length and that of `blocks`
 * @property {boolean} isPlain whether nobody is to wait: while there are no blocks, the value is sent uncompressed
 * @property {Subscription[]} waiting
 *
 * @typedef {{ value: Value, slot: number, source: Buffer, form: CompressedForm, atMs: number }} Job
 * @typedef {ReturnType<typeof createCompression>} Compression
 */

/** At one time: libuv has four threads, which files and name look-ups need as well, and zlib takes 256 KB for each. */
const RUNNING_MAX = 2

/** Most bytes queued for compression, 0.1 s of work: past it values go uncompressed rather than late. */
const BACKLOG_BYTES_MAX = 4 * 1024 ** 2

/**
 * @param {object} deps
 * @param {(wireKey: string) => Value | undefined} deps.latest
 * @param {(wireKey: string) => void} deps.grown the key's value takes more memory now
 * @param {(waiting: Subscription[]) => void} deps.resume these subscriptions no longer wait
 * @param {Pick<import('../counts.ts').Counts, 'compressions'>} deps.counts
 * @param {(ms: number) => void} deps.observe the time from first demand to the form
 * @param {() => number} deps.now monotonic, in milliseconds
 * @param {(source: Buffer) => Promise<Buffer>} [deps.deflate]
 */
export function createCompression({ latest, grown, resume, counts, observe, now, deflate = deflateBlocks }) {
  /** @type {Job[]} */
  const queue = []
  let running = 0
  let backlogBytes = 0

  /**
   * The form of a value in an encoding's slot. The first call has it made.
   *
   * @param {Value} value
   * @param {number} slot of the compressed encoding
   * @param {Pick<PlainEncoding, 'body'>} plain
   * @returns {CompressedForm}
   */
  function formOf(value, slot, plain) {
    const made = /** @type {CompressedForm | undefined} */ (value.forms[slot])
    if (made) return made
    const source = plain.body(value)
    const isBusy = backlogBytes > 0 && backlogBytes + source.length > BACKLOG_BYTES_MAX
    const isSmall = source.length < DEFLATE_BYTES_MIN
    const form = put(value, slot, isSmall || isBusy)
    if (isSmall) return form
    if (isBusy) {
      counts.compressions.busy++
      return form
    }
    backlogBytes += source.length
    queue.push({ value, slot, source, form, atMs: now() })
    next()
    return form
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
    const { value, source, form } = job
    const blocks = latest(value.wireKey) === value ? await deflate(source).catch(() => undefined) : undefined
    if (latest(value.wireKey) !== value) {
      counts.compressions.overtaken++
      sendNewerPlain(job)
    } else if (blocks && blocks.length < source.length) {
      counts.compressions.kept++
      observe(now() - job.atMs)
      form.blocks = blocks
      form.savedBytes = source.length - blocks.length
      value.compressedBytes += blocks.length
      grown(value.wireKey)
    } else {
      counts.compressions[blocks ? 'larger' : 'failed']++
    }
    form.isPlain = form.blocks === undefined
    const { waiting } = form
    form.waiting = []
    resume(waiting)
  }

  /** Sessions that waited for an overtaken version do not wait again for the one that overtook it. @param {Job} job */
  function sendNewerPlain({ value: { wireKey }, slot, form }) {
    const newer = latest(wireKey)
    if (!newer || form.waiting.length === 0) return
    const its = /** @type {CompressedForm | undefined} */ (newer.forms[slot])
    if (its) its.isPlain = true
    else put(newer, slot, true)
  }

  return { formOf }
}

/** @param {Value} value @param {number} slot @param {boolean} isPlain @returns {CompressedForm} */
function put(value, slot, isPlain) {
  const form = { start: undefined, blocks: undefined, savedBytes: 0, isPlain, waiting: [] }
  value.forms[slot] = form
  return form
}
