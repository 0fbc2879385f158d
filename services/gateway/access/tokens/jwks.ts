// A set of public keys that an identity provider publishes (RFC 7517): fetched within limits, kept, and fetched again
// when a token names a key that is not in it. While it cannot be fetched, the keys already held go on serving.
import type { Agent as HttpAgent, IncomingMessage } from 'node:http'
import { type Agent, get as getHttps } from 'node:https'
import { backoffMs, http } from '@keycast/service'
import type { CryptoKey, JWK } from 'jose'
import * as errors from 'jose/errors'
import { createLocalJWKSet } from 'jose/jwks/local'
import { fitsJwk, publicAlgorithms, RSA_BITS_MAX, RSA_BITS_MIN } from './algorithms.ts'

/** A thousand RSA keys with their certificates take 2 to 3 MB. */
const BYTES_MAX = 4 * 1_024 ** 2

const KEYS_MAX = 2_000

/** For the whole answer, body included: tokens of the gateway's first minute wait for it. */
const TIMEOUT_MS = 5_000

/** Invented names of keys must not make the gateway ask more often than this. */
const ASK_AGAIN_MS = 30_000

/** With no key held nobody gets in: the first tries follow one another sooner. */
const FIRST_TRIES = { firstMs: 1_000, maxMs: ASK_AGAIN_MS }

/** A key the provider took back is refused after this long at most, while tokens come. */
const REFRESH_MS = 600_000

/** Tokens that wait for keys. Each is 8 KiB at most. */
const WAITING_MAX = 1_000

/** The longest message about a failed try, for it holds a stranger's text. */
const PROBLEM_CHARACTERS_MAX = 200

interface JwksEvents {
  /** The set was fetched, with so many keys of use. */
  ok: (keys: number) => void
  /** It was not: why, in words for an operator; so many keys are still held. */
  failed: (problem: string, keys: number) => void
}

export type NoKey = 'unknown_key' | 'keys_unavailable' | 'busy'

interface Options {
  url: string
  events: JwksEvents
  /** Node's own unless given. */
  agent?: Agent | HttpAgent
  timeoutMs?: number
  bytesMax?: number
  now: () => number
}

export function createJwks({ url, now, events, agent, timeoutMs = TIMEOUT_MS, bytesMax = BYTES_MAX }: Options) {
  let keys = 0
  let pick: ReturnType<typeof createLocalJWKSet> | undefined
  let hadAtMs = Number.NEGATIVE_INFINITY
  let askAgainAtMs = Number.NEGATIVE_INFINITY
  let failures = 0
  let waiting = 0
  /** The fetch under way, if one is. It never rejects. */
  let asking: Promise<void> | undefined
  const stopped = new AbortController()

  /** @returns once the fetch succeeded or failed; at once if it may not be asked for yet */
  function ask(): Promise<void> {
    if (asking) return asking
    if (now() < askAgainAtMs || stopped.signal.aborted) return Promise.resolve()
    asking = fetchSet().finally(() => {
      asking = undefined
    })
    return asking
  }

  async function fetchSet() {
    askAgainAtMs = now() + ASK_AGAIN_MS
    const timedOut = AbortSignal.timeout(timeoutMs)
    try {
      const signal = AbortSignal.any([timedOut, stopped.signal])
      const set = readSet(await fetchText(url, { agent, signal, bytesMax }))
      pick = createLocalJWKSet({ keys: set })
      keys = set.length
      failures = 0
      hadAtMs = now()
      events.ok(keys)
    } catch (error) {
      if (stopped.signal.aborted) return
      failures++
      if (keys === 0) askAgainAtMs = now() + backoffMs(failures, FIRST_TRIES)
      events.failed(timedOut.aborted ? `was not fetched within ${timeoutMs} ms` : problemOf(error), keys)
    }
  }

  /** A token that names no key, where several would do, is not tried with each: that is work at a stranger's will. */
  async function find(algorithm: string, kid: string | undefined): Promise<CryptoKey | undefined> {
    try {
      return await pick?.({ alg: algorithm, kid })
    } catch (error) {
      // A provider that lists a key twice means the same one.
      const isTwice = error instanceof errors.JWKSMultipleMatchingKeys && kid !== undefined
      if (isTwice) for await (const key of error) return key
      return undefined
    }
  }

  return {
    /** Asks for the set, where it may be asked for. To be called at start; nothing fails with it. */
    ask,

    /** The key a token was signed with. */
    async keyFor({
      algorithm,
      kid,
    }: {
      algorithm: string
      kid: string | undefined
    }): Promise<{ key: CryptoKey } | { reason: NoKey }> {
      let key = await find(algorithm, kid)
      if (key) {
        // Not awaited: the key at hand serves while the set is looked at again.
        if (now() - hadAtMs >= REFRESH_MS) ask()
      } else {
        if (waiting >= WAITING_MAX) return { reason: 'busy' }
        waiting++
        await ask()
        waiting--
        key = await find(algorithm, kid)
      }
      if (key) return { key }
      return { reason: keys > 0 ? 'unknown_key' : 'keys_unavailable' }
    },

    /** For metrics. @returns failures in a row */
    status: (): { keys: number; ageMs: number | undefined; failures: number } => ({
      keys,
      ageMs: Number.isFinite(hadAtMs) ? now() - hadAtMs : undefined,
      failures,
    }),

    /** Ends what is under way. */
    stop: () => stopped.abort(),
  }
}

export type Jwks = ReturnType<typeof createJwks>

/** The set could not be fetched or used; the message gives the reason. */
class JwksError extends Error {}

async function fetchText(
  url: string,
  { agent, signal, bytesMax }: { agent: Agent | HttpAgent | undefined; signal: AbortSignal; bytesMax: number },
): Promise<string> {
  // Not `fetch`: it follows redirects and unpacks what is compressed, and a small answer could become a large one.
  const headers = { accept: 'application/jwk-set+json, application/json', 'accept-encoding': 'identity' }
  const get = url.startsWith('https:') ? getHttps : http.get
  const response: IncomingMessage = await new Promise((resolve, reject) => {
    get(url, { agent, signal, headers }, resolve).on('error', reject)
  })
  try {
    if (response.statusCode !== 200) throw new JwksError(`answered with ${response.statusCode}, not 200`)
    const chunks: Buffer[] = []
    let bytes = 0
    for await (const chunk of response) {
      bytes += chunk.length
      if (bytes > bytesMax) throw new JwksError(`is larger than ${bytesMax} bytes`)
      chunks.push(chunk)
    }
    return Buffer.concat(chunks).toString('utf8')
  } finally {
    response.destroy()
  }
}

/**
 * The keys of use in a set: public ones that may check signatures. Others are passed over, for a set may hold keys for
 * other purposes (RFC 7517 section 5).
 *
 * @returns at least one
 * @throws {JwksError}
 */
function readSet(text: string): JWK[] {
  let set
  try {
    set = JSON.parse(text)
  } catch {
    throw new JwksError('is not JSON')
  }
  const keys = set?.keys
  if (!Array.isArray(keys)) throw new JwksError('has no list "keys" (RFC 7517 section 5)')
  if (keys.length > KEYS_MAX) throw new JwksError(`holds ${keys.length} keys: at most ${KEYS_MAX} are read`)
  const usable = keys.flatMap(key => publicPart(key) ?? [])
  // Taken as a fault of the provider's, so that the keys held before go on.
  if (usable.length === 0) throw new JwksError('holds no key of use for checking signatures')
  return usable
}

/**
 * The members of a key that checking signatures needs; its certificates, and a private part published by mistake, are
 * left.
 *
 * @param key not yet checked
 */
function publicPart(key: unknown): JWK | undefined {
  if (typeof key !== 'object' || key === null) return undefined
  const { kty, crv, kid, alg, use, key_ops: operations, n, e, x, y } = key as Record<string, unknown>
  if (!publicAlgorithms.some(algorithm => fitsJwk(algorithm, key))) return undefined
  if (use !== undefined && use !== 'sig') return undefined
  if (Array.isArray(operations) && !operations.includes('verify')) return undefined
  if (alg !== undefined && !publicAlgorithms.some(algorithm => algorithm === alg)) return undefined
  if (kid !== undefined && typeof kid !== 'string') return undefined
  if (kty === 'RSA') {
    const bits = typeof n === 'string' ? Buffer.from(n, 'base64url').length * 8 : 0
    if (bits < RSA_BITS_MIN || bits > RSA_BITS_MAX) return undefined
  }
  return { kty, crv, kid, alg, n, e, x, y } as JWK
}

function problemOf(error: unknown) {
  if (error instanceof JwksError) return error.message
  const { code, message } = error as NodeJS.ErrnoException
  return `cannot be reached: ${[code, message].filter(Boolean).join(', ')}`.slice(0, PROBLEM_CHARACTERS_MAX)
}
