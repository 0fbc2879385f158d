// Writes to a log in LMDB: all or none of a batch, on disk before anybody can see it, and by the one process that owns the
// log. All that is known of how the lmdb package writes is here.
//
// - A commit flushes its pages, then writes and flushes the page that names them; only then do reads see it, and the
//   batch's promise resolves. So of a commit that failed nothing is seen.
// - A commit that fails rejects, and so do the promises of its writes, which nobody else would handle.
// - With `eventTurnBatching` it makes one more promise, which a failed commit rejects and nobody can reach.
// - It prints the error of a failed commit to stderr by itself, and writes beyond the end of that text's memory: a
//   process in which a write failed must end.
import { statfsSync } from 'node:fs'
import { LogBroken } from '../log.ts'
import type { Tables } from './layout.ts'

/** The key of the table's one entry. */
const OWNER = 'journal'

/** What a commit may add to the file beside its data: pages are written anew, not in place. */
const WRITE_BYTES = 8 * 1024
const COMMIT_BYTES = 256 * 1024

/** A look at a disk with more room than others fill in that time holds for so long: it costs 15 µs. */
const LOOK_MS = 100
const OTHERS_BYTES = 2 ** 30

/** Puts or removes one thing. */
export type Write = () => Promise<unknown>

/** `data`: bytes among the writes. `isClosed`: nothing is written after it. `nextEpoch`: begins with it. */
export interface CommitOptions {
  data?: number
  isClosed?: boolean
  nextEpoch?: string
}

/**
 * All or none of a batch, with what was counted for it.
 *
 * @returns false if the disk is full
 * @throws {LogBroken}
 */
export type Commit = (writes: Write[], options?: CommitOptions) => Promise<boolean>

interface Deps {
  folder: string
  tables: Pick<Tables, 'owner'>
  random: () => number
  /** Monotonic, in milliseconds. */
  now: () => number
}

export function createCommits({ folder, tables: { owner }, random, now }: Deps) {
  let token: number | undefined
  let lookedAt = Number.NEGATIVE_INFINITY
  /** Room at the last look, without what was written since. */
  let free = 0

  /** LMDB is not asked to write where there may be no room: a write that fails leaves nobody sure of what there is. */
  function hasRoomFor(writes: number, bytes: number) {
    const wanted = COMMIT_BYTES + writes * WRITE_BYTES + bytes
    if (free - wanted < OTHERS_BYTES || now() - lookedAt >= LOOK_MS) look()
    free -= wanted
    return free > 0
  }

  function look() {
    free = diskOf(folder).freeBytes
    lookedAt = now()
  }

  /**
   * @returns false where a condition of the write does not hold
   * @throws {LogBroken}
   */
  async function orBroken(write: () => Promise<boolean>): Promise<boolean> {
    try {
      return await write()
    } catch (error) {
      const cause = await causeOf(error)
      // Linux reports a failed write once: the next flush would succeed, and what was to be written before is lost.
      throw new LogBroken(
        `${folder} could not be written (${cause.message}): nothing of the last batch is acknowledged or shown. Look at ` +
          'the kernel log for errors of the disk, then check the log (docs/deploy/journal.md#when-the-disk-fails)',
        { cause },
      )
    }
  }

  const taken = () =>
    new LogBroken(`${folder} was taken by another journal (${owner.get(OWNER)?.pid}): this one must not write there`)

  return {
    /**
     * Makes this process the one that writes. The process before, if the lock of the folder failed, commits nothing from
     * then on: what is read afterwards is the last of it.
     *
     * @returns false if the disk is full
     * @throws {LogBroken}
     */
    async claim(): Promise<boolean> {
      if (!hasRoomFor(1, 0)) return false
      const claimed = 1 + Math.floor(random() * 2 ** 47)
      await orBroken(() => owner.put(OWNER, { pid: process.pid }, claimed))
      token = claimed
      return true
    },

    isClaimed: () => token !== undefined,

    disk: () => diskOf(folder),

    /**
     * Commits writes, all or none, and waits for the disk.
     *
     * @param bytes of data among them
     * @returns false if the disk is full: nothing was kept
     * @throws {LogBroken}
     */
    async commit(writes: Write[], bytes = 0): Promise<boolean> {
      if (!hasRoomFor(writes.length, bytes)) return false
      const isMine = await orBroken(() =>
        owner.ifVersion(OWNER, Number(token), () => {
          // Each write has a promise that rejects beside the batch's own: nobody else would handle it.
          for (const write of writes) void write().catch(() => {})
        }),
      )
      if (!isMine) throw taken()
      return true
    },

    /** Notices another owner without a write, too. @throws {LogBroken} */
    checkOwner() {
      if (owner.getEntry(OWNER)?.version !== token) throw taken()
    },
  }
}

/** What this process may still write counts as free: a part of some disks is root's. */
function diskOf(folder: string) {
  const { bavail, bfree, blocks, bsize } = statfsSync(folder)
  return { bytes: blocks * bsize, freeBytes: (process.getuid?.() === 0 ? bfree : bavail) * bsize }
}

async function causeOf(error: unknown): Promise<Error> {
  try {
    await (error as { commitError?: Promise<never> }).commitError
  } catch (cause) {
    return cause as Error
  }
  return error as Error
}
