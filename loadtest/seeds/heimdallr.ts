// 000: a chat over several servers. HTTP requests a second, and how late a broadcast is.
import { latencyByRow } from './chart-parts.ts'
import type { Seed, Size } from './seed.ts'
import { figure, keycast, reference } from './systems.ts'

/** Of the document's 10,000 connections 8,981 failed. */
const CONNECTED = 1_000

const sizes: Record<
  Size,
  { connections: number[]; seconds: number; broadcasts: number; messages: number; everyMs: number }
> = {
  full: { connections: [CONNECTED, 10_000], seconds: 30, broadcasts: 5, messages: 20, everyMs: 1_000 },
  medium: { connections: [CONNECTED, 4_000], seconds: 6, broadcasts: 3, messages: 5, everyMs: 1_000 },
  quick: { connections: [20], seconds: 2, broadcasts: 1, messages: 3, everyMs: 200 },
}

/** Subscribers, publishers; mean latency in ms of Socket.IO, and of Heimdallr on 1, 2 and 4 nodes. */
const broadcasts = [
  { subscribers: 10, publishers: 1, published: [43, 43, 16, 20] },
  { subscribers: 100, publishers: 5, published: [62, 61, 53, 32] },
  { subscribers: 1_000, publishers: 10, published: [496, 390, 129, 47] },
  { subscribers: 1_000, publishers: 50, published: [1_304, 554, 141, 109] },
  { subscribers: 1_000, publishers: 100, published: [2_242, 605, 202, 114] },
]
const published = ['Socket.IO', 'Heimdallr, 1 node', 'Heimdallr, 2 nodes', 'Heimdallr, 4 nodes']

export const heimdallr: Seed = {
  id: '000',
  title: 'A chat over several servers',
  source: 'Heimdallr (Scala, Akka, Redis), beside Node.js and Socket.IO, on one m4.large each: 2 virtual CPUs, 8 GB',
  about:
    'HTTP requests for a small value with thousands of connections, and broadcasts to 10 to 1,000 subscribers from 1 to 100 publishers. Here autocannon asks, and each publisher sends a message a second; the publishers are among the subscribers. The document does not say how often its publishers sent.',

  tables(size) {
    const { connections, seconds, broadcasts: count, messages, everyMs } = sizes[size]
    return [
      {
        name: 'http',
        title: 'A small value over HTTP',
        systems: [reference('http'), reference('http', 2), keycast(), keycast(3)],
        measures: [
          figure('perSecond', 'requests a second', 'higher'),
          figure('mean', 'mean latency, ms', 'lower'),
          figure('systemCpuPerDelivery', 'CPU of a request, µs', 'lower'),
        ],
        rows: connections.map((each, at) => ({
          label: `${each.toLocaleString('en')} connections`,
          published: {
            perSecond: 'Node.js 14,534; Heimdallr 20,676',
            mean: 'Node.js 68.9; Heimdallr 13.4',
          },
          args: ({ name }) =>
            (at === 0 ? ['http-1', 'keycast-1'] : ['http-1', 'http-2', 'keycast-3']).includes(name)
              ? ['http', '--connections', String(each), '--seconds', String(seconds)]
              : undefined,
          seconds: () => seconds + each / 700 + 3,
        })),
        notes: [
          "The document's figures are of 10,000 connections, of which 8,981 failed: so the row of 1,000 is the one to compare them with.",
          'A connection asks again when it is answered: the mean latency is the number of connections divided by the requests a second.',
          'A gateway lets 4,000 HTTP requests wait for a fetch, so 10,000 connections are shared by three.',
        ],
      },
      {
        name: 'broadcast',
        title: 'Broadcast',
        systems: [
          reference('socket.io'),
          reference('socketcluster'),
          reference('naive'),
          reference('cluster', 2),
          keycast(),
          keycast(2),
          keycast(4),
        ],
        measures: [figure('mean', 'mean latency, ms', 'lower')],
        rows: broadcasts.slice(0, count).map(({ subscribers, publishers, published }) => ({
          label: `${subscribers.toLocaleString('en')} subscribers, ${publishers} ${publishers === 1 ? 'publisher' : 'publishers'}`,
          published: {
            mean: `Socket.IO ${published[0].toLocaleString('en')}; Heimdallr ${published.slice(1).join(', ')}`,
          },
          args: () => [
            'chat',
            ...['--clients', String(subscribers), '--publishers', String(publishers)],
            ...['--messages', String(messages), '--every', `${everyMs}ms`],
          ],
          seconds: () => (messages * everyMs) / 1_000 + 3,
        })),
        notes: [
          'Heimdallr: on 1, 2 and 4 nodes. Keycast keeps each message on disk before anybody is sent it; the others keep nothing.',
        ],
      },
    ]
  },

  charts: ([, measured]) => [
    latencyByRow({
      name: 'broadcast',
      title: 'Broadcast: mean latency',
      subtitle: 'milliseconds; dashed: as the document has it',
      measured,
      labels: measured.table.rows.map(
        (_, at) => `${broadcasts[at].subscribers.toLocaleString('en')} / ${broadcasts[at].publishers}`,
      ),
      published: published.map((name, at) => ({
        name: `${name}, published`,
        values: measured.table.rows.map((_, row) => broadcasts[row].published[at]),
      })),
    }),
  ],
}
