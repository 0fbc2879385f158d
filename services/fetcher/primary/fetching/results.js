// What the end of a fetch does to its key: what is held from now on, who is told, when it is tried again.
import { owned } from '../../work/detached-bytes.js'
import { isCold, isFailing, isKept, isNoOlder } from '../keys/entry.js'

/**
 * @typedef {import('../../work/messages.js').FailedOutcome} FailedOutcome
 * @typedef {import('../../work/messages.js').Outcome} Outcome
 * @typedef {import('../keys/entry.js').Entry} Entry
 * @typedef {import('../keys/entry.js').Fetch} Fetch
 */

/**
 * @param {object} deps
 * @param {Pick<import('../keys/key-table.js').KeyTable, 'hasRoomFor' | 'settle'>} deps.table
 * @param {import('../timing/schedule.js').Schedule} deps.schedule
 * @param {Pick<import('../origins/recovery.js').Recovery, 'tried' | 'look'>} deps.recovery
 * @param {(entry: Entry) => void} deps.want has the key fetched
 * @param {(link: string, key: string) => void} deps.tell
 * @param {(entry: Entry) => void} deps.onNoRoom the first value of a key that is wanted does not fit
 * @param {() => number} deps.now
 */
export function createOutcomes({ table, schedule, recovery, want, tell, onNoRoom, now }) {
  /**
   * @param {Fetch} fetch
   * @param {Outcome} outcome
   * @param {Buffer | undefined} body of a value
   * @param {Buffer | undefined} delta that makes the body out of the version its outcome names
   * @param {boolean} closed it closed the origin's breaker
   */
  function take({ entry, sentAt = now() }, outcome, body, delta, closed) {
    const fits = outcome.outcome !== 'value' || !body || table.hasRoomFor(entry, body.length)
    if (fits || entry.value) {
      // Those who have watched for long do not pay for those who came since: they keep what they see, are told that it is
      // old, and get the next value there is room for.
      hold(entry, fits ? outcome : noRoom, body, delta, sentAt)
      tellAll(entry)
      followUp(entry)
      table.settle(entry)
    } else {
      onNoRoom(entry)
    }
    recovery.tried(entry.origin, outcome.outcome !== 'failed' || outcome.code === 'not_found', closed)
  }

  /**
   * @param {Entry} entry
   * @param {Outcome} outcome
   * @param {Buffer | undefined} received the body
   * @param {Buffer | undefined} delta
   * @param {number} askedAt
   */
  function hold(entry, outcome, received, delta, askedAt) {
    switch (outcome.outcome) {
      case 'value': {
        const { version, contentType, format, store, etag, lastModified, deltaFrom } = outcome
        const body = owned(received ?? Buffer.alloc(0))
        const cameAt = now()
        entry.value = { version, contentType, format, store, etag, lastModified, body, delta: undefined, cameAt }
        // Worth less than room for another key.
        if (deltaFrom && delta && table.hasRoomFor(entry, body.length + delta.length)) {
          entry.value.delta = { from: deltaFrom, bytes: owned(delta) }
        }
        return answered(entry, outcome.maxAgeMs, askedAt)
      }
      case 'current': {
        if (!entry.value) return fail(entry, unexpectedCurrent, askedAt)
        const { store, etag, lastModified } = outcome
        Object.assign(entry.value, { store, etag, lastModified })
        return answered(entry, outcome.maxAgeMs, askedAt)
      }
      case 'failed': {
        if (outcome.code !== 'not_found') return fail(entry, outcome, askedAt)
        entry.value = undefined
        answered(entry, outcome.maxAgeMs, askedAt, { code: outcome.code, message: outcome.message, askedAt })
      }
    }
  }

  /**
   * @param {Entry} entry
   * @param {number | undefined} maxAgeMs the backend's, which can only shorten the namespace's
   * @param {number} askedAt
   * @param {import('../keys/entry.js').Problem} [problem] where the answer is that there is nothing
   */
  function answered(entry, maxAgeMs, askedAt, problem) {
    entry.problem = problem
    entry.askedAt = askedAt
    entry.maxAgeMs = Math.min(entry.namespace.maxAgeMs, maxAgeMs ?? Number.POSITIVE_INFINITY)
    entry.invalid = entry.again
    schedule.succeeded(entry)
  }

  /** @param {Entry} entry @param {FailedOutcome} failure @param {number} askedAt */
  function fail(entry, failure, askedAt) {
    entry.problem = { code: failure.code, message: failure.message, askedAt }
    entry.invalid ||= entry.again
    schedule.failed(entry, failure)
  }

  /**
   * The backend is given a rest: nobody is asked, and who waits is told at once.
   *
   * @param {Entry} entry
   */
  function refuse(entry) {
    const message = 'the backend failed too often and is given a rest'
    // Those who were told what is wrong need not hear that nothing was tried since.
    if (!isFailing(entry) || entry.waiters.size > 0) {
      // That there was nothing is no longer known.
      entry.problem = { code: 'backend_unavailable', message, askedAt: now() }
    }
    schedule.park(entry, entry.origin.breaker.retryAt())
    tellAll(entry)
    table.settle(entry)
    recovery.look(entry.origin)
  }

  /** @param {Entry} entry */
  function tellAll(entry) {
    for (const [link, waiter] of entry.waiters) {
      waiter.ready ||= isFailing(entry) || (!waiter.late && isNoOlder(entry, waiter))
      waiter.late = false
      if (waiter.ready) tell(link, entry.key)
    }
    for (const [link, watcher] of entry.watchers) {
      watcher.told = true
      tell(link, entry.key)
    }
  }

  /** The backend changed, or somebody came who holds something later, while the fetch was under way. @param {Entry} entry */
  function followUp(entry) {
    const { again } = entry
    entry.again = false
    // A key that fails is tried again anyway; what nobody waits for is marked as no good.
    if (again && !isFailing(entry) && (isKept(entry) || isCold(entry))) want(entry)
  }

  return { take, refuse }
}

/** Room is not made in a moment, and each try costs the backend a whole answer. */
const NO_ROOM_RETRY_MS = 5_000

/** @type {FailedOutcome} */
const noRoom = {
  outcome: 'failed',
  code: 'capacity',
  message: 'the value has grown, and the server holds as many values as it may',
  retryAfterMs: NO_ROOM_RETRY_MS,
}

/** @type {FailedOutcome} */
const unexpectedCurrent = {
  outcome: 'failed',
  code: 'invalid_content',
  message: 'the backend says that nothing changed, but nothing is held',
}
