// The links that watch a key, and each gateway's state of it. Small, since there may be millions.
import type { Credentials } from '@keycast/backbone'
import type { Payer } from '@keycast/service'
import type { Failure } from './held.ts'

/**
 * A link that watches, with what its gateway holds by its own word or because it was sent since. `askedAt`: when the
 * backend was asked for that, in whole milliseconds. `failure`: the last one it was sent, unless something better
 * followed. `state`: bits of this file. `payer`: of the gateway's subscribers, the one who is to pay. `credentials`: only there where the key is a user's own; see viewer.ts.
 */
export interface Watcher {
  link: string
  version: string | undefined
  askedAt: number
  failure: Failure | undefined
  state: number
  payer: Payer | undefined
  credentials?: Credentials
}

/** A list while they are few: a third of a map's memory. Only this file changes either. */
export type Watchers = Watcher[] | Map<string, Watcher>

/** It sent `watch`, or the state got another number, and it was sent nothing since. */
export const OWED = 1

/** The hub knows that it is due something; this may not have been sent yet. */
export const NOTIFIED = 2

/** Its gateway understands that it is told of changes only. */
export const QUIET = 4

/** It was told so for this key. */
export const ASSURED = 8

/** From here on a map finds them sooner. */
const LIST_MAX = 8

/** Earlier than any time there is. A small integer, which takes no memory of its own; minus infinity does. */
const NEVER = -(2 ** 30)

/** Shared by all keys that nobody watches. Never changed. */
const NOBODY: Watcher[] = []

export const noWatchers = () => NOBODY

/**
 * @param what its gateway holds; `askedAt` is rounded up, since it holds nothing older than it says
 * @returns that is owed an answer
 */
export function newWatcher(
  link: string,
  {
    version,
    askedAt,
    quiet,
    payer,
    credentials,
  }: {
    version: string | undefined
    askedAt: number
    quiet: boolean
    payer?: Payer
    credentials?: Credentials
  },
): Watcher {
  const state = quiet ? OWED | QUIET : OWED
  const watcher = { link, version, askedAt: Math.max(NEVER, Math.ceil(askedAt)), failure: undefined, state, payer }
  return credentials ? { ...watcher, credentials } : watcher
}

/** Whether the link was sent any state of the key. */
export const isSentBefore = (watcher: Watcher | undefined) => watcher !== undefined && (watcher.state & OWED) === 0

export function watcherIn(watchers: Watchers, link: string): Watcher | undefined {
  if ('size' in watchers) return watchers.get(link)
  for (const watcher of watchers) if (watcher.link === link) return watcher
  return undefined
}

/** @param added in the place of the same link's, if it has one */
export function withWatcher(watchers: Watchers, added: Watcher): Watchers {
  if ('size' in watchers) return watchers.set(added.link, added)
  const others = watcherIn(watchers, added.link) ? withoutWatcher(watchers, added.link) : watchers
  // A new list of just that length: one that grows keeps room for a dozen more.
  const list = (others as Watcher[]).concat(added)
  return list.length <= LIST_MAX ? list : new Map(list.map(watcher => [watcher.link, watcher]))
}

/** @param link that watches */
export function withoutWatcher(watchers: Watchers, link: string): Watchers {
  if ('size' in watchers) watchers.delete(link)
  else if (watchers.length === 1) return NOBODY
  else return watchers.filter(watcher => watcher.link !== link)
  return watchers
}

export const eachWatcher = (watchers: Watchers): Iterable<Watcher> =>
  'size' in watchers ? watchers.values() : watchers

export const countOf = (watchers: Watchers) => ('size' in watchers ? watchers.size : watchers.length)
