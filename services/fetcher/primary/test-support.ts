// For tests: a primary on a clock that the test turns, with a backend and workers that answer when the test says so.
import { checkInvariants } from './check-invariants.fixture.ts'
import { createPrimary } from './primary.ts'
import { createTimerWheel, TICK_MS } from './timing/timer-wheel.ts'

/**
 * @typedef {import('@keycast/backbone').Answer} Answer
 * @typedef {import('@keycast/backbone').Held} Held
 * @typedef {import('@keycast/service').Namespace} Namespace
 * @typedef {import('../work/messages.ts').Result} Result
 * @typedef {import('./fetching/fetches.ts').Fetch} Fetch
 * @typedef {ReturnType<typeof setup>} Setup
 */

/** A primary with more keys than this is checked after every second, third, … call. */
const KEYS_CHECKED_ALWAYS = 30

/** @param {string} name @param {Partial<Namespace>} own @returns {Namespace} */
const namespaceOf = (name, own) => ({
  name,
  source: 'http',
  urlFor: id => `http://backend/${name}/${id}`,
  origin: 'http://backend',
  headers: { authorization: 'secret' },
  maxAgeMs: 1_000,
  refreshMs: 1_000,
  timeoutMs: 2_000,
  bytesMax: 1_000_000,
  ...own,
})

/**
 * @param {object} [options]
 * @param {Record<string, Partial<Namespace>>} [options.namespaces]
 * @param {number} [options.inFlightMax]
 * @param {number} [options.cacheBytesMax]
 * @param {number} [options.credit] leases the workers take
 * @param {() => number} [options.random]
 * @param {Pick<import('@keycast/service').Containment, 'guard'>} [options.containment]
 * @param {number} [options.markDueMs] the time it takes to note that a link is due something
 */
export function setup({
  namespaces = { doc: {} },
  inFlightMax = 256,
  cacheBytesMax = 2 ** 30,
  credit = Number.POSITIVE_INFINITY,
  random = () => 0.5,
  containment,
  markDueMs = 0,
} = {}) {
  let at = 1_000_000
  const now = () => at
  let turn = () => {}
  const wheel = createTimerWheel({
    now,
    every: (_, tick) => {
      turn = tick
      return () => {}
    },
  })
  const byName = new Map(Object.entries(namespaces).map(([name, own]) => [name, namespaceOf(name, own)]))
  /**
   * Leases not yet answered.
   *
   * @type {{ fetch: Fetch, message: Parameters<import('./fetching/fetches.ts').Pool['lease']>[1] }[]}
   */
  const leased = []
  /** The times of each key's leases. @type {Map<string, number[]>} */
  const asked = new Map()
  /** The keys of which each link is due the latest state. @type {Map<string, Set<string>>} */
  const due = new Map()
  /** @type {Record<string, number>} */
  const met = { memory: 0, plan: 0, coalesced: 0, fetched: 0 }
  /** The code of each want that was refused or ended. @type {string[]} */
  const refused = []
  /** Each change's wait for a link to take it, in milliseconds. @type {number[]} */
  const relayed = []
  /** The reasons why users' own values were dropped. @type {string[]} */
  const ownEnded = []

  const primary = createPrimary({
    namespaces: { get: name => byName.get(name), names: [...byName.keys()] },
    pool: {
      hasCredit: () => leased.length < credit,
      lease(fetch, message) {
        leased.push({ fetch, message })
        asked.set(message.key, [...(asked.get(message.key) ?? []), at])
      },
    },
    markDue(link, key) {
      at += markDueMs
      const keys = due.get(link) ?? new Set()
      due.set(link, keys.add(key))
    },
    wheel,
    metrics: {
      wanted: how => {
        met[how]++
      },
      refused: code => refused.push(code),
      started() {},
      ended() {},
      reissued() {},
      answered() {},
      relayed: tookMs => relayed.push(tookMs),
      ownEnded: why => ownEnded.push(why),
    },
    settings: { inFlightMax, cacheBytesMax },
    containment,
    now,
    wallNow: now,
    random,
  })
  const events = checked(primary.hubEvents)
  const { ended, lost, startAll } = checked(primary.fetches)

  /**
   * The same functions, each of which must leave the primary as it ought to be.
   *
   * @template {Record<string, any>} T
   * @param {T} functions
   * @returns {T}
   */
  function checked(functions) {
    const wrapped = Object.entries(functions).map(([name, run]) => [
      name,
      (/** @type {any[]} */ ...values) => {
        const returned = run(...values)
        check()
        return returned
      },
    ])
    return Object.fromEntries(wrapped)
  }

  let checks = 0
  /** With many keys not after each call: a check looks at all of them. */
  function check() {
    const { keys } = primary.table.stats()
    if (++checks % Math.ceil((keys + 1) / KEYS_CHECKED_ALWAYS) === 0) checkInvariants(primary)
  }

  /** @param {string} key @returns {Fetch} the oldest lease of the key, which is over now */
  function end(key) {
    const index = leased.findIndex(({ message }) => message.key === key)
    if (index === -1) throw new Error(`${key} is not leased`)
    return leased.splice(index, 1)[0].fetch
  }

  const setup = {
    ...events,
    primary,
    now,
    asked: (/** @type {string} */ key) => asked.get(key)?.length ?? 0,
    askedAt: (/** @type {string} */ key) => asked.get(key) ?? [],
    met,
    refused,
    /** How many keys are counted as kept fresh. */
    kept: () => [...primary.origins.values()].reduce((sum, { keptKeys }) => sum + keptKeys, 0),
    relayed,
    ownEnded,
    /** Keys under lease, in order. */
    leased: () => leased.map(({ message }) => message.key),
    /** @param {string} key */
    lease: key => leased.find(({ message }) => message.key === key),
    /** @param {string} link @param {string} key @param {Held} [held] @param {import('@keycast/backbone').Credentials} [credentials] */
    watch: (link, key, held, credentials) => events.onWatch(link, { key, held, credentials }),
    /** @param {string} link @param {string} key @param {Held} [held] @param {import('@keycast/backbone').Credentials} [credentials] */
    get: (link, key, held, credentials) => events.onGet(link, { key, held, credentials }),
    cancelGet: events.onCancelGet,

    /** Ends the key's lease. @param {string} key @param {Result} result @param {Buffer} [body] @param {Buffer} [delta] */
    answer: (key, result, body, delta) => ended(end(key), result, body, delta),
    /** @param {string} key @param {string} version @param {Partial<Result> & { body?: Buffer, delta?: Buffer }} [more] */
    value(key, version, { body = Buffer.from(version), delta, ...more } = {}) {
      const content = { kind: 'value', version, contentType: 'application/json', format: 'json' }
      const result = /** @type {Result} */ ({ ...content, status: 200, store: true, ...more })
      setup.answer(key, result, body, delta)
    },
    /** @param {string} key @param {object} [more] */
    current: (key, more) => setup.answer(key, { kind: 'current', status: 304, store: true, ...more }),
    /** @param {string} key @param {import('@keycast/protocol').ErrorCode} code @param {object} [more] */
    fail: (key, code, more) => setup.answer(key, { kind: 'failed', code, message: code, ...more }),
    /** The worker that has the key's lease dies. @param {string} key */
    lose(key) {
      lost(end(key))
      startAll()
    },

    /** The answers that a link with credit is sent now. @param {string} link @returns {Answer[]} */
    take(link) {
      const answers = []
      const keys = due.get(link) ?? new Set()
      for (const key of keys) {
        keys.delete(key)
        const answer = events.answerFor(link, key)
        if (answer) answers.push(answer)
      }
      return answers
    },
    /** The same in short. @param {string} link */
    sent: link => setup.take(link).map(short),

    /** @param {number} ms @param {() => void} [each] after each tick */
    pass(ms, each = () => {}) {
      for (const until = at + ms; at < until; ) {
        at = Math.min(until, at + TICK_MS)
        turn()
        check()
        each()
      }
    },
    /** Time passes, and nothing here runs. @param {number} ms */
    freeze(ms) {
      at += ms
      turn()
      check()
    },
  }
  return setup
}

/** @param {Answer} answer */
export function short(answer) {
  return answer.type === 'failed' ? answer.code : `${answer.type} ${answer.version}`
}

/** @param {number} count */
export const keysOf = count => Array.from({ length: count }, (_, id) => `doc:${id}`)

/** A primary with watched keys of one backend that is well. @param {string[]} keys @param {Parameters<typeof setup>[0]} [options] */
export function watched(keys, options) {
  const primary = setup(options)
  for (const key of keys) {
    primary.watch('a', key)
    primary.value(key, 'v1')
  }
  primary.take('a')
  return primary
}

/** Answers all that is leased. @param {Setup} primary @param {(key: string) => void} answer */
export const answering =
  ({ leased }, answer) =>
  () => {
    for (const key of leased()) answer(key)
  }
