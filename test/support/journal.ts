// A journal as a real process.

import { newFolder } from './cleanup.ts'
import { freePorts } from './free-ports.ts'
import { ask } from './http.ts'
import { type NamespaceSettings, writeConfig } from './keycast-yaml.ts'
import { startService } from './processes.ts'

/** Every message of a test is held, so that all can be counted in the end. */
const namespaces: Record<string, NamespaceSettings> = {
  room: { source: 'journal', history: { messages: 1_000_000, bytes: '1GiB' } },
}

/** @param options `config`: the path of a keycast.yaml */
export async function startJournal({
  folder = newFolder(),
  env = {},
  config = writeConfig(namespaces),
}: {
  folder?: string
  env?: Record<string, string>
  config?: string
} = {}) {
  const common = { KEYCAST_CONFIG: config, JOURNAL_DATA: folder, JOURNAL_METRICS_PORT: '0', ...env }
  const [publicationsPort, deliveriesPort] = await freePorts(2)
  const ports = {
    JOURNAL_PUBLICATIONS_PORT: String(publicationsPort),
    JOURNAL_DELIVERIES_PORT: String(deliveriesPort),
  }
  let process = await startService('journal', { ...common, ...ports })
  return {
    folder,
    node: `127.0.0.1:${publicationsPort}:${deliveriesPort}`,
    process: () => process,
    /** Starts it again, after it has ended, where gateways look for it. */
    async restart(changed: Record<string, string> = {}) {
      process = await startService('journal', { ...common, ...ports, ...changed })
    },
    internal: (path: string) => ask(`http://127.0.0.1:${process.listening.metricsPort}${path}`),
  }
}
