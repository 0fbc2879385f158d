// The systems that seeds are run against.
import type { Measure, System } from './seed.ts'

const labels = {
  http: 'node:http',
  naive: 'ws',
  cluster: 'ws, node:cluster',
  'socket.io': 'Socket.IO',
  socketcluster: 'SocketCluster',
}

/** @param options `log`: where rooms are kept, if not on disk */
export const keycast = (gateways = 1, { log }: { log?: 'memory' } = {}): System => ({
  name: `keycast-${gateways}${log ? `-${log}` : ''}`,
  label: `Keycast${gateways > 1 ? `, ${gateways} gateways` : ''}${log ? `, in ${log}` : ''}`,
  isKeycast: true,
  isAside: log !== undefined,
  args: ['--start', 'keycast', '--gateways', String(gateways), ...(log ? ['--log', log] : [])],
})

export const reference = (kind: keyof typeof labels, processes = 1): System => ({
  name: `${kind}-${processes}`,
  label: `${labels[kind]}${processes > 1 ? ` × ${processes}` : ''}`,
  isKeycast: false,
  args: ['--start', kind, ...(processes > 1 ? ['--gateways', String(processes)] : [])],
})

/** @param name of a figure of the scenario */
export const figure = (name: string, label: string, better?: 'higher' | 'lower'): Measure => ({
  name,
  label,
  better,
  of: ({ figures }) => figures[name]?.value ?? undefined,
})
