// The programs of others that stand beside Keycast: nginx before it, as proxy or as cache, and a Valkey behind its journal.
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { edgeConfig } from './edge.ts'
import type { Processes } from './processes.ts'

/** With the settings that a journal asks for. */
export async function startValkey(processes: Processes, directory: string) {
  const [port] = await freePorts(1)
  const { pid } = await processes.start(
    'valkey',
    [
      ...['--port', String(port), '--bind', '127.0.0.1', '--dir', directory, '--save', ''],
      ...['--appendonly', 'yes', '--appendfsync', 'always', '--maxmemory-policy', 'noeviction'],
    ],
    {},
    line => (line.includes('Ready to accept connections') ? {} : undefined),
    'valkey-server',
  )
  return { url: `valkey://127.0.0.1:${port}`, watched: { name: 'valkey', role: 'valkey', pid } }
}

/** nginx with TLS, as keycast proxy starts it. */
export async function startProxy(processes: Processes, ports: number[], directory: string) {
  const [httpPort, httpsPort] = await freePorts(2)
  const proxy = await processes.start(
    'proxy',
    [
      'cli/keycast.js',
      'proxy',
      ...ports.flatMap(port => ['--gateway', `127.0.0.1:${port}`]),
      ...['--http-port', String(httpPort), '--https-port', String(httpsPort)],
      // All clients come from this host: nginx's limits per address would refuse most of them.
      ...['--exempt', '127.0.0.0/8', '--directory', join(directory, 'proxy')],
    ],
    // Two connections per client, as many as a process may open files. And no log line on disk for each client.
    { PROXY_WORKER_CONNECTIONS: '19900', PROXY_ACCESS_LOG: '/dev/null' },
    line => (line.startsWith('proxy: https://') ? {} : undefined),
  )
  return { ...proxy, url: `wss://127.0.0.1:${httpsPort}/ws` }
}

/** nginx as docs/deploy/cdn.md has it. */
export async function startEdge(processes: Processes, gateways: number[], directory: string) {
  const [port] = await freePorts(1)
  const folder = join(directory, 'edge')
  mkdirSync(folder)
  // The workers of an nginx that root started are another user.
  for (const each of [directory, folder]) chmodSync(each, 0o755)
  const file = join(folder, 'nginx.conf')
  writeFileSync(file, edgeConfig({ folder, port, gateways }))
  const edge = await processes.start(
    'edge',
    ['-c', file, '-e', 'stderr'],
    { PATH: `${process.env.PATH}:/usr/sbin` },
    line => (line.includes('start worker process ') ? {} : undefined),
    'nginx',
  )
  return { ...edge, url: `http://127.0.0.1:${port}` }
}

/** Ports that were free a moment ago, for programs that cannot choose one themselves. */
async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer())
  const ports = await Promise.all(
    servers.map(
      server =>
        new Promise<number>(resolve => {
          server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port))
        }),
    ),
  )
  await Promise.all(servers.map(server => new Promise(resolve => server.close(resolve))))
  return ports
}
