// The load on the backend depends on keys and freshness, never on the number of viewers, gateways or fetcher nodes: it is
// counted in a time.
import { type Client, connect } from '../support/client.ts'
import { eventually, pause } from '../support/deadline.ts'
import { show } from '../support/figures.ts'
import { startProvider, startSystem } from '../support/system.ts'

const connectMany = async (url: string, count: number) => {
  const clients = []
  // In portions that fit the listener's backlog.
  while (clients.length < count) {
    const portion = Math.min(100, count - clients.length)
    clients.push(...(await Promise.all(Array.from({ length: portion }, () => connect(url)))))
  }
  return clients
}

describe('1,000 sessions on 100 keys through two gateways and two fetcher nodes', () => {
  const REFRESH_MS = 1_000
  const REFRESHES = 5
  const KEYS = Array.from({ length: 100 }, (_, index) => `conversation:${index}`)
  const KEYS_PER_SESSION = 5

  let provider: Awaited<ReturnType<typeof startProvider>>
  let clients: Client[]
  let stop: () => Promise<unknown>

  beforeAll(async () => {
    provider = await startProvider({ PROVIDER_DOCUMENT_BYTES: '2000', PROVIDER_CHANGE_MS: '500' })
    const system = await startSystem({
      gateways: 2,
      fetchers: 2,
      namespaces: { conversation: { url: `${provider.origin}/conversations/{id}`, refresh: `${REFRESH_MS}ms` } },
    })
    clients = (await Promise.all(system.gateways.map(({ url }) => connectMany(url, 500)))).flat()
    stop = system.stop
  })

  afterAll(() => stop())

  test('cost each key one request per refresh, and one at the beginning', async () => {
    await provider.reset()
    const startedAt = performance.now()
    await Promise.all(
      clients.map((client, index) =>
        client.subscribe(Array.from({ length: KEYS_PER_SESSION }, (_, n) => KEYS[(index + n * 20) % KEYS.length])),
      ),
    )
    let totals: number[] = []
    // The figure means something only if the keys were refreshed and everybody was served.
    await eventually(async () => {
      const { byKey } = await provider.stats()
      const passedMs = performance.now() - startedAt
      totals = KEYS.map(key => byKey[`/conversations/${key.split(':')[1]}`]?.total ?? 0)
      expect(Math.max(...totals)).toBeLessThanOrEqual(Math.ceil(passedMs / REFRESH_MS) + 1)
      return Math.min(...totals) >= REFRESHES
    }, `${REFRESHES} requests a key`)
    for (const client of clients) {
      expect(client.sights.keys()).toHaveLength(KEYS_PER_SESSION)
      for (const key of client.sights.keys()) {
        await client.until(() => client.of(key).values > 1, `a second value of ${key}`)
      }
    }
    const values = clients.reduce(
      (sum, client) => sum + client.sights.keys().reduce((sum, key) => sum + client.of(key).values, 0),
      0,
    )
    show(
      `1,000 sessions, ${1_000 * KEYS_PER_SESSION} subscriptions, ${values} values: ` +
        `${Math.min(...totals)} to ${Math.max(...totals)} requests a key`,
    )
  })

  test('cost it nothing once the last viewer has left', async () => {
    for (const client of clients) client.close()
    await Promise.all(clients.map(client => client.gone()))

    const total = async () => (await provider.stats()).requests.conversations.total
    let before = await total()
    // An unwatched key is asked for one more second; then two whole periods must pass without a request.
    await eventually(async () => {
      await pause(2 * REFRESH_MS)
      const now = await total()
      const quiet = now === before
      before = now
      return quiet
    }, 'the end of requests')
  })
})
