// After any events in any order a subscriber ends with the latest, and nobody is sent what it did not ask for.
import { randomNumbers } from '../../../../test/support/random.js'
import { createTestGateway } from '../../test-support.ts'
import type { ValueSubscription } from './subscriptions.ts'

const KEYS = ['tick:0', 'tick:1', 'tick:2', 'tick:3']
const codes = ['backend_error', 'backend_timeout', 'not_found', 'capacity'] as const

/** A client that believes what it is told. `version` is what it holds of a key, `state` the last word on it. */
function createViewer(connected: Awaited<ReturnType<ReturnType<typeof createTestGateway>['connect']>>) {
  const keys = new Map<string, { subscribed: boolean; version: string | undefined; state: string }>(
    KEYS.map(key => [key, { subscribed: false, version: undefined, state: 'nothing' }]),
  )
  const of = (key: string) => keys.get(key) as { subscribed: boolean }
  return {
    ...connected,
    keys,
    async read() {
      for (const message of await connected.received()) {
        const key = keys.get(message.key)
        if (message.type === 'subscribed') for (const each of message.keys) of(each.key).subscribed = true
        if (message.type === 'ok') of(message.id).subscribed = false
        if (!key) continue
        if (!key.subscribed) throw new Error(`${message.type} of ${message.key}, which is not subscribed`)
        if (message.type === 'value') key.version = message.version
        if (message.type === 'current' && message.version !== key.version) throw new Error('current, but not held')
        if (message.code === 'not_found') key.version = undefined
        if (message.type === 'error') key.subscribed = message.subscribed
        key.state = message.type
      }
    },
  }
}

test.each(Array.from({ length: 20 }, (_, seed) => seed))('a random life, seed %i', async seed => {
  const random = randomNumbers(seed)
  const { gateway, backbone, connect, pass } = createTestGateway({
    settings: { requestsPerSecondMax: 1e6, stallMsMax: 1e9 },
  })
  const pick = (list: readonly any[]) => list[Math.floor(random() * list.length)]
  const viewers = await Promise.all(Array.from({ length: 5 }, async () => createViewer(await connect())))
  let content = 0
  let order = 0
  /** For a get, or only for the watch. */
  const answer = (body: string) =>
    backbone.value(pick(KEYS), body, { order: pick([order, ++order, undefined]) }, random() < 0.5)

  const acts = [
    async () => {
      const viewer = pick(viewers)
      const key = pick(KEYS)
      // Otherwise the message on its way to the client might differ from the version that it says it holds: it would
      // have to ask once more.
      await viewer.read()
      const { version } = viewer.keys.get(key)
      viewer.send({
        type: 'subscribe',
        keys: [{ key, version, order: pick([undefined, order, order + 1, 2 ** 53 - 1]) }],
      })
    },
    async () => {
      const key = pick(KEYS)
      pick(viewers).send({ type: 'unsubscribe', id: key, keys: [key] })
    },
    async () => answer(JSON.stringify({ content: content++, pad: 'x'.repeat(20_000 * random()) })),
    async () => answer(`${Math.floor(random() * 3)}`),
    async () => {
      const key = pick(KEYS)
      const held = backbone.held(key)
      if (held?.version) backbone.current(key, held.version)
    },
    async () => {
      const code = pick(codes)
      backbone.failed(pick(KEYS), code, code === 'capacity' ? { retryAfterMs: undefined } : {})
    },
    async () => {
      pick(viewers).connection.stuck = true
    },
    async () => pick(viewers).connection.drain(),
    async () => pick(viewers).read(),
    async () => pass(random() * 2_000),
  ]
  for (let step = 0; step < 400; step++) await pick(acts)()

  for (const viewer of viewers) {
    viewer.connection.drain()
    await viewer.read()
  }
  // Every tie between sessions and keys is whole on both sides.
  const counted = viewers.reduce((sum, { connection }) => sum + (connection.session?.subscriptions.size ?? 0), 0)
  expect(KEYS.reduce((sum, key) => sum + gateway.values.describe(key).subscribers, 0)).toBe(counted)
  for (const { connection, keys } of viewers) {
    for (const [key, each] of connection.session?.subscriptions ?? []) {
      const subscription = each as ValueSubscription
      expect(subscription.topic.subscriptions[subscription.index]).toBe(subscription)
      expect(keys.get(key)?.subscribed).toBe(true)
    }
    expect(connection.session).toMatchObject({ pieces: [], due: [], dueEnded: 0 })
  }

  // The backend is well again: all who subscribe hold its content, and know that they do.
  const versions = new Map(KEYS.map(key => [key, backbone.value(key, `"the end of ${key}"`)]))
  for (const viewer of viewers) {
    await viewer.read()
    for (const [key, { subscribed, version, state }] of viewer.keys) {
      if (subscribed) expect([key, version, state]).toEqual([key, versions.get(key), 'value'])
    }
  }
})

test('with its last subscriber a key is let go of by all', async () => {
  const { gateway, backbone, connect } = createTestGateway()
  const clients = await Promise.all(Array.from({ length: 10 }, () => connect()))
  for (const client of clients) await client.ask({ type: 'subscribe', keys: KEYS })
  for (const client of clients.slice(5)) client.connection.emit('close', 1006, Buffer.alloc(0))
  for (const client of clients.slice(0, 5)) await client.ask({ type: 'unsubscribe', keys: KEYS })

  expect(backbone.calls).toEqual([...KEYS.map(key => `watch ${key}`), ...KEYS.map(key => `unwatch ${key}`)])
  for (const key of KEYS) expect(gateway.values.describe(key)).toMatchObject({ watched: false, value: undefined })
})

test('past the subscriptions of all sessions together further ones get capacity, until others end', async () => {
  const { connect } = createTestGateway({ settings: { subscriptionsMax: 3 } })
  const [one, other] = [await connect(), await connect()]
  await one.ask({ type: 'subscribe', keys: ['tick:1', 'tick:2'] })
  expect(await other.ask({ type: 'subscribe', keys: ['tick:1', 'tick:2'] })).toMatchObject([
    { type: 'subscribed', keys: [{ key: 'tick:1' }] },
    { type: 'error', key: 'tick:2', code: 'capacity' },
  ])
  await one.ask({ type: 'unsubscribe', keys: ['tick:1'] })
  expect(await other.ask({ type: 'subscribe', keys: ['tick:2'] })).toMatchObject([
    { type: 'subscribed', keys: [{ key: 'tick:2' }] },
  ])
})

test('every error about a key says whether the session is subscribed to it', async () => {
  const { backbone, connect, pass } = createTestGateway({ settings: { getsWaitingMax: 1 } })
  const [client, late] = [await connect(), await connect()]
  expect(await client.ask({ type: 'subscribe', keys: ['tick:1', 'nonsense:1'] })).toMatchObject([
    { type: 'subscribed' },
    { type: 'error', key: 'nonsense:1', subscribed: false },
  ])
  backbone.failed('tick:1', 'backend_error', { retryAfterMs: 5_000 })
  expect(await client.received()).toMatchObject([{ key: 'tick:1', subscribed: true, retryAfterMs: 5_000 }])

  // A later subscriber is told the time that is left from now.
  await pass(2_000)
  expect((await late.ask({ type: 'subscribe', keys: ['tick:1'] }))[1]).toMatchObject({
    subscribed: true,
    retryAfterMs: 3_000,
  })

  // The second get may not wait: one client's subscription stands all the same, the other has none.
  client.send({ type: 'get', id: 1, key: 'tick:2' })
  expect(await client.ask({ type: 'get', id: 2, key: 'tick:1' })).toMatchObject([
    { id: 2, code: 'too_many_waiting', subscribed: true },
  ])
  expect(await client.ask({ type: 'get', id: 3, key: 'tick:3' })).toMatchObject([
    { id: 3, code: 'too_many_waiting', subscribed: false },
  ])

  backbone.failed('tick:1', 'backend_refused', { retryAfterMs: undefined })
  expect(await client.received()).toMatchObject([{ key: 'tick:1', code: 'backend_refused', subscribed: false }])
})
