// 004: SocketCluster. Ping-pongs a second, connections that are held, and a worker that crashes.
import type { Result } from '../run/result.ts'
import { overClients, percentileCurves } from './chart-parts.ts'
import type { Seed, Size } from './seed.ts'
import { figure, keycast, reference } from './systems.ts'

const sizes: Record<
  Size,
  {
    pings: { clients: number; ramp: number; rate: number; seconds: number }
    held: { clients: number; ramp: number; everyMs: number; seconds: number }
    crash: { clients: number; everyMs: number; calmMs: number }
  }
> = {
  full: {
    pings: { clients: 100, ramp: 1, rate: 1_700, seconds: 20 },
    held: { clients: 42_000, ramp: 160, everyMs: 6_000, seconds: 60 },
    crash: { clients: 5_000, everyMs: 500, calmMs: 5_000 },
  },
  medium: {
    pings: { clients: 100, ramp: 20, rate: 1_700, seconds: 6 },
    held: { clients: 4_000, ramp: 640, everyMs: 6_000, seconds: 10 },
    crash: { clients: 2_000, everyMs: 500, calmMs: 3_000 },
  },
  quick: {
    pings: { clients: 10, ramp: 20, rate: 100, seconds: 2 },
    held: { clients: 60, ramp: 200, everyMs: 500, seconds: 2 },
    crash: { clients: 40, everyMs: 50, calmMs: 300 },
  },
}
const GATEWAYS = 3

export const socketCluster: Seed = {
  id: '004',
  title: 'SocketCluster',
  source: 'SocketCluster 0.9 (Node.js 0.10) on an EC2 m3.2xlarge with 8 cores, its clients on machines of their own',
  about:
    'A client more each second, up to 100 that exchange 1,700 pings and pongs a second each; 42,000 connections, opened at 160 a second, with a ping each 6 s; and a worker that is killed under load. Here pings are due at fixed times, and dropped clients dial again within half a second, at random, whatever the system.',

  tables(size) {
    const { pings, held, crash } = sizes[size]
    return [
      {
        name: 'pings',
        title: `${pings.clients} clients, ${pings.rate.toLocaleString('en')} pings a second each`,
        systems: [
          reference('socket.io'),
          reference('socketcluster'),
          reference('naive'),
          reference('cluster', 2),
          keycast(),
          keycast(2),
        ],
        measures: [
          figure('messagesPerSecond', 'pongs a second', 'higher'),
          figure('p50', 'half within, ms', 'lower'),
          figure('p99', '99 % within, ms', 'lower'),
          figure('systemCpuPerDelivery', 'CPU of an exchange, µs', 'lower'),
        ],
        rows: [
          {
            label: `${(pings.clients * pings.rate).toLocaleString('en')} pings a second due`,
            published: { messagesPerSecond: '170,000, on 8 cores' },
            args: () => [
              'pingpong',
              ...['--clients', String(pings.clients), '--ramp', String(pings.ramp)],
              ...['--rate', String(pings.rate), '--seconds', String(pings.seconds)],
            ],
            seconds: () => pings.clients / pings.ramp + pings.seconds + 12,
          },
        ],
        notes: ['Pings of a client are due 17 together, each 10 ms; the figures are of the seconds with all clients.'],
      },
      {
        name: 'held',
        title: `${held.clients.toLocaleString('en')} connections`,
        systems: [
          reference('socket.io', GATEWAYS),
          reference('socketcluster', GATEWAYS),
          reference('cluster', GATEWAYS),
          keycast(GATEWAYS),
        ],
        measures: [
          { name: 'held', label: 'connections held', better: 'higher', of: heldOf },
          figure('p50', 'half of the pongs within, ms', 'lower'),
          figure('p99', '99 % within, ms', 'lower'),
          figure('systemCpu', 'CPU, % of a core', 'lower'),
          figure('systemMegabytes', 'memory, MB', 'lower'),
        ],
        rows: [
          {
            label: `a ping each ${held.everyMs / 1_000} s`,
            published: {
              held: '42,000: the limit of its clients',
              systemCpu: 'its busiest worker 45, after 60 while they came',
              systemMegabytes: 'negligible',
            },
            args: () => [
              'pingpong',
              ...['--clients', String(held.clients), '--ramp', String(held.ramp)],
              ...['--every', `${held.everyMs}ms`, '--seconds', String(held.seconds), '--processes', String(GATEWAYS)],
            ],
            seconds: () => held.clients / held.ramp + held.seconds + held.clients / 3_000 + 3,
          },
        ],
        notes: ['CPU is of all processes of the system together, once all clients are there.'],
      },
      {
        name: 'crash',
        title: 'A worker is killed',
        systems: [reference('socket.io', 2), reference('socketcluster', 2), reference('cluster', 2), keycast(2)],
        measures: [
          figure('outageP50', 'half of its clients answered again after, s', 'lower'),
          figure('outageP99', '99 % of them, s', 'lower'),
          figure('outageMax', 'all of them, s', 'lower'),
          figure('hit', 'clients hit'),
        ],
        rows: [
          {
            label: `${crash.clients.toLocaleString('en')} clients, one of two workers`,
            published: { outageMax: '2 to 5, for the worker to come back' },
            args: () => [
              'crash',
              ...['--clients', String(crash.clients), '--every', `${crash.everyMs}ms`, '--calm', `${crash.calmMs}ms`],
            ],
            seconds: () => (crash.calmMs * 2) / 1_000 + 10,
          },
        ],
        notes: [
          'From the end of a connection to the next answer. Of the references the killed process is started anew at once; of Keycast the clients go to the other gateway.',
        ],
      },
    ]
  },

  charts: ([pings, held, crash]) => [
    overClients(pings, {
      name: 'pongs',
      title: 'Pings and pongs, a client more each second',
      subtitle: 'pongs a second; dashed: pings that were due',
      of: ({ counts, seconds }) => (counts.answered ?? 0) / seconds,
      linear: true,
      due: true,
    }),
    percentileCurves(pings, pings.table.rows[0], {
      name: 'pings-latency',
      title: `${pings.table.title}: round trip`,
      subtitle: 'milliseconds from the time a ping was due, by percentile, with all clients',
    }),
    percentileCurves(held, held.table.rows[0], {
      name: 'held-latency',
      title: `${held.table.title}: round trip`,
      subtitle: 'milliseconds from the time a ping was due, by percentile, with all clients',
    }),
    percentileCurves(crash, crash.table.rows[0], {
      name: 'crash',
      title: 'A worker is killed: time without an answer',
      subtitle: 'milliseconds from the end of a connection to the next answer, by percentile',
    }),
  ],
}

/** Clients that were there in every second of the measurement. */
function heldOf({ series }: Result) {
  const measured = series.filter(({ phase }) => phase === 'measure')
  return measured.length === 0 ? undefined : Math.min(...measured.map(({ open }) => open))
}
