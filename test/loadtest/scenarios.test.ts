// The load test, from its command line: runs every scenario at a small size, checks its counts, and opens its report in a
// browser.
import { mkdtempSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { pathToFileURL } from 'node:url'
import type { Page } from 'playwright-core'
import type { Result } from '../../loadtest/run/result.ts'
import { scenarios } from '../../loadtest/scenarios/index.ts'
import type { Options } from '../../loadtest/scenarios/scenario.ts'
import { startSystem } from '../../loadtest/system/start.ts'
import { launchChromium } from '../support/chromium.ts'
import { atEnd, newFolder } from '../support/cleanup.ts'
import { RUN_MS_MAX, SMALL, startLoadTest } from '../support/loadtest.ts'
import { killAtEnd, killNow } from '../support/processes.ts'

let output: string
/** One for all reports: each page of its own would start a process. */
let page: Page
let complaints: string[] = []

beforeAll(async () => {
  output = newFolder()
  const browser = await launchChromium()
  const context = await browser.newContext({ offline: true })
  page = await context.newPage()
  page.on('pageerror', error => complaints.push(error.message))
  page.on('console', message => {
    if (message.type() === 'error' || message.type() === 'warning') complaints.push(message.text())
  })
  page.on('request', request => {
    if (!/^(file|data):/.test(request.url())) complaints.push(`asks for ${request.url()}`)
  })
})

/** Runs a scenario. */
async function run(scenario: string, ...args: string[]) {
  const folder = mkdtempSync(join(output, `${scenario}-`))
  const { code, out, err } = await startLoadTest(scenario, '--output', folder, ...args).ended
  if (code !== 0) throw new Error(`exit code ${code}\n${out}\n${err}`)
  return { ...readRun(folder), out }
}

/** @param output the folder of one run */
function readRun(output: string) {
  const folders = readdirSync(output)
  expect(folders).toHaveLength(1)
  const folder = join(output, folders[0])
  const result: Result = JSON.parse(readFileSync(join(folder, 'result.json'), 'utf8'))
  return { folder, result }
}

/** Opens a page of a folder, without a network. */
async function open(file: string) {
  complaints = []
  await page.goto(pathToFileURL(file).href)
  return {
    complaints,
    headline: await page.locator('h1').textContent(),
    charts: await page.locator('.chart h3').allTextContents(),
    drawn: await page.locator('.chart svg path').count(),
  }
}

const experiment = ['Free memory', 'CPU time', 'V8 heap used', 'Full garbage collections']

/** Checks that hold for every run. */
async function checkReport({ folder, result }: Awaited<ReturnType<typeof run>>) {
  const { complaints, headline, charts, drawn } = await open(join(folder, 'report.html'))
  expect(complaints).toEqual([])
  expect(headline).toBe(result.headline)
  expect(charts).toEqual(expect.arrayContaining(experiment.slice(0, 3)))
  expect(drawn).toBeGreaterThan(charts.length)
  expect(result.sums.filter(({ holds }) => !holds)).toEqual([])
  expect(result.endedBy).toBe('done')
}

type Small = [scenario: string, args: string[], check: (counts: any, result: any) => void]

/**
 * Small enough that all of them take less than a minute. Two go on beside each other, for each mostly waits: one of each
 * list, in turn. Scenarios without `--start` load the system that their list shares: a system for each would
 * cost more than its load does.
 */
const lanes: Small[][] = [
  [
    [
      'pingpong',
      ['--clients', '10', '--seconds', '1'],
      counts => {
        expect(counts.requested).toBe(counts.answered + counts.refusals + counts.lost)
        expect(counts).toMatchObject({ opened: 10, closed: 10, refusals: 0, lost: 0, unexpected: 0 })
        expect(counts.answered).toBeGreaterThan(10) // of the first pings of all
      },
    ],
    [
      'fanout',
      ['--clients', '20', '--updates', '50', '--seconds', '1'],
      counts => {
        expect(counts.sent).toBe(counts.received + counts.replaced + counts.lost)
        expect(counts).toMatchObject({ changes: 50, sent: 1_000, lost: 0, wentBack: 0 })
      },
    ],
    [
      'resume',
      ['--clients', '60', '--rooms', '4', '--behind', '30'],
      counts => {
        expect(counts).toMatchObject({ requested: 60, recovered: 60, complete: 60, messages: 60 * 30, disorder: 0 })
      },
    ],
    [
      'presence',
      ['--clients', '30', '--over', '200ms'],
      (counts, { figures }) => {
        expect(counts).toMatchObject({ subscribed: 30, joined: 30, complete: 30, refusals: 0, lost: 0, unexpected: 0 })
        expect(figures.framesMax.value).toBeLessThanOrEqual(15)
      },
    ],
    [
      'publish',
      ['--clients', '10', '--rooms', '5', '--window', '4', '--seconds', '1'],
      counts => {
        expect(counts).toMatchObject({ opened: 10, closed: 10, refusals: 0, lost: 0, unexpected: 0 })
        expect(counts.published).toBeGreaterThan(10 * 4) // of the first windows of all
      },
    ],
    [
      'connections',
      ['--start', '--clients', '100', '--settle', '100ms'],
      (counts, { figures }) => {
        expect(counts).toMatchObject({ opened: 100, closed: 100, requested: 100, subscribed: 100, refusals: 0 })
        expect(figures.gatewayKilobytesPerSession.value).toEqual(expect.any(Number))
      },
    ],
    [
      'edge',
      [
        ...['--start', '--viewers', '40', '--keys', '2', '--quiet', '1s', '--rounds', '2', '--every', '50ms'],
        ...['--behind', '500ms'],
      ],
      (counts, { figures }) => {
        // Two rounds, two while a gateway is behind, and one when the other is gone.
        expect(counts).toMatchObject({ changes: 10, received: 200, missing: 0, wentBack: 0, refusals: 0, dropped: 0 })
        expect(figures.perChange.value).toBeLessThanOrEqual(2)
      },
    ],
    [
      'chat',
      ['--clients', '12', '--rooms', '3', '--messages', '40', '--every', '20ms', '--processes', '2'],
      counts => {
        const [publishes, membersOfARoom] = [12 * 40, 4]
        expect(counts).toMatchObject({
          opened: 12,
          closed: 12,
          refusals: 0,
          lost: 0,
          disorder: 0,
          gaps: 0,
          unexpected: 0,
        })
        expect(counts).toMatchObject({
          requested: publishes,
          published: publishes,
          messages: publishes * membersOfARoom,
        })
      },
    ],
    [
      'garbage',
      ['--start', '--clients', '10', '--rate', '500', '--attackers', '5', '--seconds', '2'],
      counts => {
        expect(counts.sent).toBeGreaterThan(5) // of the first of all
        expect(counts).toMatchObject({ refused: counts.sent, unanswered: 0, refusals: 0, lost: 0, unexpected: 0 })
      },
    ],
  ],
  [
    [
      'polling',
      ['--start', '--clients', '12', '--keys', '3', '--seconds', '2', '--change', '700ms', '--bytes', '5000'],
      (counts, { tables }) => {
        expect(counts.requested).toBe(counts.answered + counts.refusals + counts.lost)
        const ways = tables[0].rows.map(([name]: any[]) => name)
        expect(ways).toEqual([
          'polling',
          'polling, If-None-Match',
          'subscribed',
          'subscribed, told of changes',
          'subscribed to differences',
        ])
        // Two polls by each who polls; one answer, and then changes, for each who subscribes.
        expect(counts).toMatchObject({ requested: 12 * 2 * 2 + 12 * 3, lost: 0, refusals: 0, opened: 36, closed: 36 })
        expect(counts.news).toBeGreaterThan(12 * 5)
      },
    ],
    [
      'coldburst',
      ['--start', '--keys', '150', '--rounds', '2', '--warm-up', '1', '--latency', '20ms', '--sessions', '3'],
      (counts, { figures }) => {
        expect(counts).toMatchObject({ requested: 450, answered: 450, refusals: 0, lost: 0, unexpected: 0 })
        expect(figures.requestsPerKey.value).toBe(1)
        expect(figures.concurrency.value).toBeGreaterThan(10)
      },
    ],
    [
      'ticker',
      ['--start', '--clients', '40', '--changes', '8', '--change', '100ms', '--processes', '2', '--gateways', '2'],
      counts => {
        expect(counts.sent).toBe(counts.received + counts.replaced + counts.lost)
        expect(counts).toMatchObject({ changes: 8, sent: 320, lost: 0, subscribed: 40, wentBack: 0, unexpected: 0 })
      },
    ],
    [
      'connect',
      ['--start', '--clients', '100', '--processes', '2', '--token'],
      (counts, { figures }) => {
        expect(counts).toMatchObject({ opened: 100, welcomed: 100, refused: 0, dropped: 0, closed: 100, unexpected: 0 })
        expect(figures.perSecond.value).toBeGreaterThan(0)
      },
    ],
    [
      'crash',
      ['--start', '--clients', '60', '--every', '50ms', '--redial', '100ms', '--calm', '500ms', '--processes', '2'],
      (counts, { figures }) => {
        expect(counts).toMatchObject({ dropped: 30, back: 30, opened: 90, lost: 0, unexpected: 0 })
        expect(figures.outageMax.value).toBeGreaterThan(0)
      },
    ],
    [
      'http',
      // Rates are made of whole seconds: on a busy machine a single one may come too late to count.
      ['--connections', '30', '--seconds', '2'],
      (counts, { figures }) => {
        expect(counts).toMatchObject({ connected: 30, refusals: 0, lost: 0 })
        expect(figures.perSecond.value).toBeGreaterThan(30)
      },
    ],
    [
      'stranger',
      [
        '--start',
        '--clients',
        '20',
        '--interval',
        '200ms',
        '--rate',
        '100',
        '--attackers',
        '10',
        '--seconds',
        '2',
        '--quiet',
        '1s',
      ],
      counts => {
        expect(counts).toMatchObject({ dropped: 0, lost: 0, unexpected: 0 })
        expect(counts.fuzzed).toBeGreaterThan(0)
        expect(counts.answered).toBeGreaterThan(20) // of the first requests of all
        expect(counts.sent).toBeGreaterThan(10) // of the first of all attackers
      },
    ],
  ],
]
/** As they come to their end, so that none is waited for long. */
const small = Array.from({ length: Math.max(...lanes.map(lane => lane.length)) }, (_, place) =>
  lanes.flatMap(lane => lane.slice(place, place + 1)),
).flat()

let shared: Awaited<ReturnType<typeof startSystem>>
const runs = new Map<string, Promise<Awaited<ReturnType<typeof run>>>>()

beforeAll(async () => {
  const sharers = small.filter(([, args]) => !args.includes('--start')).map(([scenario]) => scenario)
  const contents = scenarios
    .filter(({ name }) => sharers.includes(name))
    .map(each => each.content?.({ log: 'memory' } as Options) ?? {})
  shared = await startSystem({
    kind: 'keycast',
    gateways: 1,
    tls: false,
    // All that each of them asks of a system of its own.
    content: Object.assign({}, ...contents, {
      settings: Object.assign({}, SMALL, ...contents.map(content => content.settings)),
    }),
  })
  const { urls, watched, stop } = shared
  killAtEnd(() => {
    for (const { pid } of watched) killNow(-Number(pid))
  })
  atEnd(stop)

  const target = [
    ...urls.flatMap(url => ['--url', url]),
    ...watched.flatMap(({ role, pid, metricsUrl }) => [
      '--pid',
      `${role}=${pid}`,
      '--metrics',
      `${role}=${metricsUrl}`,
    ]),
  ]
  for (const lane of lanes) {
    let before: Promise<unknown> = Promise.resolve()
    for (const [scenario, args] of lane) {
      const running = before.then(() => run(scenario, ...args, ...(args.includes('--start') ? [] : target)))
      before = running.catch(() => {}) // its own test says so
      runs.set(scenario, running)
    }
  }
})

test.each(small)(
  '%s runs end to end, its counts add up, and its report opens',
  async (scenario, _, check) => {
    const done = (await runs.get(scenario)) as Awaited<ReturnType<typeof run>>

    check(done.result.counts, done.result)
    expect(done.result.addsUp).toBe(true)
    await checkReport(done)
  },
  2 * RUN_MS_MAX,
)

test('capacity counts what the gateway counts, and leaves a running system running', async () => {
  const { urls, watched } = shared
  const gateway = watched.find(({ role }) => role === 'gateway')
  const metricsUrl = String(gateway?.metricsUrl)
  const counted = async (name: string) => {
    const exposition = await (await fetch(metricsUrl)).text()
    return Number(new RegExp(`^keycast_gateway_${name} (\\d+)`, 'm').exec(exposition)?.[1] ?? 0)
  }
  const [gets, values] = ['messages_received_total\\{type="get"\\}', 'messages_sent_total\\{type="value"\\}']
  const before = { gets: await counted(gets), values: await counted(values) }
  const done = await run(
    'capacity',
    ...['--url', urls[0], '--metrics', `gateway=${metricsUrl}`],
    ...['--every', '10ms', '--clients', '30', '--hold', '2s'],
  )

  const { result } = done
  const { requested, answered, refusals, lost } = result.counts
  expect(requested).toBe(answered + refusals + lost)
  expect(requested).toBeGreaterThanOrEqual(30 * 2)
  expect(result.counts).toMatchObject({ opened: 30, closed: 30, dropped: 0, refusals: 0, lost: 0, invalid: 0 })
  expect(result.counts.checked).toBeGreaterThan(0)
  await checkReport(done)
  expect(await counted(gets)).toBe(before.gets + result.counts.requested)
  expect(await counted(values)).toBe(before.values + result.counts.answered)
  expect(result.system.kind).toBe('given')
})

test('Ctrl-C ends a run with a report of what was measured so far; two runs can be compared', async () => {
  const folder = mkdtempSync(join(output, 'interrupted-'))
  // Few clients for long: neither a limit nor its time may end the run before Ctrl-C does.
  const load = ['--every', '2ms', '--clients', '50', '--hold', '300s', '--bytes', '20000']
  const args = ['capacity', '--start', 'naive', ...load, '--output', folder]
  const { child, ended } = startLoadTest(...args, '--reference', 'bare')
  const lines = createInterface(child.stderr)
  for await (const line of lines) if (/[1-9]\d* answered\/s/.test(line)) break

  child.kill('SIGINT')
  expect((await ended).code).toBe(0)

  const interrupted = readRun(folder)
  expect(interrupted.result.endedBy).toBe('interrupted')
  expect(interrupted.result.counts.answered).toBeGreaterThan(0)
  expect(interrupted.result.addsUp).toBe(true)
  expect((await open(join(interrupted.folder, 'report.html'))).complaints).toEqual([])

  const html = join(output, 'comparison.html')
  const { code, out } = await startLoadTest('compare', interrupted.folder, interrupted.folder, '--html', html).ended
  expect(code).toBe(0)
  expect(out).toContain('Clients held')
  const { complaints, charts } = await open(html)
  expect(complaints).toEqual([])
  expect(charts).toEqual(expect.arrayContaining(experiment.slice(0, 3)))
})

test('what cannot be run is refused with the reason', async () => {
  const { code, err } = await startLoadTest('capacity', '--start', '--every', 'soon').ended

  expect(err).toContain("'--every <duration>' argument 'soon' is invalid")
  expect(code).toBe(1)

  const unfit = await startLoadTest('fanout', '--start', '--reference', 'socket.io').ended
  expect(unfit.err).toContain('fanout does not run against socket.io: it has bare, naive, and cluster')
})
