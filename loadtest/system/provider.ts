// Reads and resets the counters of the simulated backend over HTTP.

const TIMEOUT_MS = 5_000

interface ProviderStats {
  requests: Record<string, { total: number; full: number; notModified: number }>
  concurrencyMax: number
}

export function createProvider(origin: string) {
  const ask = async (path: string, init?: RequestInit) => {
    const response = await fetch(origin + path, { ...init, signal: AbortSignal.timeout(TIMEOUT_MS) })
    if (!response.ok) throw new Error(`${origin}${path} answered ${response.status}: is it the simulated backend?`)
    return response
  }

  return {
    origin,
    stats: async (): Promise<ProviderStats> => (await (await ask('/stats')).json()) as ProviderStats,
    reset: () => ask('/stats/reset', { method: 'POST' }),
  }
}

/** Requests of every route together. */
export const requestsOf = ({ requests }: ProviderStats) =>
  Object.values(requests).reduce((sum, { total }) => sum + total, 0)
