// docs/metrics.md lists every metric that is exported, and no other.
import { readFileSync } from 'node:fs'
import { withLists } from '../../scripts/metrics-docs.ts'
import type { NamespaceSettings } from '../support/keycast-yaml.ts'
import { startProvider, startSystem } from '../support/system.ts'

test('docs/metrics.md shows what the services export (node scripts/metrics-docs.js writes it)', async () => {
  const provider = await startProvider()
  const namespaces: Record<string, NamespaceSettings> = {
    conversation: { url: `${provider.origin}/conversations/{id}` },
    room: { source: 'journal' },
  }
  const { gateways, fetchers, journal } = await startSystem({ namespaces, journals: 1 })
  const read = async (origin: string) => (await fetch(`${origin}/metrics`)).text()

  const exported = {
    gateway: await read(gateways[0].internal),
    fetcher: await read(`http://127.0.0.1:${fetchers[0].process.listening.metricsPort}`),
    journal: (await journal.internal('/metrics')).body.toString(),
    provider: await read(provider.origin),
  }

  const page = readFileSync(new URL('../../docs/metrics.md', import.meta.url), 'utf8')
  expect(withLists(page, exported)).toBe(page)
})
