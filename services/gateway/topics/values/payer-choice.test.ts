// The payers at the fetcher of a gateway's keys.
import { readRule } from '../../access/rule.ts'
import { createTestGateway } from '../../test-support.ts'
import { ENTRY_BYTES } from './cache.ts'

const subscribe = (...keys: string[]) => ({ type: 'subscribe', id: 1, keys: keys.map(key => ({ key })) })
const many = (name: string, count: number) => Array.from({ length: count }, (_, id) => `tick:${name}${id}`)

/** Clients of a gateway, each at an address of its own. */
function setup(settings: { cacheBytesMax?: number } = {}) {
  const test = createTestGateway({ settings: { trustedProxies: '', ...settings } })
  const at = (address: string) => test.connect('', '', { peer: { address, isNamed: true } })
  const { backbone } = test
  return { ...test, at, renewals: () => backbone.calls.filter(call => call.startsWith('renewWatch')) }
}

test('the first who wants a key pays for it, and another once that one has left', async () => {
  const { backbone, at, renewals } = setup()
  const [first, second] = [await at('192.0.2.1'), await at('192.0.2.2')]
  await first.ask(subscribe('tick:1'))
  const payer = backbone.payer('tick:1')
  expect(payer).toMatch(/^a[\w-]{11}$/)
  await second.ask(subscribe('tick:1'))
  expect([backbone.payer('tick:1'), renewals()]).toEqual([payer, []])

  await first.ask({ type: 'unsubscribe', id: 2, keys: ['tick:1'] })
  expect(backbone.payer('tick:1')).not.toBe(payer)
  expect(renewals()).toEqual(['renewWatch tick:1'])
})

test('a key that nobody wants any more keeps none who wanted it, nor what came of them unfinished', async () => {
  const { gateway, backbone, at } = setup()
  const client = await at('192.0.2.1')
  await client.ask(subscribe('tick:1'))
  expect(gateway.waits.peek('tick:1')?.paying).toBe(client.connection.session)
  backbone.value('tick:1', '1')
  client.connection.terminate()
  expect(gateway.waits.peek('tick:1')).toMatchObject({ value: {}, paying: undefined })
})

test('one who holds many keys gives over to one who holds few', async () => {
  const { backbone, at, renewals } = setup()
  const [first, second] = [await at('192.0.2.1'), await at('192.0.2.2')]
  await first.ask(subscribe(...many('own', 200), 'tick:1'))
  const payer = backbone.payer('tick:1')
  await second.ask(subscribe('tick:1'))
  expect(backbone.payer('tick:1')).not.toBe(payer)
  expect(renewals()).toEqual(['renewWatch tick:1'])
})

test('where a payer has had their share, only their subscriptions end, and the key is asked for in the name of others', async () => {
  const { backbone, at, renewals } = setup()
  const [first, second] = [await at('192.0.2.1'), await at('192.0.2.2')]
  await first.ask(subscribe('tick:1'))
  await second.ask(subscribe('tick:1'))
  const payer = backbone.payer('tick:1')

  backbone.failed('tick:1', 'capacity', { payer, retryAfterMs: 5_000, message: 'too much' })
  expect(await first.received()).toMatchObject([
    { type: 'error', key: 'tick:1', subscribed: false, code: 'capacity', retryAfterMs: 5_000, message: 'too much' },
  ])
  expect(await second.received()).toEqual([])
  expect(renewals().length).toBeGreaterThan(0)
  expect(backbone.payer('tick:1')).not.toBe(payer)
  backbone.value('tick:1', '1')
  expect(await second.received()).toMatchObject([{ type: 'value', data: 1 }])
})

test('nobody is left where all have had their share: nothing is asked for', async () => {
  const { backbone, at } = setup()
  const client = await at('192.0.2.1')
  await client.ask(subscribe('tick:1'))
  backbone.failed('tick:1', 'capacity', { payer: backbone.payer('tick:1'), retryAfterMs: 5_000 })
  await client.received()
  expect(backbone.calls).toEqual(['watch tick:1', 'unwatch tick:1'])
})

test('a get of one who has had their share ends alone', async () => {
  const { backbone, at } = setup()
  const [first, second] = [await at('192.0.2.1'), await at('192.0.2.2')]
  first.send({ type: 'get', id: 1, key: 'tick:1' })
  second.send({ type: 'get', id: 2, key: 'tick:1' })
  backbone.failed('tick:1', 'capacity', { payer: backbone.payer('tick:1'), retryAfterMs: 5_000 })
  expect(await first.received()).toMatchObject([{ type: 'error', id: 1, code: 'capacity', retryAfterMs: 5_000 }])
  expect(backbone.calls).toEqual(['get tick:1', 'get tick:1'])
  backbone.value('tick:1', '1')
  expect(await second.received()).toMatchObject([{ type: 'value', id: 2, data: 1 }])
})

test('where users have tokens, all without one pay as guests', async () => {
  const tokens = [{}] as never
  const { anonymous } = { anonymous: readRule({ read: ['*:**'] }, { user: false, strict: true }).rule }
  const test = createTestGateway({ policy: { tokens, anonymous } })
  const client = await test.connect('', '', { peer: { address: '192.0.2.1', isNamed: true } })
  await client.ask(subscribe('tick:1'))
  expect(test.backbone.payer('tick:1')).toMatch(/^g\.A[\w-]{11}$/)
})

test('an old not_found is for the one who asked in vain, and those who came meanwhile are asked for', async () => {
  const { backbone, at } = setup()
  const [first, second] = [await at('192.0.2.1'), await at('192.0.2.2')]
  const get = { type: 'get', id: 1, key: 'tick:1' }
  await first.ask(get)
  const payer = backbone.payer('tick:1', 'get')
  await second.ask(get)
  expect(backbone.calls).toEqual(['get tick:1'])

  backbone.failed('tick:1', 'not_found', { onlyFor: payer, ageMs: 30_000, maxAgeMs: 1_000, retryAfterMs: 20_000 })
  expect(await first.received()).toMatchObject([{ type: 'error', code: 'not_found', retryAfterMs: 20_000 }])
  expect(await second.received()).toEqual([])
  expect(backbone.calls).toEqual(['get tick:1', 'get tick:1'])
  expect(backbone.payer('tick:1', 'get')).not.toBe(payer)
  backbone.value('tick:1', '1')
  expect(await second.received()).toMatchObject([{ type: 'value', data: 1 }])
})

test('a get counts for whoever asks, though another watches the key', async () => {
  const { backbone, at } = setup()
  const [watcher, asker] = [await at('192.0.2.1'), await at('192.0.2.2')]
  await watcher.ask(subscribe('tick:1'))
  await asker.ask({ type: 'get', id: 1, key: 'tick:1' })
  expect(backbone.payer('tick:1', 'get')).not.toBe(backbone.payer('tick:1'))
})

test('one who names a later version than there is pays for what the fetcher is asked then', async () => {
  const { backbone, at } = setup()
  const [first, second] = [await at('192.0.2.1'), await at('192.0.2.2')]
  await first.ask(subscribe('tick:1'))
  backbone.value('tick:1', '5', { order: 5 })
  const payer = backbone.payer('tick:1', 'get')
  await second.ask({ type: 'subscribe', keys: [{ key: 'tick:1', version: 'v', order: 6 }] })
  expect(backbone.calls).toEqual(['watch tick:1', 'get tick:1'])
  expect(backbone.payer('tick:1', 'get')).not.toBe(payer)
  expect(backbone.payer('tick:1', 'watch')).toBe(payer)
  await second.ask({ type: 'unsubscribe', keys: ['tick:1'] })
  expect(backbone.payer('tick:1', 'get')).toBe(payer)
})

test('what is said of one who paid before changes nothing for the one who pays', async () => {
  const { gateway, backbone, at } = setup()
  const [first, second] = [await at('192.0.2.1'), await at('192.0.2.2')]
  await first.ask(subscribe('tick:1'))
  const payer = backbone.payer('tick:1')
  await second.ask(subscribe('tick:1'))
  await first.ask({ type: 'unsubscribe', id: 2, keys: ['tick:1'] })
  await first.ask(subscribe('tick:1'))
  backbone.failed('tick:1', 'capacity', { payer, retryAfterMs: 5_000 })
  expect(gateway.waits.peek('tick:1')).toMatchObject({
    paying: second.connection.session,
    subscriptions: [{ session: second.connection.session }],
  })
})

test('whoever has their share of the cache is refused more, and the others are not', async () => {
  const { at } = setup({ cacheBytesMax: 100 * ENTRY_BYTES })
  const [first, second] = [await at('192.0.2.1'), await at('192.0.2.2')]
  const answers = await first.ask(subscribe(...many('own', 60)))
  const refused = answers.filter(({ type }) => type === 'error')
  expect(refused).toHaveLength(10)
  expect(refused[0]).toMatchObject({ key: 'tick:own50', code: 'capacity', retryAfterMs: 5_000 })
  first.send({ type: 'get', id: 2, key: 'tick:another' })
  expect(await first.received()).toMatchObject([{ type: 'error', id: 2, code: 'capacity' }])
  await second.ask(subscribe(...many('other', 25)))
  expect(await second.received()).toEqual([])
})

test('a first value past the share of the one who pays is for the others who want it', async () => {
  const { backbone, at, renewals } = setup({ cacheBytesMax: 100 * ENTRY_BYTES })
  const [first, second] = [await at('192.0.2.1'), await at('192.0.2.2')]
  await first.ask(subscribe(...many('own', 45), 'tick:1'))
  await second.ask(subscribe('tick:1'))
  const body = JSON.stringify('x'.repeat(10 * ENTRY_BYTES))
  backbone.value('tick:1', body)
  expect(await first.received()).toMatchObject([{ type: 'error', key: 'tick:1', subscribed: false, code: 'capacity' }])
  expect([await second.received(), renewals().length > 0]).toEqual([[], true])
  backbone.value('tick:1', body)
  expect(await second.received()).toMatchObject([{ type: 'value', key: 'tick:1' }])
})

test('where nobody who wants a key may pay for it, each is told so once', async () => {
  const { backbone, at, gateway } = setup({ cacheBytesMax: 100 * ENTRY_BYTES })
  const clients = await Promise.all(Array.from({ length: 300 }, (_, id) => at(`192.0.${id >> 8}.${id & 255}`)))
  const large = JSON.stringify('x'.repeat(51 * ENTRY_BYTES))
  for (const client of clients) await client.ask(subscribe('tick:1'))
  backbone.value('tick:1', JSON.stringify('small'))
  for (const client of clients) await client.received()
  backbone.value('tick:1', large)
  for (const client of clients) expect(await client.received()).toMatchObject([{ type: 'value' }])
  clients[0].connection.terminate()
  for (const { received } of clients.slice(1))
    expect(await received()).toMatchObject([{ type: 'error', code: 'capacity' }])
  expect(gateway.waits.peek('tick:1')?.subscriptions).toEqual([])
})

test('two who open keys for each other hold no more than each could alone', async () => {
  const { gateway, backbone, at } = setup({ cacheBytesMax: 100 * ENTRY_BYTES })
  const [first, second, third] = [await at('192.0.2.1'), await at('192.0.2.2'), await at('192.0.2.3')]
  const body = JSON.stringify('x'.repeat(9 * ENTRY_BYTES))
  const told = []
  for (let id = 0; id < 8; id++) {
    await first.ask(subscribe(`tick:${id}`))
    backbone.value(`tick:${id}`, body)
    told.push(...(await second.ask(subscribe(`tick:${id}`))))
    if (id === 7) await third.ask(subscribe('tick:7'))
    await first.ask({ type: 'unsubscribe', id, keys: [`tick:${id}`] })
    told.push(...(await second.received()))
  }
  const refused = told.filter(({ type }) => type === 'error')
  expect(refused.map(({ key, code }) => [key, code])).toEqual(['4', '5', '6'].map(id => [`tick:${id}`, 'capacity']))
  expect(gateway.waits.peek('tick:7')?.paying).toBe(third.connection.session)
})
