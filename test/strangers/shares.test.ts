// One address takes all that it can of a fetcher node, through two gateways. It is given its share once, and everybody
// else is served as if they were alone.
import { answers, documentOf, startBackend } from '../support/backend.ts'
import { connect } from '../support/client.ts'
import { eventually } from '../support/deadline.ts'
import { startSystem } from '../support/system.ts'

const backend = await startBackend()
const { gateways, fetchers, startGateway } = await startSystem({
  namespaces: {
    doc: { url: `${backend.origin}/docs/{id}`, refresh: '500ms', timeout: '5s', maxAge: '100ms' },
    now: { url: `${backend.origin}/now/{id}`, refresh: '1h', maxAge: '0s' },
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
  await eventually(async () => {
    takers[1].of(refused).error = undefined
    await takers[1].subscribe([refused])
    await takers[1].until(() => has(1, refused) || isRefused(1, refused), 'the key coming or being refused')
    return has(1, refused)
  }, 'room for the key')
  // One that goes on in place of waiting is closed, and the others are served all along. A gateway that allows few requests
  // refuses enough of them in a moment, on a slow machine too.
  const more = keys('more', 400)
  for (const key of more) backend.on(`/docs/${key.slice('doc:'.length)}`, answers.json(documentOf(1)))
  await takers[0].subscribe(more)
  const refusedOf = () => more.find(key => takers[0].of(key).error?.code === 'capacity')
  await takers[0].until(refusedOf, 'a refusal')
  expect(takers[0].of(refusedOf() as string).error).toMatchObject({ subscribed: false, retryAfterMs: 5_000 })
  const { url } = await startGateway({ GATEWAY_REQUESTS_PER_SECOND_MAX: '100' })
  const impatient = await connect(url, { from: '192.0.2.1' })
  const key = refusedOf() as string
  await impatient.subscribe([key])
  await impatient.until(() => impatient.of(key).error?.code === 'capacity', 'a refusal')
  // Of requests that were not early so many would be within the limits.
  for (let n = 0; n < 295; n++) impatient.send({ type: 'subscribe', keys: [key] })
  expect((await impatient.gone()).code).toBe(4007)
  backend.on('/docs/other-0', answers.json(documentOf(2)))
  await other.reaches('doc:other-0', 2)
  for (const client of [...takers, other]) client.close()
})

test('a thousand gets of an invented key cost the backend a few, and others hear at once that it was made', async () => {
  const [stranger, elsewhere, maker] = await Promise.all([
    connect(gateways[0].url, { from: '192.0.2.3' }),
    connect(gateways[1].url, { from: '192.0.2.3' }),
    connect(gateways[1].url, { from: '192.0.2.4' }),
  ])
  const get = { type: 'get', key: 'now:invented' }
  for (let n = 0; n < 500; n++) {
    expect(await stranger.request(get)).toMatchObject({ type: 'error', code: 'not_found' })
    expect(await elsewhere.request(get)).toMatchObject({ type: 'error', code: 'not_found' })
  }
  // They double: half an hour of it would be as many.
  expect(backend.askedFor('/now/invented').length).toBeLessThan(20)
  expect(await maker.request(get)).toMatchObject({ type: 'error', code: 'not_found' })
  backend.on('/now/invented', answers.json(documentOf(1)))
  expect(await maker.request(get)).toMatchObject({ type: 'value', key: 'now:invented' })
  for (const client of [stranger, elsewhere, maker]) client.close()
})
