// The table of keys: an entry for each key that is wanted or worth keeping, and the answers that these can give.
import { type Backbone, type Held, readViewerKey } from '@keycast/backbone'
import { excerpt, keyProblem, namespaceOf, type Problem, problemText } from '@keycast/protocol'
import type { Namespaces } from '@keycast/service'
import type { Kind } from '../topic.ts'
import { askedAtOf, latestAskedAtOf, planOf } from './age.ts'
import type { Cache } from './cache.ts'
import { createEntry, type Entry, type Result } from './entry.ts'
import { type Failure, problemNow } from './failure.ts'

export type Values = ReturnType<typeof createValues>

interface Deps {
  namespaces: Namespaces
  cache: Cache
  backbone: Pick<Backbone, 'ownerOf'>
  kind: Kind
  onOpened?: (entry: Entry) => void
  /** Monotonic, in milliseconds. */
  now: () => number
}

export function createValues({ namespaces, cache, backbone, kind, onOpened = () => {}, now }: Deps) {
  /**
   * The entry of a key, made if there is none. It must be wanted (subscribed to or waited for) before the cache's
   * `update` sees it, or it is dropped again.
   *
   * @param wireKey of a key that passed the gate
   */
  function open(wireKey: string): Entry {
    const known = cache.get(wireKey)
    if (known) return known
    const namespace = namespaces.get(namespaceOf(wireKey))
    // A caller that forgot to check would let a stranger choose the URLs that the fetcher asks the backend for. One
    // that forgot the viewer would show one user's value to all.
    const isOwn = namespace?.isPerUser === true
    const key = isOwn ? readViewerKey(wireKey)?.key : wireKey
    if (!namespace || key === undefined || keyProblem(key)) {
      throw new Error(`opened ${excerpt(wireKey)}, which nobody checked`)
    }
    const entry = createEntry(wireKey, namespace, kind)
    cache.add(entry)
    if (entry.viewer !== undefined) onOpened(entry)
    return entry
  }

  /** The same for a subscription. Watched keys cannot be dropped: past the limit only those fit that are watched already. */
  function openWatched(wireKey: string): Entry | Problem {
    if (!cache.get(wireKey)?.subscriptions.length && cache.isFull()) return { code: 'capacity' }
    return open(wireKey)
  }

  /**
   * The answer for a key from memory, no older than its `maxAgeMs`: its value, or `not_found`. `undefined` if the
   * fetcher must be asked.
   *
   * @param asOfMs the time at which it must not be too old: now, unless the question was asked earlier
   */
  function fresh(wireKey: string, asOfMs: number = now()): Result | undefined {
    const entry = cache.get(wireKey)
    if (!entry) return undefined
    if (asOfMs - askedAtOf(entry) > entry.maxAgeMs) return undefined
    if (entry.value) return latest(entry)
    return entry.failure?.problem.code === 'not_found' ? latest(entry) : undefined
  }

  /**
   * The last known value or failure of a key, however old.
   *
   * @param entry that has a value, or whose last try failed
   */
  function latest(entry: Entry): Result {
    if (!entry.value) return { problem: problemNow(entry.failure as Failure, now()) }
    return { value: entry.value, ageMs: ageOf(entry), maxAgeMs: entry.maxAgeMs, store: entry.store }
  }

  /** This gateway's version of a key, which the backbone tells the fetcher. */
  function held(wireKey: string): Held | undefined {
    const entry = cache.get(wireKey)
    if (!entry?.value) return undefined
    const nowMs = now()
    const ageMs = Math.max(0, nowMs - latestAskedAtOf(entry))
    return { version: entry.value.version, ageMs, order: entry.value.order, plan: planOf(entry, nowMs) }
  }

  function ageOf(entry: Entry) {
    return Math.max(0, now() - askedAtOf(entry))
  }

  /** Everything known of a key, for an operator who asks why it is stale. All of it is this gateway's view. */
  function describe(key: string) {
    const entry = cache.peek(key)
    const nowMs = now()
    return {
      key,
      owner: backbone.ownerOf(key),
      watched: entry ? entry.subscriptions.length > 0 : false,
      subscribers: entry?.subscriptions.length ?? 0,
      waiters: entry?.waiters.length ?? 0,
      stale: entry?.stale ?? false,
      value: entry?.value && {
        version: entry.value.version,
        contentType: entry.value.contentType,
        bytes: entry.value.body.length,
        ageMs: Math.round(nowMs - askedAtOf(entry)),
        maxAgeMs: entry.maxAgeMs,
        store: entry.store,
      },
      lastFailure: entry?.failure && {
        code: entry.failure.problem.code,
        message: problemText(entry.failure.problem),
        retryAfterMs: entry.failure.problem.retryAfterMs,
        agoMs: Math.round(nowMs - entry.failure.atMs),
      },
    }
  }

  return { open, openWatched, fresh, latest, held, describe }
}
