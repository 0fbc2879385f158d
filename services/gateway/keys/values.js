// What the gateway holds and asks for: one entry per key, one fetch per key whoever and how many wait for it.
import { errorCodes, keyProblem, namespaceOf } from '@keycast/protocol'
import { applyAnswer } from './apply-answer.js'
import { createEntry, isWanted, NOBODY } from './entry.js'

/**
 * @typedef {import('@keycast/backbone').Answer} Answer
 * @typedef {import('@keycast/backbone').Backbone} Backbone
 * @typedef {import('@keycast/backbone').Held} Held
 * @typedef {import('@keycast/protocol').ErrorCode} ErrorCode
 * @typedef {import('@keycast/service').Namespaces} Namespaces
 * @typedef {import('./cache.js').Cache} Cache
 * @typedef {import('./calendar.js').Deadlines} Deadlines
 * @typedef {import('./entry.js').Entry} Entry
 * @typedef {import('./entry.js').Outcome} Outcome
 * @typedef {import('./entry.js').Problem} Problem
 *
 * @typedef {ReturnType<typeof createValues>} Values
 */

/**
 * How long past a namespace's timeout an answer is waited for: the fetcher's own word about a backend that does not
 * answer (timeout, and 1 s more for a silent worker's lease) shall arrive first.
 */
export const ANSWER_GRACE_MS = 2_000

/** When to ask again after the fetcher itself gave no answer: the backbone notices a dead node in 3 s. */
const FETCHER_RETRY_MS = 1_000

/**
 * @param {object} deps
 * @param {Namespaces} deps.namespaces
 * @param {Pick<Backbone, 'fetch' | 'cancel' | 'ownerOf' | 'nodesAlive'>} deps.backbone
 * @param {Cache} deps.cache
 * @param {Deadlines} deps.deadlines
 * @param {(entry: Entry, change: import('./apply-answer.js').Change) => void} deps.onChange the entry holds what the answer
 *   said, and whoever waited has it
 * @param {() => void} deps.onCoalesced somebody joined a fetch that was under way
 * @param {() => number} deps.now monotonic, in milliseconds
 */
export function createValues({ namespaces, backbone, cache, deadlines, onChange, onCoalesced, now }) {
  /**
   * The entry of a key, made where there is none. It must be wanted (subscribed to or waited for) before
   * {@link Cache.settle} sees it, or it is gone again.
   *
   * @param {string} key must not be refused, see {@link refusal}
   * @returns {Entry}
   */
  function open(key) {
    const held = cache.get(key)
    if (held) return held
    const namespace = namespaces.get(namespaceOf(key))
    if (!namespace) throw new Error(`opened ${key}, which is in no namespace`)
    const entry = createEntry(key, namespace)
    cache.add(entry)
    return entry
  }

  /**
   * Why a key will never have a value here, or `undefined` where it may: `bad_key` or `unknown_namespace`.
   *
   * @param {string} key anything a client sent
   * @returns {Problem | undefined}
   */
  function refusal(key) {
    if (cache.get(key)) return undefined
    const why = keyProblem(key)
    if (why) return problemOf('bad_key', why)
    if (!namespaces.get(namespaceOf(key))) return problemOf('unknown_namespace', errorCodes.unknown_namespace)
    return undefined
  }

  /**
   * What a key can be answered with from memory: its value, or that the backend has nothing under it, no older than
   * its `maxAgeMs`. `undefined` where the fetcher has to be asked: then {@link want}.
   *
   * @param {string} key
   * @param {number} [asOfMs] when it must not have been too old: now, unless the question was asked earlier
   * @returns {Outcome | undefined}
   */
  function fresh(key, asOfMs = now()) {
    const entry = cache.get(key)
    if (!entry) return undefined
    if (asOfMs - entry.askedAtMs > entry.maxAgeMs) return undefined
    if (entry.value) return outcomeOf(entry)
    return entry.problem?.code === 'not_found' ? { problem: entry.problem } : undefined
  }

  /**
   * Asks the fetcher for a key and waits for the answer, together with everybody else who waits for the same key.
   * Never rejects: what went wrong is a `problem`, also `fetcher_timeout` or `fetcher_unavailable` after `deadlineMs`, and
   * `capacity` at once where those who wait and watch take all the room there is.
   *
   * @param {string} key
   * @param {{ deadlineMs?: number }} [options] how long to wait; unless told, the namespace's timeout and
   *   {@link ANSWER_GRACE_MS}
   * @returns {Promise<Outcome>}
   */
  function want(key, { deadlineMs } = {}) {
    const problem = refusal(key)
    if (problem) return Promise.resolve({ problem })
    if (!cache.peek(key) && cache.isFull()) return Promise.resolve({ problem: noRoom() })
    const entry = open(key)
    const deadlineAtMs = now() + (deadlineMs ?? entry.namespace.timeoutMs + ANSWER_GRACE_MS)
    return new Promise(settle => {
      if (entry.waiters.length === 0) {
        entry.waiters = [{ settle, deadlineAtMs }]
        cache.settle(entry)
        backbone.fetch(key)
      } else {
        entry.waiters.push({ settle, deadlineAtMs })
        onCoalesced()
      }
      deadlines.schedule(entry, deadlineAtMs)
    })
  }

  /**
   * Tells those who have waited for a key past their deadline; asks the fetcher no longer once nobody waits.
   *
   * @param {Entry} entry
   */
  function expire(entry) {
    if (entry.waiters.length === 0) return
    const nowMs = now()
    const waiting = entry.waiters.filter(waiter => waiter.deadlineAtMs > nowMs)
    if (waiting.length < entry.waiters.length) {
      const problem = silence()
      for (const waiter of entry.waiters) if (waiter.deadlineAtMs <= nowMs) waiter.settle({ problem })
      entry.waiters = waiting.length > 0 ? waiting : NOBODY
      if (waiting.length === 0) {
        backbone.cancel(entry.key)
        cache.settle(entry)
      }
    }
    for (const waiter of waiting) deadlines.schedule(entry, waiter.deadlineAtMs)
  }

  /**
   * What the fetcher's silence means now.
   *
   * @returns {Problem}
   */
  function silence() {
    const code = backbone.nodesAlive() === 0 ? 'fetcher_unavailable' : 'fetcher_timeout'
    return { ...problemOf(code, errorCodes[code]), retryAfterMs: FETCHER_RETRY_MS, local: true }
  }

  /**
   * What this gateway holds of a key, for the backbone to say.
   *
   * @param {string} key
   * @returns {Held | undefined}
   */
  function held(key) {
    const entry = cache.get(key)
    if (!entry?.value) return undefined
    return { version: entry.value.version, ageMs: Math.max(0, now() - entry.askedAtMs) }
  }

  /**
   * Takes what the backbone brings: updates the entry, answers who waits, tells who subscribed.
   *
   * @param {Answer} answer
   * @param {boolean} isFetched whether it answers the key's `fetch`
   */
  function onAnswer(answer, isFetched) {
    const entry = cache.get(answer.key)
    // Nobody has wanted the key since, and nothing of it is held.
    if (!entry) return
    const isFirst = !entry.value
    let change = applyAnswer(entry, answer, now())
    if (!change) {
      // It speaks of bytes let go of since the request: asked again, now without a version, the bytes come.
      if (isWanted(entry)) backbone.fetch(entry.key)
      return
    }
    entry.answered = entry.answered || entry.subscriptions.length > 0
    // What a watch is told may be older than those accept who asked after it: their own answer follows.
    if (entry.waiters.length > 0) settleWaiters(entry, isFetched ? lastOutcome(entry) : fresh(entry.key))
    // Whoever waited has it. A newer value of what is held is taken always: a viewer is not sent away for an update.
    if (isFirst && change === 'value' && isWanted(entry) && !cache.fits(entry)) {
      entry.value = undefined
      entry.problem = noRoom()
      change = 'refused'
    }
    onChange(entry, change)
    cache.settle(entry)
  }

  /** Why a key cannot be held now. It ends a subscription: those who came first keep their room. @returns {Problem} */
  function noRoom() {
    return problemOf('capacity', errorCodes.capacity)
  }

  /** @param {Entry} entry @param {Outcome | undefined} outcome */
  function settleWaiters(entry, outcome) {
    if (!outcome) return
    for (const waiter of entry.waiters) waiter.settle(outcome)
    entry.waiters = NOBODY
  }

  /** @param {Entry} entry @returns {Outcome} */
  const lastOutcome = entry => (entry.problem ? { problem: entry.problem } : outcomeOf(entry))

  /**
   * @param {Entry} entry whose value is held
   * @returns {Outcome}
   */
  function outcomeOf(entry) {
    const value = /** @type {import('./value.js').Value} */ (entry.value)
    return { value, ageMs: Math.max(0, now() - entry.askedAtMs), maxAgeMs: entry.maxAgeMs, store: entry.store }
  }

  /** @param {ErrorCode} code @param {string} message @returns {Problem} one that does not heal */
  const problemOf = (code, message) => ({ code, message, retryAfterMs: undefined, atMs: now(), local: false })

  /**
   * Everything known of a key, for an operator who asks why it is stale. All of it is this gateway's view.
   *
   * @param {string} key
   */
  function describe(key) {
    const entry = cache.peek(key)
    const nowMs = now()
    return {
      key,
      owner: backbone.ownerOf(key),
      watched: entry ? entry.subscriptions.length > 0 : false,
      subscribers: entry?.subscriptions.length ?? 0,
      waiting: entry?.waiters.length ?? 0,
      stale: entry?.stale ?? false,
      value: entry?.value && {
        version: entry.value.version,
        contentType: entry.value.contentType,
        bytes: entry.value.body.length,
        ageMs: Math.round(nowMs - entry.askedAtMs),
        maxAgeMs: entry.maxAgeMs,
        store: entry.store,
      },
      problem: entry?.problem && {
        code: entry.problem.code,
        message: entry.problem.message,
        retryAfterMs: entry.problem.retryAfterMs,
        agoMs: Math.round(nowMs - entry.problem.atMs),
      },
    }
  }

  return { open, refusal, fresh, want, expire, silence, noRoom, held, onAnswer, describe }
}
