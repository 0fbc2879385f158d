// Compresses values: each version's body once per encoding, off the event loop, for all sessions that negotiated
// permessage-deflate. deflate.ts has the format; this file decides which values, in which order, and who waits.
//
// A session that is due a value which is still being compressed waits for that; nobody else does. A version that is
// overtaken meanwhile is dropped, and sessions that waited for it are sent the newer one uncompressed: otherwise a key
// that changes faster than it compresses would keep them waiting for ever.
import type { Counts } from '../counts.ts'
import type { Subscription } from '../topics/topic.ts'
import type { Value } from '../topics/values/value.ts'
import { DEFLATE_BYTES_MIN, deflateBlocks } from './deflate.ts'
import type { PlainEncoding } from './encoding.ts'

/**
 * The compressed form of one version for one encoding. While it has neither `blocks` nor `isPlain`, it is being made.
 */
export interface CompressedForm {
  /** The bytes before the blocks, in the frame that every session is sent. */
  start: Buffer | undefined
  /** The body, compressed: the end of every frame. */
  blocks: Buffer | undefined
  /** The difference between the plain body's length and that of `blocks`. */
  savedBytes: number
  /** Whether nobody is to wait: while there are no blocks, the value is sent uncompressed. */
  isPlain: boolean
  waiting: Subscription[]
}

interface Job {
  value: Value
  slot: number
  source: Buffer
  form: CompressedForm
  atMs: number
}

export type Compression = ReturnType<typeof createCompression>

/** At one time: libuv has four threads, which files and name look-ups need as well, and zlib takes 256 KB for each. */
const RUNNING_MAX = 2

/** Most bytes queued for compression, 0.1 s of work: past it values go uncompressed rather than late. */
const BACKLOG_BYTES_MAX = 4 * 1024 ** 2

interface Deps {
  latest: (wireKey: string) => Value | undefined
  /** The key's value takes more memory now. */
  grown: (wireKey: string) => void
  /** These subscriptions no longer wait. */
  resume: (waiting: Subscription[]) => void
  counts: Pick<Counts, 'compressions'>
  /** The time from first demand to the form. */
  observe: (ms: number) => void
  /** Monotonic, in milliseconds. */
  now: () => number
  deflate?: (source: Buffer) => Promise<Buffer>
}

export function createCompression({ latest, grown, resume, counts, observe, now, deflate = deflateBlocks }: Deps) {
  const queue: Job[] = []
  let running = 0
  let backlogBytes = 0

  /**
   * The form of a value in an encoding's slot. The first call has it made.
   *
   * @param slot of the compressed encoding
   */
  function formOf(value: Value, slot: number, plain: Pick<PlainEncoding, 'body'>): CompressedForm {
    const made = value.forms[slot] as CompressedForm | undefined
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

  /** Never rejects. */
  async function run(job: Job) {
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

  /** Sessions that waited for an overtaken version do not wait again for the one that overtook it. */
  function sendNewerPlain({ value: { wireKey }, slot, form }: Job) {
    const newer = latest(wireKey)
    if (!newer || form.waiting.length === 0) return
    const its = newer.forms[slot] as CompressedForm | undefined
    if (its) its.isPlain = true
    else put(newer, slot, true)
  }

  return { formOf }
}

function put(value: Value, slot: number, isPlain: boolean): CompressedForm {
  const form = { start: undefined, blocks: undefined, savedBytes: 0, isPlain, waiting: [] }
  value.forms[slot] = form
  return form
}
