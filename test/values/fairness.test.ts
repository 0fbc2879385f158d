// Namespaces of one backend: one hangs and one fails, and the others are served as if they were alone.
import { answers, documentOf, startBackend } from '../support/backend.ts'
import { connect } from '../support/client.ts'
import { eventually } from '../support/deadline.ts'
import { startSystem } from '../support/system.ts'

const backend = await startBackend()
const namespaceOf = (path: string, refresh: string) => ({
  url: `${backend.origin}/${path}/{id}`,
  refresh,
  timeout: '5s',
  maxAge: '100ms',
})
const { gateways, fetchers } = await startSystem({
  namespaces: {
    hangs: namespaceOf('hangs', '1s'),
    fails: namespaceOf('fails', '1s'),
    doc: namespaceOf('docs', '200ms'),
  },
  fetcherEnv: { FETCHER_IN_FLIGHT_MAX: '16' },
})
const keys = (namespace: string, count: number) => Array.from({ length: count }, (_, id) => `${namespace}:${id}`)

test('a namespace that hangs and one that fails keep nothing from another of the same backend', async () => {
  for (let id = 0; id < 60; id++) {
    backend.on(`/hangs/${id}`, answers.silence())
    backend.on(`/fails/${id}`, answers.status(500))
  }
  const stranger = await connect(gateways[0].url)
  await stranger.subscribe([...keys('hangs', 60), ...keys('fails', 60)])
  const open = (namespace: string) =>
    fetchers[0].metric(`keycast_fetcher_breaker_open{origin="${backend.origin}",namespace="${namespace}"}`)
  await eventually(async () => (await open('fails')) === 1, 'the breaker of what fails being open')

  const viewer = await connect(gateways[0].url)
  for (let id = 0; id < 5; id++) backend.on(`/docs/${id}`, answers.json(documentOf(1)))
  await viewer.subscribe(keys('doc', 5))
  for (const key of keys('doc', 5)) await viewer.reaches(key, 1)
  for (let id = 0; id < 5; id++) backend.on(`/docs/${id}`, answers.json(documentOf(2)))
  for (const key of keys('doc', 5)) await viewer.reaches(key, 2)

  expect(await open('doc')).toBe(0)
  // Those that hang were asked first, and none had timed out: they have all the room that one namespace may have.
  const hanging = backend.asked.filter(({ path }) => path.startsWith('/hangs/'))
  expect(hanging.length).toBeGreaterThanOrEqual(8)
  stranger.close()
  viewer.close()
})
