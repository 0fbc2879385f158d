// Reads and resets the counters of the simulated backend over HTTP.

const TIMEOUT_MS = 5_000

/** @typedef {{ requests: Record<string, { total: number, full: number, notModified: number }>, concurrencyMax: number }} ProviderStats */

/** @param {string} origin */
export function createProvider(origin) {
  /** @param {string} path @param {RequestInit} [init] */
  const ask = async (path, init) => {
    const response = await fetch(origin + path, { ...init, signal: AbortSignal.timeout(TIMEOUT_MS) })
    if (!response.ok) throw new Error(`${origin}${path} answered ${response.status}: is it the simulated backend?`)
    return response
  }

  return {
    origin,
    /** @returns {Promise<ProviderStats>} */
    stats: async () => /** @type {ProviderStats} */ (await (await ask('/stats')).json()),
    reset: () => ask('/stats/reset', { method: 'POST' }),
  }
}

/** Requests of every route together. @param {ProviderStats} stats */
export const requestsOf = ({ requests }) => Object.values(requests).reduce((sum, { total }) => sum + total, 0)
