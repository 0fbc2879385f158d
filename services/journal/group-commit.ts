// Group commit: one batch is under way, and all that is published meanwhile forms the next. Batches grow with load by
// themselves, so the disk is waited for once per batch and not once per message. Publishers take turns to be in the next.
import {
  accountsOf,
  createFairQueue,
  createFifo,
  createStock,
  type Holder,
  NO_LANE,
  type World,
} from '@keycast/service'
import { type Kept, LogBroken, type Outcome as OutcomeOf, type Publish } from './log/log.ts'
import { conflate } from './pushed/conflate.ts'

/** `publish_unknown`: the log does not know whether it was kept. */
type Outcome = OutcomeOf | { error: 'publish_unknown' }

interface Entry {
  publish: Publish
  holder: Holder | undefined
  done: (outcome: Outcome) => void
  at: number
  deadlineAt: number
}

/** Messages in one batch: the first waits for the last, and the next batch for both. */
const BATCH_MESSAGES_MAX = 2_000

/** Bytes in one batch, one message at least: some 20 ms of a disk that writes 200 MB a second. */
const BATCH_BYTES_MAX = 4 * 2 ** 20

/**
 * Publishes that may wait beside the batch under way. With more, the disk is behind by seconds, and publishers must
 * hear it.
 */
const WAITING_MESSAGES_MAX = 50_000
const WAITING_BYTES_MAX = 64 * 2 ** 20

interface Deps {
  log: { append: (publishes: Publish[]) => Promise<OutcomeOf[]> }
  /** Once for each new message, in order, before its `done`. */
  onKept: (publish: Publish, kept: Kept) => void
  /** So many were not given to the log: their publishers gave them up. */
  onLate: (publishes: number) => void
  /** The log could not say whether it kept a batch. */
  onFailed: (error: Error) => void
  /** The log is broken: nothing more is answered or begun. */
  onBroken: (error: Error) => void
  counts: { acknowledged: (tookMs: number) => void; flushed: (messages: number, tookMs: number) => void }
  now: () => number
  turn: World['turn']
}

/** Runs what writes to the log while nothing else does. */
export type Between = <T>(write: () => Promise<T>) => Promise<T>

export function createCommitter({ log, onKept, onLate, onFailed, onBroken, counts, now, turn }: Deps) {
  const waiting = createFairQueue<Entry>()
  let waitingBytes = 0
  /** Places among those that wait, by who takes them. */
  const places = createStock({ free: () => WAITING_MESSAGES_MAX - waiting.size })
  /** Other tasks that need the log for themselves. */
  const tasks = createFifo<() => Promise<unknown>>()
  let isStopped = false
  let working: Promise<void> | undefined

  async function work() {
    while (waiting.size > 0 || tasks.size > 0) {
      await new Promise<void>(turn) // all that can be read in this turn joins, and the answers to the last batch leave
      await tasks.take()?.()
      if (waiting.size > 0) await commit(withoutLate(takeBatch()))
    }
    working = undefined
  }

  function takeBatch() {
    const batch: Entry[] = []
    let bytes = 0
    while (batch.length < BATCH_MESSAGES_MAX && bytes < BATCH_BYTES_MAX) {
      const entry = waiting.take()
      if (!entry) break
      if (entry.holder) places.change(entry.holder, -1)
      batch.push(entry)
      bytes += entry.publish.data.length
    }
    waitingBytes -= bytes
    return batch
  }

  /**
   * Refuses the publishes whose deadline has passed. Their publishers were told that nobody knows, and may have sent them
   * again: one that is kept long after would surprise them.
   */
  function withoutLate(batch: Entry[]) {
    const at = now()
    const late = batch.filter(({ deadlineAt }) => at >= deadlineAt)
    if (late.length === 0) return batch
    onLate(late.length)
    for (const { done } of late) done({ error: 'journal_unavailable' })
    return batch.filter(({ deadlineAt }) => at < deadlineAt)
  }

  async function commit(batch: Entry[]) {
    if (batch.length === 0) return
    const startedAt = now()
    const { written, spread } = conflate(batch.map(({ publish }) => publish))
    let ends: OutcomeOf[] = []
    let outcomes: Outcome[]
    try {
      ends = await log.append(written)
      outcomes = spread(ends)
    } catch (error) {
      if (error instanceof LogBroken) throw error
      onFailed(error as Error)
      outcomes = batch.map(() => ({ error: 'publish_unknown' }))
    }
    const endedAt = now()
    counts.flushed(batch.length, endedAt - startedAt)
    // All watchers are told before the first publish is acknowledged: a publisher that watches sees its message first.
    for (let index = 0; index < ends.length; index++) {
      const outcome = ends[index]
      if (outcome.error === undefined && !outcome.duplicate) onKept(written[index], outcome)
    }
    for (let index = 0; index < batch.length; index++) {
      counts.acknowledged(endedAt - batch[index].at)
      batch[index].done(outcomes[index])
    }
  }

  // `working` stays where the log broke, so that nothing begins any more.
  const start = () => {
    working ??= work().catch(onBroken)
  }

  /**
   * Has something else write between two batches: a log never has two writers at a time.
   *
   * @returns what it gives; never settles where the log is broken, or the committer stopped before
   */
  function between<T>(write: () => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      if (isStopped) return
      tasks.add(async () => {
        try {
          resolve(await write())
        } catch (error) {
          if (error instanceof LogBroken) throw error
          reject(error)
        }
      })
      start()
    })
  }

  return {
    /**
     * @returns why nothing was done: too much is waiting, or the committer stops; too much of this payer
     */
    publish(
      publish: Publish,
      deadlineAt: number,
      done: (outcome: Outcome) => void,
    ): 'journal_unavailable' | 'rate_limited' | undefined {
      if (isStopped || waiting.size >= WAITING_MESSAGES_MAX || waitingBytes >= WAITING_BYTES_MAX) {
        return 'journal_unavailable'
      }
      const { payer } = publish
      if (!places.hasRoom(payer, 1)) return 'rate_limited'
      const holder = places.charge(payer, 1)
      waiting.add({ publish, holder, done, at: now(), deadlineAt }, payer === undefined ? NO_LANE : accountsOf(payer))
      waitingBytes += publish.data.length
      start()
      return undefined
    },

    between,

    /** Accepts no more publishes, and resolves once all accepted ones have their outcome. */
    async stop() {
      isStopped = true
      await working
    },

    stats: () => ({ waiting: waiting.size, waitingBytes }),
  }
}
