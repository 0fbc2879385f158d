// 001: a comparison of chat servers. Users in rooms, each of whom sends 500 messages that all must arrive.
import { linesByUsers } from './chart-parts.ts'
import type { Seed, Size } from './seed.ts'
import { figure, keycast, reference } from './systems.ts'

const sizes: Record<Size, { users: number[]; rooms: number[]; messages: number }> = {
  full: { users: [10, 20, 40, 60, 80, 100], rooms: [1, 2, 4], messages: 500 },
  medium: { users: [10, 40], rooms: [1, 4], messages: 100 },
  quick: { users: [8], rooms: [2], messages: 10 },
}
const EVERY_MS = 10
/** For a server that is far behind when the last message is due. */
const SETTLE = '8m'
/** Roughly, of a delivery, at a server's limit. */
const DELIVERY_US: Record<string, number> = { 'naive-1': 17, 'cluster-2': 15, 'socket.io-1': 11, 'socketcluster-1': 25 }

export const webChats: Seed = {
  id: '001',
  title: 'Web chats compared',
  source: 'A comparison of seven chat servers (Node.js, Vert.x, Akka and Spring), on 8 CPUs',
  about:
    'Users with unique names in 1, 2 or 4 rooms send 500 messages each, here one every 10 ms. Every message must reach every member of its room, and is counted there. The document draws the mean time, CPU and memory over the number of users, in charts whose numbers it does not print.',

  tables(size) {
    const { users, rooms, messages } = sizes[size]
    return rooms.map(count => ({
      name: `rooms-${count}`,
      title: count === 1 ? 'One room' : `${count} rooms`,
      systems: [
        reference('socket.io'),
        reference('socketcluster'),
        reference('naive'),
        reference('cluster', 2),
        keycast(),
        keycast(1, { log: 'memory' }),
      ],
      measures: [
        figure('mean', 'mean time, ms', 'lower'),
        figure('systemCpu', 'CPU, % of a core'),
        figure('systemMegabytes', 'memory, MB'),
        figure('systemCpuPerDelivery', 'CPU of a delivery, µs', 'lower'),
      ],
      rows: users.map(each => ({
        label: `${each} users`,
        published: {
          ...(each === 100 && { mean: 'Spring first, Node.js last of seven', systemCpu: 'Node.js nearly 100' }),
        },
        args: () => [
          'chat',
          ...['--clients', String(each), '--rooms', String(count), '--messages', String(messages)],
          ...['--every', `${EVERY_MS}ms`, '--names', '--settle', SETTLE],
        ],
        seconds: ({ name }) =>
          Math.max((messages * EVERY_MS) / 1_000, (each ** 2 / count) * messages * (DELIVERY_US[name] ?? 1) * 1e-6) + 2,
      })),
      notes:
        count === 1
          ? [
              'CPU and memory are of all processes of a system together: of Keycast also fetcher, journal and the simulated backend. A server at its limit takes all the CPU there is for longer, so read CPU with the time.',
              'Keycast keeps each message on disk before anybody is sent it, in the last column in memory; the others keep nothing.',
            ]
          : [],
    }))
  },

  charts: measured => [
    ...measured.map(each => linesByUsers(each, 'mean', { title: 'Time', subtitle: 'mean, ms', log: true })),
    ...measured.map(each => linesByUsers(each, 'systemCpu', { title: 'CPU', subtitle: '% of a core, all processes' })),
    ...measured.map(each => linesByUsers(each, 'systemMegabytes', { title: 'Memory', subtitle: 'MB, all processes' })),
  ],
}
