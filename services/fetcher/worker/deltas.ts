// Deltas from the version a lease names to the one that was pulled. A key goes to the same worker while that lives, so
// each worker holds the last bodies of its keys.
import { readViewerKey } from '@keycast/backbone'
import { detached } from '@keycast/service'
import { createDelta } from 'fossil-delta'
import { LRUCache } from 'lru-cache'
import type { DeltaSkip, Lease } from '../worker-messages.ts'

interface Base {
  version: string
  body: Buffer
  store: boolean
}

export type Deltas = ReturnType<typeof createDeltas>

/** Below it a delta saves nothing: it names two versions, and has a checksum of its own. */
const BODY_BYTES_MIN = 128

/**
 * A delta of so much takes 180 ms at worst (0s with 1s among them), in which this worker does nothing else. Clients
 * refuse one that makes more than 4 MiB.
 */
const BODY_BYTES_MAX = 512 * 1024

/** The fields that a delta's message has beyond a value's: the version it starts from. */
const FROM_BYTES = 32

/** A delta of more than half of the body is not worth a second thing to send, hold and get right. */
const GAIN_MIN = 0.5

/**
 * A body that may be held only while its key is watched (`no-store`, `private`) is held this long after it was pulled
 * or confirmed. A worker does not hear when the last watcher leaves; it pulls nothing more from then on.
 */
const UNSTORED_MS = 10_000

/** The same for a user's own value: it must not stay when the user is gone. One refreshed more rarely has no deltas. */
const OWN_MS = 60_000

/** Held beside a body: its key, its version, its place. */
const BASE_BYTES = 512

/**
 * The share of this worker's time that goes into deltas. A new message in a conversation takes 3 µs a KB, what repeats
 * itself a lot a hundred times that; and fetching comes first.
 */
const TIME_SHARE = 0.25

/** Time saved up for when many keys change at once. */
const SAVED_MS_MAX = 500

interface Options {
  /** Bodies held; 0: no deltas. */
  bytesMax: number
  now: () => number
}

export function createDeltas({ bytesMax, now }: Options) {
  const bases = bytesMax > 0 ? createBases(bytesMax, now) : undefined
  let savedMs = SAVED_MS_MAX
  let savedAt = now()

  /**
   * @param lease `version`: what whoever gets this holds
   * @returns neither where there is no version to start from, or no use for one
   */
  function make(
    { key, version: from, delta: isOfUse }: Pick<Lease, 'key' | 'version' | 'delta'>,
    { version, store }: { version: string; store: boolean },
    body: Buffer,
  ): { delta?: Buffer; skipped?: DeltaSkip } {
    if (!isOfUse) {
      bases?.delete(key)
      return {}
    }
    const base = bases?.get(key)
    keep(key, version, body, store)
    if (!bases || from === undefined) return {}
    if (base?.version !== from) return { skipped: isOfSize(body) ? 'no_base' : 'size' }
    if (!isOfSize(body)) return { skipped: 'size' }
    return timed(() => {
      const delta = createDelta(base.body, body)
      if (delta.length + FROM_BYTES > body.length * GAIN_MIN) return { skipped: 'gain' }
      return { delta: Buffer.from(delta.buffer, delta.byteOffset, delta.length) }
    })
  }

  /**
   * The backend says that the version which a lease names is the latest. A body whose key changes rarely would else be gone
   * when it does.
   *
   * @param result without `store`: as the backend said before
   */
  function confirm(
    { key, version, delta: isOfUse }: Pick<Lease, 'key' | 'version' | 'delta'>,
    { store }: { store?: boolean },
  ) {
    const base = bases?.get(key)
    if (!base) return
    if (!isOfUse) bases?.delete(key)
    else if (base.version === version) hold(key, { ...base, store: store ?? base.store })
  }

  function keep(key: string, version: string, body: Buffer, store: boolean) {
    if (isOfSize(body)) hold(key, { version, body: detached(body), store })
    else bases?.delete(key)
  }

  function hold(key: string, base: Base) {
    bases?.set(key, base, { ttl: ttlOf(key, base.store) })
  }

  /** @returns 0: for as long as there is room */
  function ttlOf(key: string, store: boolean): number {
    if (!store) return UNSTORED_MS
    return readViewerKey(key) ? OWN_MS : 0
  }

  function timed(work: () => { delta?: Buffer; skipped?: DeltaSkip }): { delta?: Buffer; skipped?: DeltaSkip } {
    const startedAt = now()
    savedMs = Math.min(SAVED_MS_MAX, savedMs + (startedAt - savedAt) * TIME_SHARE)
    savedAt = startedAt
    if (savedMs <= 0) return { skipped: 'time' }
    const result = work()
    savedMs -= now() - startedAt
    return result
  }

  return { make, confirm }
}

function createBases(bytesMax: number, now: () => number): LRUCache<string, Base> {
  return new LRUCache({
    maxSize: bytesMax,
    sizeCalculation: ({ body }) => body.length + BASE_BYTES,
    ttlAutopurge: true,
    perf: { now },
  })
}

function isOfSize({ length }: Buffer) {
  return length >= BODY_BYTES_MIN && length <= BODY_BYTES_MAX
}
