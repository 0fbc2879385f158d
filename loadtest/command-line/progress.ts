// Progress of a run: one line that changes on a terminal, a line every ten seconds in a log.
import type { SeriesSecond } from '../scenarios/scenario.ts'

export type Progress = ReturnType<typeof createProgress>

/** In a log a line each second would bury what matters. */
const LOG_EVERY_SECONDS = 10

/** @param options `rate`: the count shown as deliveries a second */
export function createProgress({
  stream,
  rate,
}: {
  stream: { write: (text: string) => unknown; isTTY?: boolean; columns?: number }
  rate: string
}) {
  let shown = false
  let seconds = 0
  const clear = () => {
    if (shown) stream.write('\r\x1b[K')
    shown = false
  }

  return {
    say(text: string) {
      clear()
      stream.write(`${text}\n`)
    },

    show(second: SeriesSecond) {
      const line = describe(second, rate)
      seconds += 1
      if (stream.isTTY) {
        stream.write(`\r${line.slice(0, (stream.columns ?? 120) - 1)}\x1b[K`)
        shown = true
      } else if (seconds % LOG_EVERY_SECONDS === 1) {
        stream.write(`${line}\n`)
      }
    },

    done: clear,
  }
}

function describe({ at, phase, open, counts, latency, generator, services, seconds }: SeriesSecond, count: string) {
  const perCore = services
    .filter(({ cpuMs }) => cpuMs !== undefined)
    .map(({ name, cpuMs = 0 }) => `${name} ${Math.round(cpuMs / seconds / 10)}%`)
  return [
    `${at.toFixed(0)} s ${phase}`.trim(),
    `${open} clients`,
    `${counts[count] ?? 0} ${count}/s`,
    `${((counts.bytesIn ?? 0) / 1e6).toFixed(1)} MB/s`,
    latency === undefined ? '' : `p50 ${latency.p50Ms.toFixed(1)} p99 ${latency.p99Ms.toFixed(1)} ms`,
    ...perCore,
    `generator ${Math.round(generator.busiest * 100)}%`,
  ]
    .filter(Boolean)
    .join('  ')
}
