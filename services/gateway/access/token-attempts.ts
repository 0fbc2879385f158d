// Limits how often an address may have tokens checked: a bucket each, so that garbage costs its sender's share and
// nobody else's.
import { createRecent } from '@keycast/service'
import { type Bucket, fullBucket, refill, waitMsFor } from '../sessions/rate-limit.ts'

/** Checks that fail, a second and address. One costs some 0.25 ms of a core, so 20 are half a percent of it. */
const PER_SECOND = 20

/** Checks that may be under way or fail at once: a crowd behind one address that comes back after a restart. */
const BURST = 200

/** Addresses remembered: at some 150 bytes each they take 10 MB. An address forgotten has a full bucket again. */
const ADDRESSES_MAX = 65_536

interface Options {
  perSecond?: number
  burst?: number
  addressesMax?: number
  now: () => number
}

export function createAttempts({ now, perSecond = PER_SECOND, burst = BURST, addressesMax = ADDRESSES_MAX }: Options) {
  const buckets = createRecent<string, Bucket>(addressesMax)
  const rate = { perSecond, max: burst }

  function refilled(address: string) {
    const nowMs = now()
    const known = buckets.use(address)
    if (known) return refill(known, rate, nowMs)
    const bucket = fullBucket(rate, nowMs)
    buckets.set(address, bucket)
    return bucket
  }

  return {
    /**
     * Takes one attempt.
     *
     * @param address as `limitKeyOf` gives it
     * @returns 0: it may be made; else how long to wait, in milliseconds, and nothing is taken
     */
    take(address: string): number {
      const bucket = refilled(address)
      if (bucket.left < 1) return waitMsFor(1 - bucket.left, rate)
      bucket.left--
      return 0
    },

    /** The token was good: what it took is given back, or a crowd behind one address could not come in. */
    giveBack(address: string) {
      const bucket = refilled(address)
      bucket.left = Math.min(burst, bucket.left + 1)
    },
  }
}

export type Attempts = ReturnType<typeof createAttempts>
