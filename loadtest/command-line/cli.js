// The command line: each scenario is a command, and `compare` holds two results against each other.
import { fileURLToPath } from 'node:url'
import { Command, Help, InvalidArgumentError, Option } from 'commander'
import { isLoopback } from '../generator/clients.js'
import { scenarios } from '../scenarios/index.js'
import { durationText, readDuration, readInteger } from './options.js'

const results = fileURLToPath(new URL('../results', import.meta.url))

/** Clients one process holds: it may open 20,000 files on many machines, and needs some for itself. */
const CLIENTS_PER_PROCESS = 18_000

/**
 * @typedef {object} Actions what a command line that is in order leads to
 * @property {(scenario: import('../scenarios/scenario.js').Scenario, options: any) => Promise<void>} run
 * @property {(a: string, b: string, options: { html?: string }) => void} compare
 */

/**
 * @param {Actions} actions
 * @param {(command: Command) => void} [adapt] each command, for a test
 */
export function createProgram({ run, compare }, adapt = () => {}) {
  const program = new Command('loadtest')
    .description(
      'Loads a Keycast, or another server that speaks its protocol, and reports what it took: a folder with result.json and report.html.',
    )
    .configureHelp({ optionDescription: describeOption })
    .showHelpAfterError('(--help shows what there is)')
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
      options.processes ??= Math.ceil(scenario.clients(options) / CLIENTS_PER_PROCESS)
      await run(scenario, options)
    })
  }

  const command = program.command('compare')
  adapt(command)
  command
    .description('Holds two results against each other: every figure of both, and their ratio.')
    .argument('<a>', 'a folder a run wrote, or its result.json')
    .argument('<b>', 'another')
    .option('--html <file>', 'write the comparison with both runs in each chart, too')
    .action(compare)
  return program
}

/**
 * A default as it would be given; none where it is that nothing was given.
 *
 * @param {Option} option
 */
function describeOption(option) {
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
  npm run loadtest -- compare loadtest/results/A loadtest/results/B`

/** @param {Command} command */
function addCommonOptions(command) {
  command
    .optionsGroup('What is loaded:')
    .option('--url <url>', 'a gateway that is up, ws: or wss:; several are loaded evenly', collect(readUrl), [])
    .addOption(
      new Option('--start [system]', 'start a system of its own on free ports, and end it afterwards')
        .choices(['keycast', 'bare', 'naive'])
        .preset('keycast')
        .conflicts('url'),
    )
    .option('--gateways <n>', 'with --start: gateways, one for each 18,000 clients unless given', readInteger(1, 64))
    .option('--tls', 'with --start: through nginx with TLS', false)
    .addOption(
      new Option(
        '--reference <system>',
        'afterwards the same against a reference program, and a comparison; repeatable',
      )
        .choices(['bare', 'naive'])
        .argParser(collect(readChoice(['bare', 'naive'])))
        .default([]),
    )
    .option('--provider <url>', 'with --url: the simulated backend behind it, for its counters', readHttpUrl)
    .option('--metrics <role=url>', "with --url: a service's /metrics; repeatable", collect(readPair(readHttpUrl)), [])
    .option(
      '--pid <role=pid>',
      'with --url: a process on this host; repeatable',
      collect(readPair(readInteger(1, 2 ** 22))),
      [],
    )
    .option('--remote', 'allow a --url that is not on this host; ask whoever runs it first', false)
    .optionsGroup('How:')
    .option('--processes <n>', 'generator processes, one for each 18,000 clients unless given', readInteger(1, 64))
    .option('--time-max <duration>', 'end after this long, whatever happens', readDuration, 900_000)
    .addOption(
      new Option('--output <folder>', 'where the folder of a run is made').default(results, 'loadtest/results'),
    )
    .option('--label <text>', 'what the report calls the system')
}

/** @param {import('../scenarios/scenario.js').Scenario} scenario @param {any} options @returns {string | undefined} */
function problemOf(scenario, options) {
  if (options.start === undefined && options.url.length === 0) {
    return 'nothing to load: give --start, or --url with the address of a gateway'
  }
  for (const option of /** @type {const} */ (['tls', 'gateways'])) {
    if (options.start !== 'keycast' && options[option]) return `--${option} goes with --start alone`
  }
  const [without] = [options.start, ...options.reference].filter(kind => kind !== undefined && kind !== 'keycast')
  if (without !== undefined && scenario.needsProvider) {
    return `${scenario.name} needs a backend, which ${without} does not have`
  }
  if (options.start !== undefined && (options.provider || options.pid.length > 0 || options.metrics.length > 0)) {
    return '--provider, --metrics and --pid go with --url: of a system it starts the load test knows them'
  }
  if (scenario.needsProvider && options.start === undefined && options.provider === undefined) {
    return `${scenario.name} asks the backend itself: give --provider with its address`
  }
  const far = [...options.url, options.provider].filter(url => url !== undefined && !isLoopback(new URL(url).hostname))
  if (far.length > 0 && !options.remote) return `${far[0]} is not on this host: give --remote if you may load it`
  return scenario.problem?.(options)
}

/** @template T @param {(text: string) => T} read @returns {(text: string, before: T[]) => T[]} */
function collect(read) {
  return (text, before) => [...before, read(text)]
}

/** @param {string} text */
function readUrl(text) {
  const url = parseUrl(text)
  if (url === undefined || !['ws:', 'wss:'].includes(url.protocol)) {
    throw new InvalidArgumentError('Give a WebSocket address, as in ws://127.0.0.1:8080/ws.')
  }
  if (url.pathname === '/') url.pathname = '/ws'
  return url.href
}

/** @param {string} text */
function readHttpUrl(text) {
  const url = parseUrl(text)
  if (url === undefined || !['http:', 'https:'].includes(url.protocol)) {
    throw new InvalidArgumentError('Give an HTTP address, as in http://127.0.0.1:3000.')
  }
  return url.href.replace(/\/$/, '')
}

/** @param {string} text */
function parseUrl(text) {
  return URL.canParse(text) ? new URL(text) : undefined
}

/** @param {string[]} choices */
function readChoice(choices) {
  return (/** @type {string} */ text) => {
    if (!choices.includes(text)) throw new InvalidArgumentError(`Allowed choices are ${choices.join(', ')}.`)
    return text
  }
}

/** @template T @param {(text: string) => T} read @returns {(text: string) => { role: string, value: T }} */
function readPair(read) {
  return text => {
    const [, role, value] = /^([a-z-]+)=(.+)$/.exec(text) ?? []
    if (role === undefined) throw new InvalidArgumentError('Give role=value, as in gateway=4711.')
    return { role, value: read(value) }
  }
}
