import { CommanderError } from 'commander'
import { scenarios } from '../scenarios/index.ts'
import { createProgram } from './cli.ts'

const parse = async (...args: string[]) => {
  const runs: { scenario: string; options: any }[] = []
  let said = ''
  const write = (text: string) => {
    said += text
  }
  const program = createProgram(
    { run: async ({ name }, options) => void runs.push({ scenario: name, options }), compare() {}, async seeds() {} },
    command => command.exitOverride().configureOutput({ writeOut: write, writeErr: write }),
  )
  try {
    await program.parseAsync(args, { from: 'user' })
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
  }
  return { runs, said }
}

test.each([
  [['capacity'], 'give --start, or --url'],
  [['capacity', '--start', '--every', 'soon'], "'--every <duration>' argument 'soon' is invalid. Give a duration"],
  [['capacity', '--start', '--study', '--every', '1s'], "'--study' cannot be used with option '--every"],
  [['capacity', '--start', '--evry', '1s'], "unknown option '--evry'"],
  [['ticker', '--start', '--clients', '0'], 'Give a whole number from 1 to 100000'],
  [['ticker', '--url', 'http://127.0.0.1:1'], 'Give a WebSocket address'],
  [['ticker', '--url', 'ws://192.0.2.1/ws'], 'is not on this host: give --remote'],
  [['ticker', '--url', 'ws://127.0.0.1/ws', '--tls'], '--tls goes with --start alone'],
  [['ticker', '--url', 'ws://127.0.0.1/ws', '--pid', '17'], 'Give role=value'],
  [['ticker', '--start', '--pid', 'gateway=17'], '--pid go with --url'],
  [['ticker', '--start', '--url', 'ws://127.0.0.1/ws'], 'cannot be used with'],
  [['polling', '--url', 'ws://127.0.0.1:1/ws'], 'give --provider'],
  [['polling', '--start', 'bare'], 'needs a backend'],
  [['coldburst', '--start', '--reference', 'bare'], 'needs a backend'],
  [['coldburst', '--start', '--sessions', '9', '--keys', '5'], '--sessions must not be more than --keys'],
  [['fanout', '--start', '--updates', '15'], '--updates must be a multiple of 10'],
  [['pingpong', '--start', 'fast'], 'Allowed choices are keycast, bare, naive'],
  [['pingpong', '--start', '--rate', '10', '--window', '5'], "'--rate <n>' cannot be used with option '--window <n>'"],
  [
    ['pingpong', '--start', '--rate', '10', '--every', '6s'],
    "'--every <duration>' cannot be used with option '--rate <n>'",
  ],
  [['pingpong', '--start', '--every', '0s'], '--every must be 1ms at least'],
  [['pingpong', '--start', '--rate', '1701'], '--rate above 1,000 must be a multiple of 10'],
  [['pingpong', '--start', 'socket.io', '--tls'], '--tls goes with keycast, bare, naive, and cluster alone'],
  [['chat', '--start', 'socketcluster', '--gateways', '2'], 'would have rooms of their own each'],
  [['chat', '--start', '--clients', '10', '--publishers', '11'], '--publishers must not be over --clients'],
  [['crash', '--url', 'ws://127.0.0.1/ws'], 'crash kills a gateway: it needs --start'],
  [['crash', '--start', '--gateways', '1'], '--gateways must be 2 at least'],
  [['http', '--start', '--connections', '5001'], 'give more --gateways'],
  [['http', '--start', 'naive'], 'http does not run against naive: it has http'],
  [['ticker', '--start', '--keys', '2', '--key', 'tick:a'], '--key must end with a number'],
  [['pingpong', '--url', 'ws://127.0.0.1/ws', '--token'], '--token needs a file with --url'],
  [['garbage', '--url', 'ws://127.0.0.1/ws'], '--token needs a file with --url'],
  [['garbage', '--start', '--attackers', '2'], '--rate must not be over 1,000'],
  [['seeds', '--only', '000,007'], 'Give some of 000,001,002,003,004'],
  [['seeds', '--size', 'huge'], 'Allowed choices are full, medium, quick'],
  [['tocker'], "unknown command 'tocker'"],
])('%j is refused with the reason', async (args, reason) => {
  const { runs, said } = await parse(...args)

  expect(said).toContain(reason)
  expect(runs).toEqual([])
})

test.each(scenarios.map(({ name }) => name))('%s --help says what there is', async name => {
  const { said } = await parse(name, '--help')

  for (const option of ['--start', '--url', '--processes', '--time-max']) expect(said).toContain(option)
})

test('--help shows defaults as they would be given', async () => {
  const { said } = await parse('capacity', '--help')

  expect(said).toContain('(default: 2s)')
  expect(said).toContain('(default: 15m)')
  expect(said).not.toMatch(/default: (\[\]|false|900000)/)
})

test('--study keeps the settings of the experiment this project began with', async () => {
  const { runs } = await parse('capacity', '--start', '--study')

  expect(runs[0].options).toMatchObject({ every: 2_000, interval: 1_000, bytes: 130_000, keys: 1 })
})

test('more clients than a process may hold are shared by several', async () => {
  const { runs } = await parse('ticker', '--start', '--clients', '25000')

  expect(runs[0].options.processes).toBe(2)
})

test.each([
  [['--token'], true],
  [['--token', 'key.pem'], 'key.pem'],
  [[], undefined],
])('capacity --start %j: the token is %j', async (args, token) => {
  const { runs } = await parse('capacity', '--start', 'keycast', ...args)

  expect(runs[0].options.token).toBe(token)
})

test('several gateways are loaded, each at its WebSocket path', async () => {
  const { runs } = await parse('pingpong', '--url', 'ws://127.0.0.1:8080', '--url', 'wss://localhost:8443/ws')

  expect(runs[0].options.url).toEqual(['ws://127.0.0.1:8080/ws', 'wss://localhost:8443/ws'])
})
