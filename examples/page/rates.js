// The rate of arrivals, as an average over the last seconds: a figure that follows but does not flicker.

const WINDOW_MS = 5_000

/** @param {() => number} [now] milliseconds */
export function createRates(now = () => performance.now()) {
  /** @type {{ atMs: number, bytes: number, changes: number }[]} */
  const events = []
  const startedAtMs = now()

  /** @param {'bytes' | 'changes'} what */
  const perSecond = what => {
    const nowMs = now()
    while (events.length > 0 && nowMs - events[0].atMs > WINDOW_MS) events.shift()
    const spanMs = Math.min(WINDOW_MS, Math.max(1_000, nowMs - startedAtMs))
    return events.reduce((sum, event) => sum + event[what], 0) / (spanMs / 1_000)
  }

  return {
    /** @param {number} bytes */
    received: bytes => events.push({ atMs: now(), bytes, changes: 0 }),
    changed: () => events.push({ atMs: now(), bytes: 0, changes: 1 }),
    bytesPerSecond: () => perSecond('bytes'),
    changesPerSecond: () => perSecond('changes'),
  }
}
