#!/usr/bin/env node
import { createProgram, parseRun } from './command-line/cli.ts'
import { createProgress } from './command-line/progress.ts'
import { GeneratorError } from './generator/pool.ts'
import { CompareError, compareFolders } from './report/compare.ts'
import { summaryOf } from './report/summary.ts'
import { run } from './run/run.ts'
// npm run loadtest: reads the command line, runs the scenario that it names and prints the result.
import type { Options, Scenario } from './scenarios/scenario.ts'
import { runSeeds } from './seeds/run-seeds.ts'
import { SystemError } from './system/processes.ts'

const interruption = new AbortController()
const interrupted = interruption.signal

process.on('SIGINT', () => {
  // Once: end in order, with a report. Twice: just end.
  if (interrupted.aborted) process.exit(130)
  console.error('\nending; Ctrl-C again to end at once, without a report')
  interruption.abort()
})
process.on('SIGTERM', () => interruption.abort())

/** @param rate the count shown as deliveries a second */
const progressOf = (rate: string) => createProgress({ stream: process.stderr, rate })

async function runScenario(scenario: Scenario, options: Options) {
  const progress = progressOf(scenario.rates[0].count)
  const report = async (settings: Options) => {
    const { result, folder } = await run(scenario, settings, { interrupted, progress })
    console.log(summaryOf(result, folder))
    if (!result.addsUp) process.exitCode = 1
    return folder
  }

  const first = await report(options)
  for (const reference of options.reference) {
    if (interrupted.aborted) return
    const { gateways, provider, ...same } = options
    const none = { url: [], pid: [], metrics: [], tls: false, label: undefined }
    const second = await report({ ...same, ...none, start: reference })
    console.log(compareFolders(first, second))
  }
}

try {
  await createProgram({
    run: runScenario,
    compare: (a, b, options) => console.log(compareFolders(a, b, options)),
    async seeds(options) {
      const say = (text: string) => console.error(text)
      const isSound = await runSeeds(options, { interrupted, say, createProgress: progressOf, parse: parseRun })
      if (!isSound) process.exitCode = 1
    },
  }).parseAsync()
} catch (error) {
  if (!(error instanceof SystemError || error instanceof CompareError || error instanceof GeneratorError)) throw error
  console.error(`loadtest: ${error.message}`)
  process.exitCode = 1
}
