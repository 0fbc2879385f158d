// One address takes all that it can of a fetcher node, through two gateways. It is given its share once, and everybody
// else is served as if they were alone.
import { answers, documentOf, startBackend } from './support/backend.ts'
import { connect } from './support/client.ts'
import { startSystem } from './support/system.ts'

const backend = await startBackend()
const { gateways, fetchers } = await startSystem({
  namespaces: {
    doc: { url: `${backend.origin}/docs/{id}`, refresh: '500ms', timeout: '5s', maxAge: '100ms' },
  },
  gateways: 2,
  // Room for 512 keys, of which one address may have half, and another one half of the rest.
  fetcherEnv: { FETCHER_CACHE_BYTES_MAX: '1MiB' },
})
const keys = (name: string, count: number) => Array.from({ length: count }, (_, id) => `doc:${name}-${id}`)

test('an address has one share over all gateways, and another address finds room', async () => {
  const wanted = [keys('one', 200), keys('two', 200)]
  for (const key of [...wanted.flat(), ...keys('other', 50), 'doc:shared']) {
    backend.on(`/docs/${key.slice('doc:'.length)}`, answers.json(documentOf(1)))
  }
  const takers = await Promise.all(gateways.map(({ url }) => connect(url, { from: '192.0.2.1' })))
  await takers[0].subscribe([...wanted[0], 'doc:shared'])
  await takers[1].subscribe(wanted[1])
  const has = (gateway: number, key: string) => takers[gateway].of(key).revision === 1
  const isRefused = (gateway: number, key: string) => takers[gateway].of(key).error?.code === 'capacity'
  const count = (is: (gateway: number, key: string) => boolean) =>
    wanted.flatMap((own, gateway) => own.filter(key => is(gateway, key))).length
  for (const [gateway, own] of wanted.entries()) {
    await takers[gateway].until(
      () => own.every(key => has(gateway, key) || isRefused(gateway, key)),
      'each key having come or been refused',
    )
  }
  expect(count(has)).toBeGreaterThan(200)
  expect(count(has)).toBeLessThanOrEqual(256)
  expect(await fetchers[0].metric('keycast_fetcher_wants_refused_total{code="share"}')).toBeGreaterThan(100)
  expect(await fetchers[0].metric('keycast_fetcher_wants_refused_total{code="capacity"}')).toBe(0)

  const other = await connect(gateways[1].url, { from: '192.0.2.2' })
  await other.subscribe([...keys('other', 50), 'doc:shared'])
  for (const key of [...keys('other', 50), 'doc:shared']) await other.reaches(key, 1)

  // And what the first lets go of, it may have again elsewhere.
  const refused = wanted[1].find(key => isRefused(1, key)) as string
  await takers[0].unsubscribe(wanted[0])
  for (;;) {
    await takers[1].subscribe([refused])
    await takers[1].until(() => has(1, refused) || isRefused(1, refused), 'the key coming or being refused')
    if (has(1, refused)) break
    takers[1].of(refused).error = undefined
  }
  for (const client of [...takers, other]) client.close()
})
