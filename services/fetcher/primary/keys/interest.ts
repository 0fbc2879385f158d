// The links that watch a key or wait for it. Each want stands in the key's entry and in an index by link. So a lost
// link costs its own keys, and not a walk over all of them. Only this file changes either.
import type { Answer, Credentials } from '@keycast/backbone'
import type { Payer } from '@keycast/service'
import type { Timer } from '../timing/timer-wheel.ts'
import type { Entry } from './entry.ts'
import { isAnswered, isFailing, isNoOlder } from './held.ts'
import {
  ASSURED,
  countOf,
  eachWatcher,
  NOTIFIED,
  newWatcher,
  noWatchers,
  OWED,
  type Watcher,
  type Watchers,
  watcherIn,
  withoutWatcher,
  withWatcher,
} from './watchers.ts'

export type Interest = ReturnType<typeof createInterest>

/**
 * What a link's gateway holds of a key. `askedAt`: when the backend was asked for that. `payer`: of those who want it
 * there. `credentials` come with wants of a user's own value: see viewer.ts.
 */
export interface Seen {
  version: string | undefined
  askedAt: number
  payer?: Payer
  credentials?: Credentials
}

/**
 * A link that waits for one answer. `ready`: it is there, and goes out when the link has credit. `needsFollowUp`: the
 * fetch under way asked the backend before the key changed, and this link came after: only the fetch that follows will
 * do. `isOld`: it is given a `not_found` that is too old for others, see timing/absent-keys.ts.
 */
export type Waiter = Seen & { ready: boolean; needsFollowUp: boolean; isOld?: boolean }

/**
 * `waiters`: absent where nobody waits, as for most keys that are watched. `lingerTimer`: set for a moment after the
 * last watcher left, while the key is still kept fresh.
 */
export interface EntryInterest {
  watchers: Watchers
  waiters: Map<string, Waiter> | undefined
  lingerTimer: Timer | undefined
}

export type Want = 'watch' | 'get'

/** A key is kept fresh for this long after its last viewer left: people reload pages. */
const LINGER_MS = 1_000

export function newInterest(): EntryInterest {
  return { watchers: noWatchers(), waiters: undefined, lingerTimer: undefined }
}

interface Deps {
  /** The link is due the key's latest state. */
  markDue: (link: string, key: string) => void
  wheel: { set: (atMs: number, run: () => void) => Timer; cancel: (timer: Timer | undefined) => void }
  now: () => number
}

export function createInterest({ markDue, wheel, now }: Deps) {
  /** The keys that each link watches or waits for. */
  const byLink = new Map<string, Set<Entry>>()

  function index(link: string, entry: Entry) {
    const entries = byLink.get(link)
    if (entries) entries.add(entry)
    else byLink.set(link, new Set([entry]))
  }

  /** A link stopped to watch or to wait, and may still do the other. */
  function unindex(link: string, entry: Entry) {
    if (watcherOf(entry, link) || waiterOf(entry, link)) return
    const entries = byLink.get(link)
    if (entries?.delete(entry) && entries.size === 0) byLink.delete(link)
  }

  function watch(
    link: string,
    entry: Entry,
    { version, askedAt, payer, credentials, quiet = false }: Seen & { quiet?: boolean },
  ): Watcher {
    const watcher = newWatcher(link, { version, askedAt, quiet, payer, credentials })
    entry.interest.watchers = withWatcher(entry.interest.watchers, watcher)
    index(link, entry)
    stopLingering(entry)
    return watcher
  }

  /** @returns whether it watched */
  function unwatch(link: string, entry: Entry): boolean {
    if (!watcherOf(entry, link)) return false
    entry.interest.watchers = withoutWatcher(entry.interest.watchers, link)
    unindex(link, entry)
    return true
  }

  function wait(
    link: string,
    entry: Entry,
    { version, askedAt, payer, credentials }: Seen,
    { ready, needsFollowUp, isOld = false }: Pick<Waiter, 'ready' | 'needsFollowUp' | 'isOld'>,
  ) {
    entry.interest.waiters ??= new Map()
    entry.interest.waiters.set(link, { version, askedAt, payer, credentials, ready, needsFollowUp, isOld })
    index(link, entry)
    // The gateway's latest report of its state: it may have dropped the value it was sent.
    const watcher = watcherOf(entry, link)
    if (watcher) watcher.version = version
  }

  /** @returns whether it waited */
  function stopWaiting(link: string, entry: Entry): boolean {
    const { interest } = entry
    if (!interest.waiters?.delete(link)) return false
    if (interest.waiters.size === 0) interest.waiters = undefined
    unindex(link, entry)
    return true
  }

  /** @returns walks over what it watches or waits for, which may end meanwhile */
  function entriesOf(link: string): IterableIterator<Entry> {
    return (byLink.get(link) ?? (new Set() as Set<Entry>)).values()
  }

  /**
   * Ends interest in a key.
   *
   * @param isMeant all of it, unless given
   * @returns the wants that ended, watches first
   */
  function drop(
    entry: Entry,
    isMeant: (want: Pick<Seen, 'credentials'>) => boolean = () => true,
  ): { link: string; want: Want; payer: Payer | undefined }[] {
    const { watchers, waiters } = entry.interest
    const watches = [...eachWatcher(watchers)].filter(isMeant)
    const gets = [...(waiters ?? [])].filter(([, waiter]) => isMeant(waiter))
    for (const { link } of watches) unwatch(link, entry)
    for (const [link] of gets) stopWaiting(link, entry)
    stopLingering(entry)
    return [
      ...watches.map(({ link, payer }) => ({ link, want: 'watch' as const, payer })),
      ...gets.map(([link, { payer }]) => ({ link, want: 'get' as const, payer })),
    ]
  }

  /**
   * Keeps a key fresh a moment longer, unless somebody starts to watch it.
   *
   * @param entry whose last watcher left
   */
  function linger(entry: Entry, onEnd: () => void) {
    stopLingering(entry)
    entry.interest.lingerTimer = wheel.set(now() + LINGER_MS, () => {
      entry.interest.lingerTimer = undefined
      onEnd()
    })
  }

  function stopLingering({ interest }: Entry) {
    wheel.cancel(interest.lingerTimer)
    interest.lingerTimer = undefined
  }

  /** A link that watches is due something. */
  function notify(link: string, entry: Entry, watcher: Watcher) {
    watcher.state |= NOTIFIED
    markDue(link, entry.key)
  }

  /**
   * The held state of a key changed, was confirmed, or failed to be fetched.
   *
   * @param how see {@link notifyWatchers}
   */
  function notifyAll(entry: Entry, how?: { isAsAssured: boolean }) {
    const { waiters } = entry.interest
    if (waiters) {
      for (const [link, waiter] of waiters) {
        const isAnswer = isAnswered(entry) && !waiter.needsFollowUp && isNoOlder(entry, waiter)
        waiter.ready ||= isFailing(entry) || isAnswer
        waiter.needsFollowUp = false
        if (waiter.ready) markDue(link, entry.key)
      }
    }
    notifyWatchers(entry, how)
  }

  /** @param how `isAsAssured`: the refresh brought nothing new, in time */
  function notifyWatchers(entry: Entry, { isAsAssured }: { isAsAssured: boolean } = { isAsAssured: false }) {
    for (const watcher of eachWatcher(entry.interest.watchers)) {
      if (!isAsAssured || (watcher.state & ASSURED) === 0) notify(watcher.link, entry, watcher)
    }
  }

  /** All watching links are sent the state anew, also those that have it. */
  function oweAll(entry: Entry) {
    for (const watcher of eachWatcher(entry.interest.watchers)) {
      watcher.state |= OWED
      notify(watcher.link, entry, watcher)
    }
  }

  /**
   * A link is sent its due state now, and waits for nothing more.
   *
   * @param answer `undefined` where there is nothing to send
   */
  function noteSent(link: string, entry: Entry, answer: Answer | undefined) {
    const waiter = waiterOf(entry, link)
    // The value that was ready was dropped since: what the next fetch brings is the answer.
    if (waiter && !answer) waiter.ready = false
    else stopWaiting(link, entry)
    const watcher = watcherOf(entry, link)
    if (!watcher || !answer) return
    const isAssured = answer.type !== 'failed' && answer.next !== undefined
    watcher.state = (watcher.state & ~(OWED | ASSURED)) | (isAssured ? ASSURED : 0)
    watcher.failure = answer.type === 'failed' ? entry.held.failure : undefined
    // Rounded down: what is found next is news, though the backend is asked within the same millisecond.
    const askedAt = Math.floor(entry.held.askedAt)
    if (answer.type !== 'failed') {
      watcher.version = answer.version
      watcher.askedAt = Math.max(watcher.askedAt, askedAt)
    } else if (answer.code === 'not_found') {
      // The gateway then drops its value.
      watcher.version = undefined
      watcher.askedAt = askedAt
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
    notifyWatchers,
    oweAll,
    noteSent,
    /** The links that want something. */
    links: () => byLink.keys(),
  }
}

export const watcherOf = ({ interest }: Entry, link: string) => watcherIn(interest.watchers, link)

export const waiterOf = ({ interest }: Entry, link: string) => interest.waiters?.get(link)

/** Whether the link wants the key already. */
export const isWantedBy = (entry: Entry, link: string) =>
  watcherOf(entry, link) !== undefined || waiterOf(entry, link) !== undefined

/** Those whom links name to pay for the key: one for each want. */
export function* payersOf({ interest: { watchers, waiters } }: Entry): Generator<Payer> {
  for (const { payer } of eachWatcher(watchers)) if (payer !== undefined) yield payer
  if (waiters) for (const { payer } of waiters.values()) if (payer !== undefined) yield payer
}

/** Those for whom links wait for a fetch. */
export function* payersWaiting({ interest: { waiters } }: Entry): Generator<Payer | undefined> {
  if (waiters) for (const { ready, payer } of waiters.values()) if (!ready) yield payer
}

/** The number of wants that links have of the key. */
export const wantsOf = ({ interest: { watchers, waiters } }: Entry) => countOf(watchers) + (waiters?.size ?? 0)

/** Whether the key is kept fresh: somebody watches it, or did a moment ago. */
export const isKept = ({ interest }: Entry) => countOf(interest.watchers) > 0 || interest.lingerTimer !== undefined

/** Whether somebody watches the key now. */
export const isWatched = ({ interest }: Entry) => countOf(interest.watchers) > 0

/** Whether somebody waits for an answer. */
export const isWaitedFor = ({ interest }: Entry) => interest.waiters !== undefined

/** Whether somebody wants the key: it is kept fresh, or waited for. */
export const isWanted = (entry: Entry) => isKept(entry) || isWaitedFor(entry)

/** Whether the entry must stay. */
export const isInUse = (entry: Entry) => isWanted(entry) || entry.fetch !== undefined

/** Whether a link wants the key, has nothing of it yet, and is due nothing. */
export function isCold({ interest: { watchers, waiters } }: Entry) {
  if (waiters) for (const { ready } of waiters.values()) if (!ready) return true
  for (const { version, state } of eachWatcher(watchers)) if (version === undefined && !(state & NOTIFIED)) return true
  return false
}
