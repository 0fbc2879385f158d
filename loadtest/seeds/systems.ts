// The systems that seeds are run against.

/** @typedef {import('./seed.ts').System} System */

const labels = {
  http: 'node:http',
  naive: 'ws',
  cluster: 'ws, node:cluster',
  'socket.io': 'Socket.IO',
  socketcluster: 'SocketCluster',
}

/**
 * @param {number} [gateways]
 * @param {{ log?: 'memory' }} [options] `log`: where rooms are kept, if not on disk
 * @returns {System}
 */
export const keycast = (gateways = 1, { log } = {}) => ({
  name: `keycast-${gateways}${log ? `-${log}` : ''}`,
  label: `Keycast${gateways > 1 ? `, ${gateways} gateways` : ''}${log ? `, in ${log}` : ''}`,
  isKeycast: true,
  isAside: log !== undefined,
  args: ['--start', 'keycast', '--gateways', String(gateways), ...(log ? ['--log', log] : [])],
})

/** @param {keyof typeof labels} kind @param {number} [processes] @returns {System} */
export const reference = (kind, processes = 1) => ({
  name: `${kind}-${processes}`,
  label: `${labels[kind]}${processes > 1 ? ` × ${processes}` : ''}`,
  isKeycast: false,
  args: ['--start', kind, ...(processes > 1 ? ['--gateways', String(processes)] : [])],
})

/** @param {string} name of a figure of the scenario @param {string} label @param {'higher' | 'lower'} [better] @returns {import('./seed.ts').Measure} */
export const figure = (name, label, better) => ({
  name,
  label,
  better,
  of: ({ figures }) => figures[name]?.value ?? undefined,
})
