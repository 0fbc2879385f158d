// The links that watch a key or wait for it. Each want stands in the key's entry and in an index by link. So a lost
// link costs its own keys, and not a walk over all of them. Only this file changes either.
import { isFailing, isNoOlder } from './held.ts'
import {
  ASSURED,
  countOf,
  eachWatcher,
  NOTIFIED,
  newWatcher,
  noWatchers,
  OWED,
  watcherIn,
  wholeMs,
  withoutWatcher,
  withWatcher,
} from './watchers.ts'

/**
 * @typedef {import('@keycast/backbone').Answer} Answer
 * @typedef {import('../timing/timer-wheel.ts').Timer} Timer
 * @typedef {import('./entry.ts').Entry} Entry
 * @typedef {import('./watchers.ts').Watcher} Watcher
 * @typedef {ReturnType<typeof createInterest>} Interest
 *
 * What a link's gateway holds of a key. `askedAt`: when the backend was asked for that. `credentials` come with wants of a
 * user's own value: see credentials.ts.
 * @typedef {{ version: string | undefined, askedAt: number, credentials?: import('@keycast/backbone').Credentials }} Seen
 *
 * A link that waits for one answer. `ready`: it is there, and goes out when the link has credit. `needsFollowUp`: the fetch
 * under way asked the backend before the key changed, and this link came after: only the fetch that follows will do.
 * @typedef {Seen & { ready: boolean, needsFollowUp: boolean }} Waiter
 *
 * `waiters`: absent where nobody waits, as for most keys that are watched. `lingerTimer`: set for a moment after the last
 * watcher left, while the key is still kept fresh.
 * @typedef {{ watchers: import('./watchers.ts').Watchers, waiters: Map<string, Waiter> | undefined, lingerTimer: Timer | undefined }} EntryInterest
 *
 * @typedef {'watch' | 'get'} Want
 */

/** A key is kept fresh for this long after its last viewer left: people reload pages. */
const LINGER_MS = 1_000

/** @returns {EntryInterest} */
export function newInterest() {
  return { watchers: noWatchers(), waiters: undefined, lingerTimer: undefined }
}

/**
 * @param {object} deps
 * @param {(link: string, key: string) => void} deps.markDue the link is due the key's latest state
 * @param {Pick<import('../timing/timer-wheel.ts').TimerWheel, 'set' | 'cancel'>} deps.wheel
 * @param {() => number} deps.now
 */
export function createInterest({ markDue, wheel, now }) {
  /** The keys that each link watches or waits for. @type {Map<string, Set<Entry>>} */
  const byLink = new Map()

  /** @param {string} link @param {Entry} entry */
  function index(link, entry) {
    const entries = byLink.get(link)
    if (entries) entries.add(entry)
    else byLink.set(link, new Set([entry]))
  }

  /** A link stopped to watch or to wait, and may still do the other. @param {string} link @param {Entry} entry */
  function unindex(link, entry) {
    if (watcherOf(entry, link) || waiterOf(entry, link)) return
    const entries = byLink.get(link)
    if (entries?.delete(entry) && entries.size === 0) byLink.delete(link)
  }

  /** @param {string} link @param {Entry} entry @param {Seen & { quiet?: boolean }} seen @returns {Watcher} */
  function watch(link, entry, { version, askedAt, credentials, quiet = false }) {
    const watcher = newWatcher(link, { version, askedAt, quiet, credentials })
    entry.interest.watchers = withWatcher(entry.interest.watchers, watcher)
    index(link, entry)
    stopLingering(entry)
    return watcher
  }

  /** @param {string} link @param {Entry} entry @returns {boolean} whether it watched */
  function unwatch(link, entry) {
    if (!watcherOf(entry, link)) return false
    entry.interest.watchers = withoutWatcher(entry.interest.watchers, link)
    unindex(link, entry)
    return true
  }

  /**
   * @param {string} link
   * @param {Entry} entry
   * @param {Seen} seen
   * @param {Pick<Waiter, 'ready' | 'needsFollowUp'>} state
   * @returns {Waiter}
   */
  function wait(link, entry, { version, askedAt, credentials }, { ready, needsFollowUp }) {
    const waiter = { version, askedAt, credentials, ready, needsFollowUp }
    entry.interest.waiters ??= new Map()
    entry.interest.waiters.set(link, waiter)
    index(link, entry)
    // The gateway's latest report of its state: it may have dropped the value it was sent.
    const watcher = watcherOf(entry, link)
    if (watcher) watcher.version = version
    return waiter
  }

  /** @param {string} link @param {Entry} entry @returns {boolean} whether it waited */
  function stopWaiting(link, entry) {
    const { interest } = entry
    if (!interest.waiters?.delete(link)) return false
    if (interest.waiters.size === 0) interest.waiters = undefined
    unindex(link, entry)
    return true
  }

  /** @param {string} link @returns {IterableIterator<Entry>} walks over what it watches or waits for, which may end meanwhile */
  function entriesOf(link) {
    return (byLink.get(link) ?? /** @type {Set<Entry>} */ (new Set())).values()
  }

  /**
   * Ends interest in a key.
   *
   * @param {Entry} entry
   * @param {(want: Pick<Seen, 'credentials'>) => boolean} [isMeant] all of it, unless given
   * @returns {{ link: string, want: Want }[]} the wants that ended, watches first
   */
  function drop(entry, isMeant = () => true) {
    const { watchers, waiters } = entry.interest
    const watches = [...eachWatcher(watchers)].filter(isMeant).map(({ link }) => link)
    const gets = [...(waiters ?? [])].filter(([, waiter]) => isMeant(waiter)).map(([link]) => link)
    for (const link of watches) unwatch(link, entry)
    for (const link of gets) stopWaiting(link, entry)
    stopLingering(entry)
    return [
      ...watches.map(link => ({ link, want: /** @type {const} */ ('watch') })),
      ...gets.map(link => ({ link, want: /** @type {const} */ ('get') })),
    ]
  }

  /**
   * Keeps a key fresh a moment longer, unless somebody starts to watch it.
   *
   * @param {Entry} entry whose last watcher left
   * @param {() => void} onEnd
   */
  function linger(entry, onEnd) {
    stopLingering(entry)
    entry.interest.lingerTimer = wheel.set(now() + LINGER_MS, () => {
      entry.interest.lingerTimer = undefined
      onEnd()
    })
  }

  /** @param {Entry} entry */
  function stopLingering({ interest }) {
    wheel.cancel(interest.lingerTimer)
    interest.lingerTimer = undefined
  }

  /** A link that watches is due something. @param {string} link @param {Entry} entry @param {Watcher} watcher */
  function notify(link, entry, watcher) {
    watcher.state |= NOTIFIED
    markDue(link, entry.key)
  }

  /**
   * The held state of a key changed, was confirmed, or failed to be fetched.
   *
   * @param {Entry} entry
   * @param {{ isAsAssured?: boolean }} [how] `isAsAssured`: the refresh brought nothing new, in time
   */
  function notifyAll(entry, { isAsAssured = false } = {}) {
    const { watchers, waiters } = entry.interest
    if (waiters) {
      for (const [link, waiter] of waiters) {
        waiter.ready ||= isFailing(entry) || (!waiter.needsFollowUp && isNoOlder(entry, waiter))
        waiter.needsFollowUp = false
        if (waiter.ready) markDue(link, entry.key)
      }
    }
    for (const watcher of eachWatcher(watchers)) {
      if (!isAsAssured || (watcher.state & ASSURED) === 0) notify(watcher.link, entry, watcher)
    }
  }

  /**
   * A link is sent its due state now, and waits for nothing more.
   *
   * @param {string} link
   * @param {Entry} entry
   * @param {Answer | undefined} answer `undefined` where there is nothing to send
   */
  function noteSent(link, entry, answer) {
    stopWaiting(link, entry)
    const watcher = watcherOf(entry, link)
    if (!watcher || !answer) return
    const isAssured = answer.type !== 'failed' && answer.next !== undefined
    watcher.state = (watcher.state & ~(OWED | ASSURED)) | (isAssured ? ASSURED : 0)
    watcher.failure = answer.type === 'failed' ? entry.held.failure : undefined
    if (answer.type !== 'failed') {
      watcher.version = answer.version
      watcher.askedAt = Math.max(watcher.askedAt, wholeMs(entry.held.askedAt))
    } else if (answer.code === 'not_found') {
      // The gateway then drops its value.
      watcher.version = undefined
      watcher.askedAt = wholeMs(entry.held.askedAt)
    }
  }

  return {
    watch,
    unwatch,
    wait,
    stopWaiting,
    entriesOf,
    drop,
    linger,
    notify,
    notifyAll,
    noteSent,
    /** The links that want something. */
    links: () => byLink.keys(),
  }
}

/** @param {Entry} entry @param {string} link */
export const watcherOf = ({ interest }, link) => watcherIn(interest.watchers, link)

/** @param {Entry} entry @param {string} link */
export const waiterOf = ({ interest }, link) => interest.waiters?.get(link)

/** Whether the link wants the key already. @param {Entry} entry @param {string} link */
export const isWantedBy = (entry, link) => watcherOf(entry, link) !== undefined || waiterOf(entry, link) !== undefined

/** The number of wants that links have of the key. @param {Entry} entry */
export const wantsOf = ({ interest: { watchers, waiters } }) => countOf(watchers) + (waiters?.size ?? 0)

/** Whether the key is kept fresh: somebody watches it, or did a moment ago. @param {Entry} entry */
export const isKept = ({ interest }) => countOf(interest.watchers) > 0 || interest.lingerTimer !== undefined

/** Whether somebody watches the key now. @param {Entry} entry */
export const isWatched = ({ interest }) => countOf(interest.watchers) > 0

/** Whether somebody waits for an answer. @param {Entry} entry */
export const isWaitedFor = ({ interest }) => interest.waiters !== undefined

/** Whether somebody wants the key: it is kept fresh, or waited for. @param {Entry} entry */
export const isWanted = entry => isKept(entry) || isWaitedFor(entry)

/**
 * Whether a link wants the key, has nothing of it yet, and is due nothing.
 *
 * @param {Entry} entry
 */
export function isCold({ interest: { watchers, waiters } }) {
  if (waiters) for (const { ready } of waiters.values()) if (!ready) return true
  for (const { version, state } of eachWatcher(watchers)) if (version === undefined && !(state & NOTIFIED)) return true
  return false
}
