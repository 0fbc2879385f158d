// The command line: each scenario is a command, and `compare` puts two results side by side.
import { fileURLToPath } from 'node:url'
import { Command, Help, InvalidArgumentError, Option } from 'commander'
import { isLoopback } from '../generator/clients.ts'
import { scenarios } from '../scenarios/index.ts'
import { clientsOf, type Options, type Scenario } from '../scenarios/scenario.ts'
import { seeds } from '../seeds/index.ts'
import type { SeedsOptions } from '../seeds/run-seeds.ts'
import { references } from '../system/start.ts'
import { durationText, readDuration, readInteger } from './options.ts'

const REFERENCES = Object.keys(references) as (keyof typeof references)[]
/** Those that nginx passes clients on to: it knows Keycast's path alone. */
const BEHIND_PROXY = ['keycast', ...REFERENCES.filter(kind => references[kind].path === '/ws')]
const results = fileURLToPath(new URL('../results', import.meta.url))

/** Clients per generator process: many machines allow a process 20,000 open files, and it needs some itself. */
const CLIENTS_PER_PROCESS = 18_000

/** The functions that a valid command line calls. */
interface Actions {
  run: (scenario: Scenario, options: Options) => Promise<void>
  compare: (a: string, b: string, options: { html?: string }) => void
  seeds: (options: SeedsOptions) => Promise<void>
}

/** @param adapt called with each command; for tests */
export function createProgram(
  { run, compare, seeds: runSeeds }: Actions,
  adapt: (command: Command) => void = () => {},
) {
  const program = new Command('loadtest')
    .description(
      'Puts load on a Keycast, or on another server with its protocol. Each run writes a folder with result.json and report.html.',
    )
    .configureHelp({ optionDescription: describeOption })
    .showHelpAfterError('(--help lists commands and options)')
    .addHelpText('after', examples)
  adapt(program)

  for (const scenario of scenarios) {
    const command = program.command(scenario.name).description(scenario.about)
    adapt(command)
    scenario.addOptions(command)
    addCommonOptions(command)
    command.action(async options => {
      const problem = problemOf(scenario, options)
      if (problem !== undefined) command.error(`error: ${problem}`)
      options.processes ??= Math.ceil(clientsOf(scenario, options) / CLIENTS_PER_PROCESS)
      await run(scenario, options)
    })
  }

  const command = program.command('compare')
  adapt(command)
  command
    .description('Compare two results: every figure of both, and their ratio.')
    .argument('<a>', 'folder of a run, or its result.json')
    .argument('<b>', 'folder of another run of the same scenario')
    .option('--html <file>', 'also write a page with both runs in each chart')
    .action(compare)

  const seedsCommand = program.command('seeds')
  adapt(seedsCommand)
  addSeedsOptions(
    seedsCommand.description(`Run ${seeds.length} published workloads against Keycast and others.`),
  ).action(runSeeds)
  return program
}

/**
 * A command line of a scenario, as if it had been typed.
 *
 * @throws {CommanderError} if it cannot be run
 */
export async function parseRun(args: string[]): Promise<{ scenario: Scenario; options: Options }> {
  return new Promise((resolve, reject) => {
    const actions = {
      run: async (scenario: Scenario, options: Options) => resolve({ scenario, options }),
      compare() {},
      async seeds() {},
    }
    createProgram(actions, command => command.exitOverride())
      .parseAsync(args, { from: 'user' })
      .catch(reject)
  })
}

function addSeedsOptions(command: Command) {
  const ids = seeds.map(({ id }) => id)
  return command
    .addOption(
      new Option('--size <size>', 'full: as published; medium: a tenth of the time; quick: to see that all is well')
        .choices(['full', 'medium', 'quick'])
        .default('full'),
    )
    .addOption(
      new Option('--only <ids>', `some of the workloads, as in ${ids[0]},${ids.at(-1)}`).argParser(text => {
        const wanted = text.split(',')
        const unknown = wanted.find(id => !ids.includes(id))
        if (unknown !== undefined) throw new InvalidArgumentError(`Give some of ${ids.join(',')}.`)
        return wanted
      }),
    )
    .option('--plan', 'say what would be run, and how long it takes, and end', false)
    .option('--continue <folder>', 'run what an earlier run left, with its size and workloads, and report all of it')
    .addOption(new Option('--output <folder>', 'folder to write results to').default(results, 'loadtest/results'))
    .addHelpText('after', `\n${seeds.map(({ id, title, source }) => `  ${id}  ${title}: ${source}`).join('\n')}`)
}

/** Shows a default as one would type it, and none for a flag or a list that is empty. */
function describeOption(option: Option) {
  const { defaultValue, flags } = option
  const shown = Object.assign(Object.create(Option.prototype), option)
  if (defaultValue === false || (Array.isArray(defaultValue) && defaultValue.length === 0))
    shown.defaultValue = undefined
  else if (flags.endsWith('<duration>') && defaultValue !== undefined) {
    shown.defaultValueDescription = durationText(defaultValue)
  }
  return Help.prototype.optionDescription(shown)
}

const examples = `
Examples:
  npm run loadtest -- capacity --start --every 20ms
  npm run loadtest -- capacity --start --tls --study
  npm run loadtest -- ticker --start --clients 25000
  npm run loadtest -- pingpong --url ws://127.0.0.1:8080/ws
  npm run loadtest -- fanout --start --reference bare --reference naive
  npm run loadtest -- compare loadtest/results/A loadtest/results/B
  npm run loadtest -- seeds --size quick`

function addCommonOptions(command: Command) {
  command
    .optionsGroup('Target:')
    .option(
      '--url <url>',
      'a running gateway, ws: or wss:; repeat it to spread the clients over several',
      collect(readUrl),
      [],
    )
    .addOption(
      new Option('--start [system]', 'start a system on free ports, and stop it afterwards')
        .choices(['keycast', ...REFERENCES])
        .preset('keycast')
        .conflicts('url'),
    )
    .option(
      '--gateways <n>',
      'with --start: number of gateways, or of processes that share the port of a reference (default: one per 18,000 clients)',
      readInteger(1, 64),
    )
    .addOption(
      new Option(
        '--token [file]',
        'each client brings a token of its own, signed with the private key (PEM) or the secret in this file; with --start alone one is made (ES256)',
      ).preset(true),
    )
    .option('--json', 'values as JSON (keycast.v1.json), in place of bytes as the client library takes them', false)
    .option('--tls', 'with --start: put nginx with TLS in front', false)
    .addOption(
      new Option('--reference <system>', 'then run the same against a reference program, and compare; repeatable')
        .choices(REFERENCES)
        .argParser(collect(readChoice(REFERENCES)))
        .default([]),
    )
    .option('--provider <url>', 'with --url: the simulated backend, to read its counters', readHttpUrl)
    .option(
      '--metrics <role=url>',
      "with --url: a service's /metrics page, to read its heap and collections; repeatable",
      collect(readPair(readHttpUrl)),
      [],
    )
    .option(
      '--pid <role=pid>',
      'with --url: a process on this host, to read its CPU time and memory; repeatable',
      collect(readPair(readInteger(1, 2 ** 22))),
      [],
    )
    .option('--remote', 'allow a --url on another host; ask its operator first', false)
    .optionsGroup('Run:')
    .option('--processes <n>', 'generator processes (default: one per 18,000 clients)', readInteger(1, 64))
    .option('--time-max <duration>', 'stop the run after this long', readDuration, 900_000)
    .addOption(new Option('--output <folder>', 'folder to write results to').default(results, 'loadtest/results'))
    .option('--label <text>', 'name of the system in the report')
}

function problemOf(scenario: Scenario, options: Options): string | undefined {
  if (options.start === undefined && options.url.length === 0) {
    return 'no target: give --start, or --url with the address of a gateway'
  }
  for (const option of ['tls', 'gateways'] as const) {
    if (options.start === undefined && options[option]) return `--${option} goes with --start alone`
  }
  if (options.tls && !BEHIND_PROXY.includes(String(options.start)))
    return `--tls goes with ${listOf(BEHIND_PROXY)} alone`
  const withTokens = options.token !== undefined || scenario.needsTokens
  if (options.start === undefined && withTokens && typeof options.token !== 'string') {
    return '--token needs a file with --url: the key or secret whose other half the gateways have'
  }
  const [without] = [options.start, ...options.reference].filter(kind => kind !== undefined && kind !== 'keycast')
  const { references: fitting = ['bare', 'naive', 'cluster'] } = scenario
  const unfit = [options.start, ...options.reference].find(
    kind => kind !== undefined && kind !== 'keycast' && !fitting.includes(kind),
  )
  if (unfit !== undefined) {
    const fit = fitting.length === 0 ? 'it has no reference' : `it has ${listOf(fitting)}`
    return `${scenario.name} does not run against ${unfit}: ${fit}`
  }
  if (without !== undefined && scenario.needsProvider) {
    return `${scenario.name} needs a backend, which ${without} does not have`
  }
  if (without !== undefined && scenario.needsTokens) {
    return `${scenario.name} needs tokens, which ${without} does not check`
  }
  if (options.start !== undefined && (options.provider || options.pid.length > 0 || options.metrics.length > 0)) {
    return '--provider, --metrics and --pid go with --url: of a system that it starts, the load test knows them'
  }
  if (scenario.needsProvider && options.start === undefined && options.provider === undefined) {
    return `${scenario.name} sends requests to the backend itself: give --provider with its address`
  }
  const far = [...options.url, options.provider].filter(url => url !== undefined && !isLoopback(new URL(url).hostname))
  if (far.length > 0 && !options.remote) return `${far[0]} is not on this host: give --remote if its operator agrees`
  return scenario.problem?.(options)
}

const listOf = (words: string[]) => new Intl.ListFormat('en').format(words)

function collect<T>(read: (text: string) => T): (text: string, before: T[]) => T[] {
  return (text, before) => [...before, read(text)]
}

function readUrl(text: string) {
  const url = parseUrl(text)
  if (url === undefined || !['ws:', 'wss:'].includes(url.protocol)) {
    throw new InvalidArgumentError('Give a WebSocket address, as in ws://127.0.0.1:8080/ws.')
  }
  if (url.pathname === '/') url.pathname = '/ws'
  return url.href
}

function readHttpUrl(text: string) {
  const url = parseUrl(text)
  if (url === undefined || !['http:', 'https:'].includes(url.protocol)) {
    throw new InvalidArgumentError('Give an HTTP address, as in http://127.0.0.1:3000.')
  }
  return url.href.replace(/\/$/, '')
}

function parseUrl(text: string) {
  return URL.canParse(text) ? new URL(text) : undefined
}

function readChoice(choices: string[]) {
  return (text: string) => {
    if (!choices.includes(text)) throw new InvalidArgumentError(`Allowed choices are ${choices.join(', ')}.`)
    return text
  }
}

function readPair<T>(read: (text: string) => T): (text: string) => { role: string; value: T } {
  return text => {
    const [, role, value] = /^([a-z-]+)=(.+)$/.exec(text) ?? []
    if (role === undefined) throw new InvalidArgumentError('Give role=value, as in gateway=4711.')
    return { role, value: read(value) }
  }
}
