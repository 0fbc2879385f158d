// Keys to be fetched now: those named at about the same time leave in one request.

/** As many keys, and as many users, as `POST /v1/refresh` takes. */
const KEYS_MAX = 5_000
const USERS_MAX = 1_000

/** A backend names all keys of one change within this time. */
const COLLECT_MS = 30

/**
 * A call of `refresh`, or a part of it.
 *
 * @typedef {{ keys: string[], resolve: () => void, reject: (error: unknown) => void }} Refresh
 */

/**
 * @param {object} deps
 * @param {import('./gateway.js').Gateway} deps.gateway
 * @param {(promise: Promise<unknown>) => void} deps.follow is given each request
 * @param {Pick<import('../keycast/environment.js').Environment, 'setTimeout' | 'clearTimeout'>} deps.environment
 */
export function createRefreshes({ gateway, follow, environment: { setTimeout, clearTimeout } }) {
  /** Those for the same users under the same name. @type {Map<string, { users?: string[], calls: Refresh[], keys: Set<string> }>} */
  const collected = new Map()
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer

  /** @param {string[]} keys of one request at most @param {string[] | undefined} users @returns {Promise<void>} */
  function collect(keys, users) {
    const name = JSON.stringify(users)
    let batch = collected.get(name)
    if (batch && batch.keys.size + keys.length > KEYS_MAX) {
      send(name)
      batch = undefined
    }
    if (!batch) {
      batch = { users, calls: [], keys: new Set() }
      collected.set(name, batch)
    }
    for (const key of keys) batch.keys.add(key)
    timer ??= setTimeout(sendAll, COLLECT_MS)
    const { calls } = batch
    return new Promise((resolve, reject) => calls.push({ keys, resolve, reject }))
  }

  /** @param {string} name of what was collected for the same users */
  function send(name) {
    const batch = collected.get(name)
    collected.delete(name)
    if (batch) follow(refreshAll(batch.calls, batch.users))
  }

  function sendAll() {
    clearTimeout(timer)
    timer = undefined
    for (const name of [...collected.keys()]) send(name)
  }

  /**
   * A gateway refuses all keys of a request for one that is wrong: then each half of the calls has a request of its own,
   * so that the wrong one fails alone.
   *
   * @param {Refresh[]} calls @param {string[] | undefined} users @returns {Promise<void>}
   */
  async function refreshAll(calls, users) {
    const keys = [...new Set(calls.flatMap(({ keys }) => keys))]
    try {
      await gateway.post('/v1/refresh', { keys, users })
      for (const { resolve } of calls) resolve()
    } catch (error) {
      if (/** @type {import('./gateway.js').CallError} */ (error).status === 400 && calls.length > 1) {
        const half = calls.length >> 1
        await Promise.all([refreshAll(calls.slice(0, half), users), refreshAll(calls.slice(half), users)])
      } else for (const { reject } of calls) reject(error)
    }
  }

  return {
    /**
     * @param {string | Iterable<string>} keys
     * @param {Iterable<string>} [users]
     */
    async ask(keys, users) {
      const parts = partsOf(typeof keys === 'string' ? [keys] : keys, KEYS_MAX)
      const groups = users ? partsOf([...users].sort(), USERS_MAX) : [undefined]
      await Promise.all(groups.flatMap(group => parts.map(part => collect(part, group))))
    },
    sendAll,
  }
}

/** @param {Iterable<string>} names @param {number} max @returns {string[][]} each name once, so many in a part */
function partsOf(names, max) {
  const all = [...new Set(names)]
  return Array.from({ length: Math.ceil(all.length / max) }, (_, part) => all.slice(part * max, (part + 1) * max))
}
