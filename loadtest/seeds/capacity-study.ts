// 002: how many clients can be held, each asking for 130 KB a second.
import { overClients } from './chart-parts.ts'
import type { Seed, Size } from './seed.ts'
import { figure, keycast, reference } from './systems.ts'

/** Clients that the study held, and megabytes a second: on 2 CPUs and 4 GB, on 4 CPUs and 8 GB. */
const STUDY = [
  { clients: 304, megabytes: 46.34, machine: '2 CPUs' },
  { clients: 333, megabytes: 47.17, machine: '4 CPUs' },
]
const HOLD = '10s'

/** `study`: args of runs that keep the study's pace; `sooner`: of those that do not; `both`: of all. */
const sizes: Record<
  Size,
  { ways: ('direct' | 'tls')[]; study: string[]; sooner: string[]; both: string[]; seconds: [number, number] }
> = {
  full: {
    ways: ['direct', 'tls'],
    study: ['--study'],
    sooner: ['--every', '100ms'],
    both: ['--faster-after', '333', '--clients', '18000', '--hold', HOLD, '--time-max', '40m'],
    seconds: [860, 200],
  },
  medium: {
    ways: ['direct', 'tls'],
    study: ['--every', '50ms'],
    sooner: ['--every', '50ms'],
    both: ['--faster-after', '100', '--clients', '500', '--hold', '5s'],
    seconds: [24, 24],
  },
  quick: {
    ways: ['direct'],
    study: ['--every', '20ms'],
    sooner: ['--every', '20ms'],
    both: ['--clients', '20', '--hold', '1s', '--bytes', '20000'],
    seconds: [3, 3],
  },
}

export const capacityStudy: Seed = {
  id: '002',
  title: 'The capacity study',
  source:
    'A WebSocket server of 2015 in Node 0.10 with nginx, on virtual machines with 2 CPUs and 4 GB, and 4 CPUs and 8 GB',
  about:
    'A new client every 2 s, each of which asks for 130 KB of JSON every second, up to the 333 that the study held; then ever faster, until a connection drops or answers come late. Directly, and through nginx with TLS. References come faster from the beginning, for their slow part would say nothing more.',

  tables(size) {
    const { ways, study, sooner, both, seconds } = sizes[size]
    return [
      {
        name: 'clients',
        title: 'Clients held',
        systems: [
          reference('socket.io'),
          reference('socketcluster'),
          reference('naive'),
          reference('cluster', 2),
          keycast(),
          keycast(2),
        ],
        measures: [
          figure('clientsHeld', 'clients held', 'higher'),
          figure('megabytesPerSecond', 'MB a second', 'higher'),
          figure('p99', '99 % of answers within, ms'),
          figure('systemCpuPerDelivery', 'CPU of an answer, µs', 'lower'),
        ],
        rows: ways.map(way => ({
          label: way === 'direct' ? 'directly' : 'through nginx, TLS',
          published: {
            clientsHeld: STUDY.map(({ clients, machine }) => `${clients} (${machine})`).join('; '),
            megabytesPerSecond: STUDY.map(({ megabytes }) => megabytes).join('; '),
          },
          args({ name, isKeycast }) {
            // nginx passes on what is at /ws: these two have paths of their own.
            if (way === 'tls' && (name.startsWith('socket.io') || name.startsWith('socketcluster'))) return undefined
            return ['capacity', ...(isKeycast ? study : sooner), ...both, ...(way === 'tls' ? ['--tls'] : [])]
          },
          seconds: ({ isKeycast }) => seconds[isKeycast ? 0 : 1],
        })),
        notes: [
          'A limit is: a connection drops or is refused, 1 % of the answers take more than 1 s, or fewer than 95 % of the requests are answered, for 3 s. Figures are of the last seconds before it.',
          "The study's own curves are pictures without numbers: what it held is marked in the charts.",
          'At most 18,000 clients are tried: more than so many files no process may open here.',
        ],
      },
    ]
  },

  charts: ([measured]) => {
    const [first, second] = STUDY
    const marks = [{ x: first.clients, label: `the study: ${first.clients}, ${second.clients}` }, { x: second.clients }]
    return [
      overClients(measured, {
        name: 'free-memory',
        title: 'Free memory',
        subtitle: 'MB of the machine; the study ran out of its 4 and 8 GB at its marks',
        of: ({ freeBytes }) => freeBytes && freeBytes / 1e6,
        marks,
      }),
      overClients(measured, {
        name: 'cpu-time',
        title: 'CPU time',
        subtitle: 'ms a second of all processes of the system',
        of: ({ services, seconds }) => services.reduce((sum, { cpuMs = 0 }) => sum + cpuMs, 0) / seconds,
        marks,
      }),
      overClients(measured, {
        name: 'heap-used',
        title: 'V8 heap used',
        subtitle: 'MB, of the gateway or server that uses most',
        of: ({ services }) =>
          Math.max(
            ...services.flatMap(({ role, heapBytes }) => (role === 'gateway' && heapBytes ? heapBytes / 1e6 : [])),
          ),
        marks,
      }),
      overClients(measured, {
        name: 'full-gcs',
        title: 'Full garbage collections',
        subtitle: 'a minute, of the gateways or the server, over the last minute',
        of: ({ services }) =>
          services.reduce((sum, { role, majorGcs = 0 }) => sum + (role === 'gateway' ? majorGcs : 0), 0),
        perMinute: true,
        marks,
      }),
      overClients(measured, {
        name: 'late',
        title: 'How late answers are',
        subtitle: '99 % of the answers of each second within, ms',
        of: ({ latency }) => latency?.p99Ms,
        log: true,
        marks,
      }),
    ]
  },
}
