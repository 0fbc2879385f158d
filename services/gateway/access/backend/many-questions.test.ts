// Clients with very many keys that backends decide about: what they leave behind costs nobody anything.
import { DEADLINE_MS } from '../../../../test/support/deadline.ts'
import { admitted, createDecidingGateway, KEEP_MS, KEY, viewerOf } from './test-backend.ts'

const keysOf = (prefix: string, count: number, namespace = 'doc') =>
  Array.from({ length: count }, (_, i) => `${namespace}:${prefix}${i}`)

test('one user who asks for very many keys does not keep others waiting', async () => {
  const { backbone, client, decide } = createDecidingGateway()
  const [ann, bob] = [await client('ann'), await client('bob')]
  ann.send({ type: 'subscribe', id: 1, keys: keysOf('', 500).map(key => ({ key })) })
  bob.send({ type: 'subscribe', id: 1, keys: [{ key: KEY }] })
  expect(backbone.questions).toHaveLength(65)
  expect(backbone.questions.at(-1)?.key).toBe(`${KEY}|${viewerOf('bob')}`)
  await decide(admitted)
  expect(backbone.questions).toHaveLength(65)
})

test('when its token expires while thousands of its keys wait to be asked about, each is told, and asked about later', async () => {
  const { backbone, client, clientWith, decide, pass, token, turn } = createDecidingGateway({
    keysPerSessionMax: 20_000,
    requestsPerSecondMax: 20_000,
  })
  const ann = await client('ann', 5)
  const keys = keysOf('', 8_000)
  for (let i = 0; i < keys.length; i += 500) {
    ann.send({ type: 'subscribe', id: i, keys: keys.slice(i, i + 500).map(key => ({ key })) })
  }
  await ann.received()
  await pass(5_250)
  while (backbone.questions.length > 0) await decide(admitted)
  const told = new Set()
  for (const endsAt = performance.now() + DEADLINE_MS; told.size < keys.length - 64; ) {
    expect(performance.now()).toBeLessThan(endsAt)
    for (const { type, code, key } of await ann.received()) {
      if (type === 'error' && code === 'token_expired' && key) told.add(key)
    }
    await turn()
  }
  await clientWith(await token('ann'))
  await pass(1_250)
  const again = new Set()
  for (; backbone.questions.length > 0; await decide(admitted)) again.add(backbone.questions[0].key)
  expect(again.size).toBe(keys.length - 64)
}, 60_000)

test('keys that a client left again are not asked about, and leave nothing behind', async () => {
  const { backbone, client, decide } = createDecidingGateway({ requestsPerSecondMax: 20_000 })
  const ann = await client('ann')
  for (const [id, key] of keysOf('', 1_000).entries()) {
    ann.send({ type: 'subscribe', id, keys: [{ key }] })
    ann.send({ type: 'unsubscribe', id, keys: [key] })
  }
  ann.send({ type: 'subscribe', id: 'last', keys: [{ key: 'doc:last' }] })
  let asked = 0
  for (; backbone.questions.length > 0; asked++) await decide(admitted)
  expect(asked).toBe(65)
  expect(backbone.calls).toEqual(['watch doc:last'])
})

test('a key that one client left is asked about where another waits for it', async () => {
  const { backbone, client, clientWith, decide, pass } = createDecidingGateway()
  const ann = await client('ann')
  const tab = await clientWith(ann.token)
  ann.send({ type: 'subscribe', id: 1, keys: keysOf('', 100).map(key => ({ key })) })
  ann.send({ type: 'subscribe', id: 2, keys: [{ key: 'doc:tab' }, { key: 'doc:got' }] })
  tab.send({ type: 'subscribe', id: 1, keys: [{ key: 'doc:tab' }] })
  tab.send({ type: 'get', id: 2, key: 'doc:got' })
  ann.connection.emit('close', 1000, Buffer.alloc(0))
  const asked: string[] = []
  for (; backbone.questions.length > 0; await decide(admitted)) asked.push(backbone.questions[0].key.split('|')[0])
  expect(asked).toHaveLength(66)
  expect(asked.slice(64)).toEqual(['doc:tab', 'doc:got'])
  expect(backbone.calls).toEqual(['watch doc:tab', 'get doc:got'])
  await pass(KEEP_MS + 250)
  expect(backbone.questions.map(({ key }) => key.split('|')[0])).toEqual(['doc:tab'])
})

test('without a token one address that asks for very many keys does not keep another waiting', async () => {
  const { backbone, connect, decide } = createDecidingGateway()
  const from = (address: string) => connect('', '', { peer: { address, isNamed: true } })
  const [busy, visitor] = [await from('192.0.2.1'), await from('192.0.2.2')]
  busy.send({ type: 'subscribe', id: 1, keys: keysOf('', 500, 'page').map(key => ({ key })) })
  visitor.send({ type: 'get', id: 1, key: 'page:front' })
  await decide(admitted)
  expect(backbone.questions.at(-1)?.key).toBe('page:64|anonymous')
  await decide(admitted)
  expect(backbone.questions.at(-1)?.key).toBe('page:front|anonymous')
})

test('however many addresses of one network ask, it has 32 turns to the one of a visitor', async () => {
  const { backbone, connect, decide } = createDecidingGateway()
  const from = (address: string) => connect('', '', { peer: { address, isNamed: true } })
  for (let n = 0; n < 300; n++) {
    const busy = await from(`2001:db8:1:${n.toString(16)}::/64`)
    busy.send({ type: 'subscribe', id: 1, keys: keysOf(`${n}-`, 2, 'page').map(key => ({ key })) })
  }
  const visitor = await from('192.0.2.2')
  visitor.send({ type: 'get', id: 1, key: 'page:front' })
  let asked = backbone.questions.length
  for (; backbone.questions.at(-1)?.key !== 'page:front|anonymous'; asked++) await decide(admitted)
  expect(asked).toBeLessThanOrEqual(64 + 32 + 1)
})

test('one address whose sessions all wait for one slow word keeps no other from asking', async () => {
  const { connect, backbone } = createDecidingGateway({ getsWaitingMax: 1_000, requestsPerSecondMax: 100_000 })
  const from = (address: string) => connect('', '', { peer: { address, isNamed: true } })
  const refused: string[] = []
  for (let n = 0; n < 21; n++) {
    const busy = await from('192.0.2.1')
    for (let id = 0; id < 1_000; id++) busy.send({ type: 'get', id, key: 'page:slow' })
    for (const { code } of await busy.received()) refused.push(code)
  }
  expect(refused.length).toBeGreaterThan(0)
  expect(new Set(refused)).toEqual(new Set(['too_many_waiting']))
  const visitor = await from('192.0.2.2')
  expect(await visitor.ask({ type: 'get', id: 1, key: 'page:front' })).toEqual([])
  expect(backbone.questions.map(({ key }) => key.split('|')[0])).toEqual(['page:slow', 'page:front'])
})
