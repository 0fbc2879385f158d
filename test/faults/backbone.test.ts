// The link between a gateway and a fetcher node goes silent and recovers: both ends notice, and all viewers converge.
import { answers, documentOf, startBackend } from '../support/backend.ts'
import { startBlackhole } from '../support/blackhole.ts'
import { connect } from '../support/client.ts'
import { eventually, pause } from '../support/deadline.ts'
import { msSince, show } from '../support/figures.ts'
import { nodeAt, startSystem } from '../support/system.ts'

const backend = await startBackend()
const namespaces = { doc: { url: `${backend.origin}/docs/{id}`, refresh: '100ms', timeout: '500ms' } }
const { fetchers, startGateway } = await startSystem({ gateways: 0, namespaces })
const [{ ports }] = fetchers
/** The control: it reaches the node itself. */
const direct = await startGateway({ FETCHER_NODES: nodeAt(ports) })

const put = (keys: string[], revision: number) => {
  for (const key of keys) backend.on(`/docs/${key.slice(4)}`, answers.json(documentOf(revision)))
}

/** What goes silent. */
const [REQUESTS, REPLIES] = [0, 1]
const BOTH = [REQUESTS, REPLIES]
// Shorter than the 3 s after which a peer counts as dead, and longer.
const [SHORT_MS, LONG_MS] = [1_500, 5_000]

const silences: { name: string; how: 'hold' | 'drop'; forMs: number; where: number[]; what: string }[] = [
  { name: 'short-loss', how: 'drop', forMs: SHORT_MS, where: BOTH, what: 'loses messages for a moment' },
  { name: 'short-delay', how: 'hold', forMs: SHORT_MS, where: BOTH, what: 'delays everything for a moment' },
  { name: 'lost-requests', how: 'drop', forMs: SHORT_MS, where: [REQUESTS], what: 'loses requests for a moment' },
  { name: 'lost-answers', how: 'drop', forMs: SHORT_MS, where: [REPLIES], what: 'loses answers for a moment' },
  { name: 'long-loss', how: 'drop', forMs: LONG_MS, where: BOTH, what: 'loses messages until both ends give it up' },
  {
    name: 'long-delay',
    how: 'hold',
    forMs: LONG_MS,
    where: BOTH,
    what: 'delays everything until both ends give it up',
  },
]

// Beside each other: each has a gateway of its own, and waits for the most part.
test.concurrent.each(silences)('a link that silently $what', async ({ name, how, forMs, where: places }) => {
  const proxies = await Promise.all([startBlackhole(ports.requestsPort), startBlackhole(ports.answersPort)])
  const [requestsPort, answersPort] = proxies.map(({ port }) => port)
  const behindProxy = await startGateway({ FETCHER_NODES: nodeAt({ requestsPort, answersPort }) })
  const where = places.map(place => proxies[place])
  const keys = Array.from({ length: 20 }, (_, index) => `doc:${name}-${index}`)
  const left = keys.slice(0, 5)
  const added = Array.from({ length: 5 }, (_, index) => `doc:${name}-new-${index}`)
  put([...keys, ...added], 1)
  const viewer = await connect(behindProxy.url)
  const control = await connect(direct.url)
  await Promise.all([viewer, control].map(client => client.subscribe(keys)))
  for (const client of [viewer, control]) for (const key of keys) await client.reaches(key, 1)

  const swallowed = () => where.reduce((sum, proxy) => sum + proxy.swallowed(), 0)
  const before = swallowed()
  for (const proxy of where) proxy.swallow(how)
  const silentAt = performance.now()
  // Said while nobody hears it: other content, other wishes. Where answers get through, what is left has changed later.
  put(keys.slice(5), 2)
  await viewer.unsubscribe(left)
  put(left, 2)
  await viewer.subscribe(added)
  await Promise.all(keys.map(key => control.reaches(key, 2)))
  if (forMs === LONG_MS) {
    await viewer.until(() => keys.slice(5).every(key => viewer.of(key).stale), 'to be told that the values are stale')
    show(`${name}: viewers told after ${msSince(silentAt)}`)
  }
  await pause(silentAt + forMs - performance.now())
  await eventually(() => swallowed() > before, 'something being lost or delayed')
  put([...keys, ...added], 3)
  for (const proxy of where) proxy.mend()
  const mendedAt = performance.now()

  for (const key of [...keys.slice(5), ...added]) await viewer.reaches(key, 3)
  for (const key of keys) await control.reaches(key, 3)
  show(`${name}: converged ${msSince(mendedAt)} after mending`)
  for (const key of left) expect(viewer.of(key).revision).toBe(1)

  // Nobody watches through the proxy any more what was left while it was silent, or after.
  for (const client of [viewer, control]) client.close()
  const total = () => backend.asked.filter(({ path }) => path.includes(name)).length
  let seen = -1
  await eventually(async () => {
    const quiet = total() === seen
    seen = total()
    await pause(400)
    return quiet
  }, 'the end of requests for keys nobody watches')
})
