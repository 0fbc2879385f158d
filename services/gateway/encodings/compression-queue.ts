// Compresses values: each version's body once per encoding, off the event loop, for all sessions that negotiated
// permessage-deflate, and once per coding for all requests over HTTP. deflate.ts and codings.ts have the formats; this
// file decides which values, in which order, and who waits.
//
// A session that is due a value which is still being compressed waits for that; nobody else does. A version that is
// overtaken meanwhile is dropped, and sessions that waited for it are sent the newer one uncompressed: otherwise a key
// that changes faster than it compresses would keep them waiting for ever.
import type { Counts } from '../counts.ts'
import type { Subscription } from '../topics/topics.ts'
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

/** @returns the bytes, compressed, in memory of their own */
type Make = (source: Buffer) => Promise<Buffer>

interface Job {
  value: Value
  /** Of `value.forms`. */
  slot: number
  source: Buffer
  make: Make
  /** Given fewer bytes than the source has, or none. */
  done: (made: Buffer | undefined) => void
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
  counts: Pick<Counts, 'compressions' | 'compressionSeconds'>
  deflate?: Make
  now: () => number
}

export function createCompression({ latest, grown, resume, counts, now, deflate = deflateBlocks }: Deps) {
  const queue: Job[] = []
  /** For which there was no room: they are asked for anew once there may be some. */
  let passedOver: Pick<Job, 'value' | 'slot'>[] = []
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
    const form = put(value, slot, false)
    const source = plain.body(value)
    compress({ value, slot, source, make: deflate }, blocks => {
      if (latest(value.wireKey) !== value) sendNewerPlain(value, slot, form)
      form.blocks = blocks
      form.savedBytes = blocks ? source.length - blocks.length : 0
      form.isPlain = blocks === undefined
      const { waiting } = form
      form.waiting = []
      resume(waiting)
    })
    return form
  }

  /** A small body is done with at once. So is one for which the queue has no room now, until the next asks for it. */
  function compress({ value, slot, source, make }: Omit<Job, 'done' | 'atMs'>, done: Job['done']) {
    if (source.length < DEFLATE_BYTES_MIN) return done(undefined)
    if (backlogBytes > 0 && backlogBytes + source.length > BACKLOG_BYTES_MAX) {
      counts.compressions.busy++
      passedOver.push({ value, slot })
      return done(undefined)
    }
    backlogBytes += source.length
    queue.push({ value, slot, source, make, done, atMs: now() })
    next()
  }

  function next() {
    while (running < RUNNING_MAX) {
      const job = queue.shift()
      if (!job) return
      running++
      void run(job).then(() => {
        running--
        backlogBytes -= job.source.length
        for (const { value, slot } of passedOver) value.forms[slot] = undefined
        passedOver = []
        next()
      })
    }
  }

  /** Never rejects. */
  async function run({ value, source, make, done, atMs }: Job) {
    const isLatest = () => latest(value.wireKey) === value
    const made = isLatest() ? await make(source).catch(() => undefined) : undefined
    const isSmaller = made !== undefined && made.length < source.length
    if (!isLatest() || !isSmaller) {
      counts.compressions[!isLatest() ? 'overtaken' : made ? 'larger' : 'failed']++
      return done(undefined)
    }
    counts.compressions.kept++
    counts.compressionSeconds.observe(now() - atMs)
    value.compressedBytes += made.length
    grown(value.wireKey)
    done(made)
  }

  /** Sessions that waited for an overtaken version do not wait again for the one that overtook it. */
  function sendNewerPlain({ wireKey }: Value, slot: number, { waiting }: CompressedForm) {
    const newer = latest(wireKey)
    if (!newer || waiting.length === 0) return
    const its = newer.forms[slot] as CompressedForm | undefined
    if (its) its.isPlain = true
    else put(newer, slot, true)
  }

  return { formOf, compress }
}

function put(value: Value, slot: number, isPlain: boolean): CompressedForm {
  const form = { start: undefined, blocks: undefined, savedBytes: 0, isPlain, waiting: [] }
  value.forms[slot] = form
  return form
}
