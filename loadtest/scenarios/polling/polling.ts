// Compares Keycast with the polling that it replaces: viewers that ask the backend every second, and the same viewers
// subscribed.
import { BYTES_SUBPROTOCOL } from '@keycast/protocol'
import { readDuration, readInteger, readSize } from '../../command-line/options.ts'
import type { Options, Outcome, Scenario } from '../scenario.ts'
import { accepts, poll, subscribe, type Way } from './polling-ways.ts'

export const polling: Scenario = {
  name: 'polling',
  about:
    'Compares viewers that poll the backend every second with viewers that subscribe: bytes, requests, staleness, CPU.',
  rates: [
    { count: 'news', label: 'changes seen' },
    { count: 'answered', label: 'answers to polls' },
  ],
  counts: [
    'requested',
    'answered',
    'refusals',
    'lost',
    'news',
    'values',
    'deltas',
    'notModified',
    'unexpected',
    'opened',
    'closed',
    'dropped',
    'refused',
  ],
  needsProvider: true,

  addOptions(command) {
    command
      .option('--clients <n>', 'viewers', readInteger(1, 10_000), 100)
      .option('--keys <n>', 'number of documents, shared evenly among the viewers', readInteger(1, 1_000), 10)
      .option('--bytes <size>', 'size of a document (with --start)', readSize, 130_000)
      // No multiple of the polling interval, so that changes meet every phase of it.
      .option(
        '--change <duration>',
        'time between two changes of a document; with --url as the backend has it',
        readDuration,
        2_700,
      )
      .option('--seconds <n>', 'time to measure each way', readInteger(1, 600), 27)
      .option('--key <name>', 'the keys are <name>1, <name>2, …', 'conversation:')
      .option('--path <path>', 'paths of the documents at the backend: <path>1, <path>2, …', '/conversations/')
  },

  content: ({ bytes, change }) => ({ documentBytes: bytes, changeMs: change }),

  async run(context, options) {
    const { keys, key, path } = options
    const numbers = Array.from({ length: keys }, (_, number) => number + 1)
    const paths = numbers.map(number => path + number)
    const named = numbers.map(number => key + number)
    const told = numbers.map(number => `told:${number}`)
    const { tellChanged } = context.target

    const ways: (() => Promise<Way | undefined>)[] = [
      () => poll(context, options, { name: 'polling', paths, conditional: false }),
      () => poll(context, options, { name: 'polling, If-None-Match', paths, conditional: true }),
      () => subscribe(context, options, { name: 'subscribed', keys: named }),
    ]
    if (tellChanged)
      ways.push(() => subscribe(context, options, { name: 'subscribed, told of changes', keys: told, tellChanged }))
    const speaksBytes = await accepts(context.target.urls[0], BYTES_SUBPROTOCOL)
    if (speaksBytes)
      ways.push(() =>
        subscribe(context, options, { name: 'subscribed to differences', keys: named, subprotocol: BYTES_SUBPROTOCOL }),
      )

    const done: Way[] = []
    for (const way of ways) {
      if (context.ended() !== undefined) break
      const measured = await way()
      if (measured !== undefined) done.push(measured)
    }
    context.phase('end')
    return outcomeOf(done, options, [
      'Bytes are what viewers receive, headers included, once everybody has a first value.',
      'Staleness: from a change at the backend to the moment a viewer first sees it.',
      ...(speaksBytes ? [] : [`This gateway does not speak ${BYTES_SUBPROTOCOL}: differences were not measured.`]),
      'A difference does not name its revision: its staleness is taken from the latest change, and would not show one that came a whole period late.',
      'Viewers that poll are autocannon, which reads HTTP in JavaScript; those that subscribe are a bare socket. Compare the CPU of backend and Keycast, not of viewers.',
    ])
  },
}

function outcomeOf(ways: Way[], { clients, keys, bytes }: Options, notes: string[]): Outcome {
  const polled = ways[0]
  // The best that was measured: the last way is the one that sends differences, where there is one.
  const subscribed = ways.find(({ name }) => name === 'subscribed')
  const best = ways.filter(({ name }) => name.startsWith('subscribed')).at(-1)
  const stale = (way: Way | undefined, percentile: number) =>
    way && way.staleness.getValueAtPercentile(percentile) / 1_000
  const counts = addUp(ways.map(way => way.counts))
  const { requested = 0, answered = 0, refusals = 0, lost = 0 } = counts
  const ratio = polled && best && best.bytes > 0 ? polled.bytes / best.bytes : undefined
  return {
    headline:
      polled && subscribed && best
        ? `${clients} viewers of ${keys} documents: polling takes ${rate(polled.bytes)} each and ${polled.requests.toFixed(0)} backend requests a second, ${best.name} ${rate(best.bytes)} and ${best.requests.toFixed(0)}.`
        : 'Ended before both ways were measured.',
    figures: {
      bytesRatio: { label: 'Bytes of a poller to those of a subscriber', value: ratio, unit: '×', better: 'higher' },
      requestsRatio: {
        label: 'Backend requests, polling to subscribed',
        value: polled && subscribed && polled.requests / Math.max(subscribed.requests, 1e-9),
        unit: '×',
        better: 'higher',
      },
      pollerBytes: { label: 'Bytes per viewer, polling', value: polled?.bytes, unit: 'B/s' },
      subscriberBytes: {
        label: `Bytes per viewer, ${best?.name ?? 'subscribed'}`,
        value: best?.bytes,
        unit: 'B/s',
        better: 'lower',
      },
      bytesPerChange: {
        label: `Bytes for a change of one message, ${best?.name ?? 'subscribed'}`,
        value: best?.bytesPerChange,
        unit: 'B',
        better: 'lower',
      },
      staleP99: {
        label: 'Staleness subscribed, 99th percentile',
        value: stale(subscribed, 99),
        unit: 'ms',
        better: 'lower',
        note: polled && `polling ${stale(polled, 99)?.toFixed(0)} ms`,
      },
    },
    counts,
    sums: [
      {
        text: `asked ${requested} = answered ${answered} + refused ${refusals} + lost ${lost}`,
        holds: requested === answered + refusals + lost,
      },
    ],
    latency: subscribed?.staleness,
    latencyLabel: 'Subscribed: from a change at the backend to the moment a viewer sees it',
    tables: [
      {
        title: `${clients} viewers, ${keys} documents of ${(bytes / 1_000).toFixed(0)} KB`,
        columns: [
          'viewers',
          'bytes a viewer, a second',
          'bytes for a change seen',
          'backend requests a second',
          'of them with content',
          'staleness median, ms',
          '99 %, ms',
          'CPU backend, ms/s',
          'Keycast, ms/s',
          'viewers, ms/s',
        ],
        bars: [
          { column: 1, title: 'Bytes on the wire', log: true },
          { column: 3, title: 'Load on the backend' },
          { column: 6, title: 'Staleness' },
          { column: 7, title: 'CPU of the backend' },
        ],
        rows: ways.map(way => [
          way.name,
          way.bytes,
          way.bytesPerChange ?? 0,
          way.requests,
          way.full,
          stale(way, 50) ?? 0,
          stale(way, 99) ?? 0,
          way.cpuMs.backend,
          way.cpuMs.keycast,
          way.cpuMs.viewers,
        ]),
      },
    ],
    notes,
  }
}

/** @param bytes a second */
const rate = (bytes: number) => (bytes < 1_000 ? `${bytes.toFixed(0)} B/s` : `${(bytes / 1_000).toFixed(0)} KB/s`)

function addUp(all: Record<string, number>[]) {
  const sum: Record<string, number> = {}
  for (const counts of all) for (const [name, count] of Object.entries(counts)) sum[name] = (sum[name] ?? 0) + count
  return sum
}
