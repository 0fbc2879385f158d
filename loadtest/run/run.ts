// One run of one scenario against one system: starts it, runs the scenario, writes the result.
import type { Progress } from '../command-line/progress.ts'
import { dialectOf, dialects } from '../generator/dialects/index.ts'
import { summarize } from '../generator/histogram.ts'
import { type Pool, startPool } from '../generator/pool.ts'
import type { Context, Options, Scenario, SeriesSecond } from '../scenarios/scenario.ts'
import type { System } from '../system/start.ts'
import { openTarget } from '../system/target.ts'
import { createWatcher } from '../system/watcher.ts'
import { describeEnvironment } from './environment.ts'
import { buildResult, type Result, writeResult } from './result.ts'

const LOOK_MS = 25

interface Terminal {
  interrupted: AbortSignal
  progress: Progress
}

export async function run(
  scenario: Scenario,
  options: Options,
  terminal: Terminal,
): Promise<{ folder: string; result: Result }> {
  const startedAt = new Date()
  const result = await measure(scenario, options, terminal, startedAt)
  return { folder: writeResult(result, { output: options.output, startedAt }), result }
}

/** A run whose result is not written. */
export async function measure(
  scenario: Scenario,
  options: Options,
  { interrupted, progress }: Terminal,
  startedAt: Date = new Date(),
): Promise<Result> {
  progress.say(`${scenario.name}: ${options.start ? `starting ${options.start}` : options.url.join(', ')}`)
  const target = await openTarget(scenario, options)
  const pools: Pool[] = []
  try {
    const context = createContext({ options, target, interrupted, progress, pools })
    const outcome = await scenario.run(context, options)
    await context.sampled()
    const unreported = pools.reduce((sum, pool) => sum + pool.unreported(), 0)
    if (unreported > 0) {
      const text = `${unreported} processes of the generator did not report their end: what they did last is missing`
      outcome.sums.push({ text, holds: false })
    }
    return buildResult({
      scenario,
      options,
      target,
      environment: describeEnvironment({ tls: target.urls.some(url => url.startsWith('wss:')) }),
      startedAt,
      endedBy: context.ended() ?? 'done',
      died: context.died(),
      series: context.series,
      outcome,
    })
  } finally {
    progress.done()
    for (const pool of pools) pool.kill()
    await target.stop()
  }
}

function createContext({
  options,
  target,
  interrupted,
  progress,
  pools,
}: {
  options: Options
  target: System
  interrupted: AbortSignal
  progress: Progress
  pools: Pool[]
}): Context & { died: () => string | undefined; sampled: () => Promise<unknown> } {
  const watcher = createWatcher(target.watched)
  const startedMs = performance.now()
  const series: SeriesSecond[] = []
  let phase = ''
  let died: string | undefined
  /** One sample at a time: a system that answers its metrics slowly must not make samples overlap. */
  let sampling = Promise.resolve()
  let failure: Error | undefined
  target.died.then(what => {
    died = what
  })

  const ended = () => {
    // A generator that died measures nothing any more: there is no report to end with.
    if (failure !== undefined) throw failure
    if (interrupted.aborted) return 'interrupted'
    if (died !== undefined) return 'died'
    return performance.now() - startedMs > options.timeMax ? 'time' : undefined
  }
  const until = async (condition: () => boolean, msMax: number) => {
    const giveUpMs = performance.now() + msMax
    while (!condition()) {
      if (ended() !== undefined || performance.now() > giveUpMs) return false
      await new Promise(resolve => setTimeout(resolve, LOOK_MS))
    }
    return true
  }

  return {
    target,
    watcher,
    series,
    until,
    ended,
    died: () => died,
    sampled: () => sampling,
    say: progress.say,
    phase(name) {
      phase = name
    },
    async wait(ms) {
      await until(() => false, ms)
      return ended() === undefined
    },

    async startPool({ onSecond, aside = false, settings, ...load }) {
      sampling = sampling.then(async () => void (await watcher.sample()))
      const dialect = dialectOf(target.kind, options.json)
      const pool = await startPool({
        urls: target.urls,
        processes: options.processes,
        signing: target.signing,
        subprotocol: dialects[dialect].subprotocol,
        ...load,
        settings: { dialect, ...settings },
        onSecond(second) {
          if (aside) return
          const inPhase = phase
          sampling = sampling.then(async () => {
            const sample = await watcher.sample()
            const { histograms, open, connecting, counts, generator } = second
            const latency = histograms.latency?.totalCount > 0 ? summarize(histograms.latency) : undefined
            const at = Math.round((performance.now() - startedMs) / 100) / 10
            const entry = { at, phase: inPhase, open, connecting, counts, latency, generator, ...sample }
            series.push(entry)
            progress.show(entry)
            onSecond?.(entry, histograms)
          })
        },
      })
      pools.push(pool)
      pool.failure.catch(error => {
        failure = error
      })
      return {
        ...pool,
        // With all its seconds in the series: a busy service answers a look late.
        async finish() {
          const outcomes = await pool.finish()
          await sampling
          return outcomes
        },
      }
    },
  }
}
