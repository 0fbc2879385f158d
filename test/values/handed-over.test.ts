// Values that the backend hands over: PUT and DELETE /v1/values/{key}.
import { createBackend } from '../../packages/client/backend.js'
import { answers, type Backend, createGate, documentOf, startBackend } from '../support/backend.ts'
import { connect } from '../support/client.ts'
import { eventually, pause } from '../support/deadline.ts'
import { API_TOKEN, type System, startSystem } from '../support/system.ts'

let backend: Backend
let system: System

beforeAll(async () => {
  backend = await startBackend()
  system = await startSystem({
    namespaces: { doc: { url: `${backend.origin}/docs/{id}`, refresh: 0, maxAge: '100ms', timeout: '10s' } },
    gateways: 2,
    fetchers: 2,
  })
})

/** Enough that both nodes own some of them, whatever their ports. */
const KEYS = 24

async function watchers(keys: string[]) {
  const viewers = await Promise.all(system.gateways.map(({ url }) => connect(url)))
  await Promise.all(viewers.map(viewer => viewer.subscribe(keys)))
  return viewers
}

test('a value given to one gateway reaches the viewers of all, and the backend is not asked', async () => {
  const keys = Array.from({ length: KEYS }, (_, id) => `doc:all-${id}`)
  for (const key of keys) backend.on(`/docs/${key.slice(4)}`, answers.json(documentOf(1)))
  const viewers = await watchers(keys)
  await Promise.all(viewers.flatMap(viewer => keys.map(key => viewer.reaches(key, 1))))
  const asked = backend.asked.length

  for (const [index, gateway] of system.gateways.entries()) {
    for (const key of keys) {
      const response = await gateway.put(key, documentOf(index + 2))
      expect([response.status, response.json()]).toEqual([200, { key, taken: true, version: expect.any(String) }])
    }
    await Promise.all(viewers.flatMap(viewer => keys.map(key => viewer.reaches(key, index + 2))))
  }
  expect(backend.asked).toHaveLength(asked)
  for (const { metric } of system.fetchers) {
    expect(await metric('keycast_fetcher_handed_over_total{outcome="taken"}')).toBeGreaterThan(0)
  }
  for (const viewer of viewers) viewer.close()
})

test('what the backend was asked for before does not come after it', async () => {
  const key = 'doc:late'
  backend.on('/docs/late', answers.json(documentOf(1)))
  const viewers = await watchers([key])
  await Promise.all(viewers.map(viewer => viewer.reaches(key, 1)))

  const gate = createGate(answers.json(documentOf(2)))
  backend.on('/docs/late', gate.handler)
  await system.gateways[0].refresh([key])
  await backend.until(() => gate.held() === 1, 'a fetch under way')
  await system.gateways[1].put(key, documentOf(3))
  await Promise.all(viewers.map(viewer => viewer.reaches(key, 3)))
  gate.open()
  // The fetch that follows comes after the one that was held.
  backend.on('/docs/late', answers.json(documentOf(4)))
  await system.gateways[0].refresh([key])
  await Promise.all(viewers.map(viewer => viewer.reaches(key, 4)))

  for (const viewer of viewers) expect(viewer.of(key).revisions).toEqual([1, 3, 4])
  for (const viewer of viewers) viewer.close()
})

test('of two processes that race, the row with the higher number is the last', async () => {
  const key = 'doc:race'
  backend.on('/docs/race', answers.json(documentOf(0)))
  const viewers = await watchers([key])
  const numbers = Array.from({ length: 40 }, (_, index) => index + 1).sort(() => Math.random() - 0.5)
  const responses = await Promise.all(
    numbers.map((number, index) =>
      system.gateways[index % 2].put(key, documentOf(number), { 'keycast-order': String(number) }),
    ),
  )
  await Promise.all(viewers.map(viewer => viewer.reaches(key, 40)))
  const taken = responses.map(response => response.json())
  expect(taken[numbers.indexOf(40)]).toMatchObject({ taken: true })
  const late = await system.gateways[0].put(key, documentOf(7), { 'keycast-order': '7' })
  expect(late.json()).toEqual({ key, taken: false, order: 40 })
  for (const viewer of viewers) expect(viewer.of(key).revision).toBe(40)
  for (const viewer of viewers) viewer.close()
})

test('a batch reaches everybody, the last line of a key at last', async () => {
  const keys = Array.from({ length: KEYS }, (_, id) => `doc:batch-${id}`)
  for (const key of keys) backend.on(`/docs/${key.slice(4)}`, answers.json(documentOf(0)))
  const viewers = await watchers(keys)
  const lines = Array.from({ length: 50 * KEYS }, (_, index) => ({
    key: keys[index % KEYS],
    value: { revision: Math.floor(index / KEYS) + 1 },
    order: index,
  }))
  const response = await system.gateways[1].putAll([...lines, { ...lines[0], order: 0 }])
  expect([response.status, response.json()]).toEqual([
    200,
    { taken: lines.length, older: [{ line: lines.length + 1, order: 49 * KEYS }] },
  ])
  await Promise.all(viewers.flatMap(viewer => keys.map(key => viewer.reaches(key, 50))))
  for (const viewer of viewers) viewer.close()
})

test('a value is whatever its type says: text, bytes, or nothing', async () => {
  backend.on('/docs/typed', answers.json(documentOf(1)))
  const viewers = await watchers(['doc:typed'])
  await Promise.all(viewers.map(viewer => viewer.reaches('doc:typed', 1)))
  for (const [type, data] of [
    ['text/plain', 'Milk, eggs'],
    ['text/plain', ''],
    ['application/json', '"last"'],
  ]) {
    const response = await system.gateways[0].put('doc:typed', data, { 'content-type': type })
    expect(response.status).toBe(200)
    const shown = type === 'application/json' ? JSON.parse(data) : data
    await Promise.all(
      viewers.map(viewer => viewer.until(() => viewer.of('doc:typed').data === shown, `${type}: ${data}`)),
    )
  }
  for (const viewer of viewers) viewer.close()
})

test('a key that is removed is not found until it is there again', async () => {
  const key = 'doc:gone'
  backend.on('/docs/gone', answers.json(documentOf(1)))
  const viewers = await watchers([key])
  await Promise.all(viewers.map(viewer => viewer.reaches(key, 1)))
  expect((await system.gateways[0].remove(key)).json()).toEqual({ key, taken: true })
  await Promise.all(viewers.map(viewer => viewer.until(() => viewer.of(key).error?.code === 'not_found', 'no value')))
  await system.gateways[1].put(key, documentOf(2))
  await Promise.all(viewers.map(viewer => viewer.reaches(key, 2)))
  for (const viewer of viewers) viewer.close()
})

test('a backend hands over, removes and has refreshed through the library for backends', async () => {
  const keys = Array.from({ length: KEYS }, (_, id) => `doc:library-${id}`)
  for (const key of keys) backend.on(`/docs/${key.slice(4)}`, answers.json(documentOf(1)))
  const viewers = await watchers(keys)
  const all = (revision: number) =>
    Promise.all(viewers.flatMap(viewer => keys.map(key => viewer.reaches(key, revision))))
  await all(1)
  const keycast = createBackend(system.gateways[0].internal, { token: API_TOKEN })

  for (const key of keys) backend.on(`/docs/${key.slice(4)}`, answers.json(documentOf(2)))
  await Promise.all(keys.map(key => keycast.refresh(key)))
  await all(2)
  for (const key of keys) await keycast.put(key, { revision: 3 }, { order: 3 })
  await all(3)
  expect(await keycast.put(keys[0], { revision: 2 }, { order: 2 })).toEqual({ key: keys[0], taken: false, order: 3 })
  const lines = keys.map(key => ({ key, value: { revision: 4 }, order: 4 }))
  expect(await keycast.putAll(lines)).toEqual({ taken: KEYS, older: [] })
  await all(4)
  await keycast.delete(keys[0], { order: 5 })
  await Promise.all(
    viewers.map(viewer => viewer.until(() => viewer.of(keys[0]).error?.code === 'not_found', 'no value')),
  )

  backend.on('/docs/library-1', answers.json(documentOf(5)))
  const refused = await Promise.allSettled([keycast.refresh('nothing:1'), keycast.refresh(keys[1])])
  expect(refused.map(({ status }) => status)).toEqual(['rejected', 'fulfilled'])
  await Promise.all(viewers.map(viewer => viewer.reaches(keys[1], 5)))
  await expect(keycast.put('nothing:1', 1)).rejects.toMatchObject({ code: 'unknown_namespace', status: 404 })
  expect((await keycast.access({ key: keys[1] })).verbs.read.allowed).toBe(true)
  expect(await keycast.revoke({ sub: 'ann' })).toMatchObject({ sub: 'ann', sessionsEnded: 0 })
  await keycast.close()
  for (const viewer of viewers) viewer.close()
})

test('while its owner is away the backend is told that nothing, or perhaps, was taken; then it goes to the next', async () => {
  const own = await startSystem({
    namespaces: { doc: { url: `${backend.origin}/docs/{id}`, refresh: 0, timeout: '2s' } },
    gateways: 2,
    fetchers: 2,
  })
  backend.on('/docs/moved', answers.json(documentOf(1)))
  const viewer = await connect(own.gateways[0].url)
  await viewer.subscribe(['doc:moved'])
  await viewer.reaches('doc:moved', 1)
  // Both gateways take the same node for the owner.
  await Promise.all(own.gateways.map(gateway => gateway.usesAllNodes()))
  const { owner } = await own.gateways[0].inspect('doc:moved')
  const [lost] = own.fetchers.filter(({ node }) => node === owner.node)
  backend.on('/docs/moved', answers.json(documentOf(2)))
  lost.process.signal('SIGSTOP')
  const refused = await own.gateways[1].put('doc:moved', documentOf(2))
  expect([refused.status, refused.json().code]).toEqual([503, 'fetcher_unavailable'])
  // The viewer's gateway may notice later that the owner is away, and has the next ask the backend then.
  backend.on('/docs/moved', answers.json(documentOf(3)))
  // A gateway that stood still may take the owner for alive a little longer.
  const isTaken = async (revision: number) =>
    (await own.gateways[1].put('doc:moved', documentOf(revision))).status === 200
  await eventually(() => isTaken(3), 'the next owner taking the value')
  await viewer.reaches('doc:moved', 3)
  // Awake again, it reads what nobody waits for any more.
  lost.process.signal('SIGCONT')
  backend.on('/docs/moved', answers.json(documentOf(4)))
  await eventually(() => isTaken(4), 'an owner taking the value')
  await viewer.reaches('doc:moved', 4)
  await own.stop()
})

test('while nodes fall silent and come back nobody is given an older value, and all end at the last', async () => {
  const keys = Array.from({ length: 20 }, (_, id) => `doc:silent-${id}`)
  const revisions = new Map(keys.map(key => [key, 1]))
  for (const key of keys) {
    backend.on(`/docs/${key.slice(4)}`, (request, response) =>
      answers.json(documentOf(revisions.get(key) as number))(request, response),
    )
  }
  const own = await startSystem({
    namespaces: { doc: { url: `${backend.origin}/docs/{id}`, refresh: 0, timeout: '2s' } },
    gateways: 2,
    fetchers: 2,
  })
  const viewers = await Promise.all(own.gateways.map(({ url }) => connect(url)))
  await Promise.all(viewers.map(viewer => viewer.subscribe(keys)))
  let isCalm = false
  const statuses = new Set<number>()
  /** A process of the backend: it changes its rows one after the other, each before it says so. */
  async function write(
    own: { put: (key: string, body: string, headers: Record<string, string>) => any },
    rows: string[],
  ) {
    for (let turn = 0; !isCalm || turn % rows.length !== 0; turn++) {
      const key = rows[turn % rows.length]
      const revision = (revisions.get(key) as number) + 1
      revisions.set(key, revision)
      const order = { 'keycast-order': String(revision) }
      let status = 0
      do {
        ;({ status } = await own.put(key, documentOf(revision), order))
        statuses.add(status)
      } while (isCalm && status !== 200)
    }
  }
  const writers = own.gateways.map((gateway, index) =>
    write(
      gateway,
      keys.filter((_, id) => id % 2 === index),
    ),
  )
  // Shorter than it takes to be given up, and longer.
  for (const [index, ms] of [1_000, 4_500, 2_500, 5_500].entries()) {
    const { process } = own.fetchers[index % 2]
    process.signal('SIGSTOP')
    await pause(ms)
    process.signal('SIGCONT')
    await pause(500)
  }
  isCalm = true
  await Promise.all(writers)
  await Promise.all(viewers.flatMap(viewer => keys.map(key => viewer.reaches(key, revisions.get(key) as number))))
  expect([...statuses].sort()).toEqual([200, 503])
  await own.stop()
})

// Last, for it kills a node of the system that all share.
test('the next owner knows the number of what viewers have', async () => {
  backend.on('/docs/ranked', answers.json(documentOf(1)))
  const viewer = await connect(system.gateways[0].url)
  await viewer.subscribe(['doc:ranked'])
  await viewer.reaches('doc:ranked', 1)
  await system.gateways[1].put('doc:ranked', documentOf(10), { 'keycast-order': '10' })
  await viewer.reaches('doc:ranked', 10)
  backend.on('/docs/ranked', answers.json(documentOf(10)))
  const { owner } = await system.gateways[0].inspect('doc:ranked')
  const [lost] = system.fetchers.filter(({ node }) => node === owner.node)
  const [next] = system.fetchers.filter(({ node }) => node !== owner.node)
  await lost.process.kill()
  const watched = async () => (await next.metric('keycast_fetcher_watched_keys')) === 1
  await eventually(watched, 'the other node having the key')
  const ownerNow = async () => (await system.gateways[1].inspect('doc:ranked')).owner.node
  await eventually(async () => (await ownerNow()) === next.node, 'the other gateway asking it, too')
  const late = await system.gateways[1].put('doc:ranked', documentOf(5), { 'keycast-order': '5' })
  expect(late.json()).toEqual({ key: 'doc:ranked', taken: false, order: 10 })
  expect(viewer.of('doc:ranked').revision).toBe(10)
})
