// 003: a ticker. 25,000 users are sent 120 timestamps each, 500 ms apart.
import type { LatencySummary as Summary } from '../generator/histogram.ts'
import { percentileCurves } from './chart-parts.ts'
import type { Measure, Seed, Size } from './seed.ts'
import { keycast, reference } from './systems.ts'

const sizes: Record<Size, { clients: number; ramp: number; changes: number; keys: number; changeMs: number }> = {
  full: { clients: 25_000, ramp: 834, changes: 120, keys: 100, changeMs: 500 },
  medium: { clients: 4_000, ramp: 500, changes: 20, keys: 50, changeMs: 500 },
  quick: { clients: 40, ramp: 100, changes: 4, keys: 4, changeMs: 200 },
}

const percentile = (field: Exclude<keyof Summary, 'count'>, label: string): Measure => ({
  name: field,
  label: `${label} within, ms`,
  better: 'lower',
  of: ({ latency }) => latency?.summary[field],
})

export const marketTicker: Seed = {
  id: '003',
  title: 'A ticker',
  source:
    'A benchmark of Scala WebSocket servers, on two machines with an Intel i9-13900K, 64 GB and a 10 Gbit network between',
  about:
    'Users ramped up within 30 s are sent 120 timestamps each, 500 ms apart; every delivery counts into an HdrHistogram. The document gives each user a timer. Here users watch one of 100 keys that change at different times, and then all of them the same key, which is sent to everybody at the same moment.',

  tables(size) {
    const { clients, ramp, changes, keys, changeMs } = sizes[size]
    const due = (clients * changes).toLocaleString('en')
    return [
      {
        name: 'deliveries',
        title: `${clients.toLocaleString('en')} users, ${changes} timestamps each`,
        systems: [reference('socket.io', 2), reference('socketcluster', 2), reference('cluster', 2), keycast(2)],
        measures: [
          percentile('p50Ms', 'half'),
          percentile('p99Ms', '99 %'),
          percentile('p999Ms', '99.9 %'),
          percentile('maxMs', 'all'),
          { name: 'received', label: `deliveries of ${due}`, of: ({ counts }) => counts.received },
        ],
        rows: [keys, ...(size === 'quick' ? [] : [1])].map(count => ({
          label: count === 1 ? 'one key' : `${count} keys`,
          ...(count > 1 && { published: { maxMs: 'http4s-blaze, zio-http < 5; http4s-ember 100' } }),
          args: () => [
            'ticker',
            ...['--clients', String(clients), '--ramp', String(ramp), '--keys', String(count)],
            ...['--changes', String(changes), '--change', `${changeMs}ms`, '--processes', '2'],
          ],
          seconds: () => clients / ramp + (changes * changeMs) / 1_000 + clients / 2_000 + 6,
        })),
        notes: [
          'The document speaks of tail latency without naming the percentile; its percentiles are in a picture.',
          "Keycast's timestamps are made by its backend, from which it fetches them; the others make them themselves.",
          'A delivery of Keycast that is missing was replaced by a newer one: values are states.',
        ],
      },
    ]
  },

  charts: ([measured]) =>
    measured.table.rows.map(row =>
      percentileCurves(measured, row, {
        name: row.label.replaceAll(' ', '-'),
        title: `Latency by percentile, ${row.label}`,
        subtitle: 'milliseconds from the time in the value to its last byte at the user',
      }),
    ),
}
