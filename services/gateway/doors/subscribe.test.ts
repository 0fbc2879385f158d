import { versionOf } from '@keycast/protocol'
import { createTestGateway } from '../test-support.ts'

const subscribe = (...keys: unknown[]) => ({ type: 'subscribe', id: 1, keys })

test('a cold key is said to be subscribed at once, watched, and sent when its value comes', async () => {
  const { backbone, connect } = createTestGateway()
  const client = await connect()

  expect(await client.ask(subscribe('tick:1'))).toEqual([{ type: 'subscribed', id: 1, keys: [{ key: 'tick:1' }] }])
  expect(backbone.calls).toEqual(['watch tick:1'])

  const version = backbone.value('tick:1', '{"n":1}')
  expect(await client.received()).toEqual([{ type: 'value', key: 'tick:1', version, data: { n: 1 } }])
})

test('every change goes to every subscriber, and the key is watched once', async () => {
  const { backbone, connect } = createTestGateway()
  const clients = await Promise.all([connect(), connect(), connect()])
  for (const client of clients) await client.ask(subscribe('tick:1'))
  backbone.value('tick:1', '1')
  for (const client of clients) await client.received()

  backbone.value('tick:1', '2')

  for (const client of clients) expect(await client.received()).toMatchObject([{ type: 'value', data: 2 }])
  expect(backbone.calls).toEqual(['watch tick:1'])
})

test('a fan-out writes one and the same Buffer to every session', async () => {
  const { gateway, backbone, connect } = createTestGateway()
  const clients = await Promise.all([connect(), connect()])
  for (const client of clients) await client.ask(subscribe('tick:1'))
  const written: unknown[] = []
  for (const { connection } of clients) connection._socket.write = bytes => written.push(bytes) > 0

  backbone.value('tick:1', '{"n":1}')
  await clients[0].received()

  expect(written).toHaveLength(2)
  expect(written[0]).toBe(written[1])
  // The stored body is a part of that frame: its bytes are in memory once.
  const outcome = gateway.values.fresh('tick:1')
  expect(outcome?.value?.body.buffer).toBe((written[0] as Buffer).buffer)
})

test('a key watched already is sent from memory', async () => {
  const { backbone, connect, pass } = createTestGateway()
  const first = await connect()
  await first.ask(subscribe('tick:1'))
  const version = backbone.value('tick:1', '1')
  await pass(1_500) // past maxAge: a watched key is kept fresh all the same

  const second = await connect()
  expect(await second.ask(subscribe('tick:1'))).toMatchObject([{ type: 'subscribed' }, { type: 'value', version }])
  expect(backbone.calls).toEqual(['watch tick:1'])
})

describe('a client that holds a newer value than this gateway, for it comes from another', () => {
  async function lagging() {
    const made = createTestGateway({ namespaces: { tick: { refreshMs: 0, timeoutMs: 1_000 } } })
    const [client, other] = [await made.connect(), await made.connect()]
    await other.ask(subscribe('tick:1'))
    made.backbone.value('tick:1', '5', { order: 5 }, false)
    await other.received()
    const resume = (order: number) =>
      client.ask(subscribe({ key: 'tick:1', version: versionOf(Buffer.from('7')), order }))
    return { ...made, client, other, resume }
  }
  const subscribed = { type: 'subscribed', id: 1, keys: [{ key: 'tick:1' }] }

  test('is sent nothing before it, and the fetcher is asked at once', async () => {
    const { backbone, client, other, resume } = await lagging()
    expect(await resume(7)).toEqual([subscribed])
    expect(backbone.calls).toEqual(['watch tick:1', 'get tick:1'])

    backbone.value('tick:1', '6', { order: 6 }, false)
    expect(await client.received()).toEqual([])
    expect(await other.received()).toMatchObject([{ data: 6, order: 6 }])
    backbone.value('tick:1', '7', { order: 7 }, false)
    expect(await client.received()).toMatchObject([{ type: 'current', order: 7 }])
    backbone.value('tick:1', '8', { order: 8 }, false)
    for (const each of [client, other]) expect((await each.received()).at(-1)).toMatchObject({ data: 8, order: 8 })
  })

  test('is sent what the fetcher says is the latest, whatever number it came with', async () => {
    const { backbone, client, resume } = await lagging()
    await resume(Number.MAX_SAFE_INTEGER)
    backbone.current('tick:1', versionOf(Buffer.from('5')), { order: 5 })
    expect(await client.received()).toEqual([])
    backbone.current('tick:1', versionOf(Buffer.from('5')), { order: 5 })
    expect(await client.received()).toMatchObject([{ type: 'value', data: 5, order: 5 }])
  })

  test('has the backend asked where the fetcher knows of nothing so new: another node may have told another gateway', async () => {
    const { backbone, resume } = await lagging()
    await resume(7)
    expect(backbone.held('tick:1')).toMatchObject({ order: 5 })
    backbone.current('tick:1', versionOf(Buffer.from('5')), { order: 5 })
    expect(backbone.calls.filter(call => call === 'get tick:1')).toHaveLength(2)
    expect(backbone.held('tick:1', 'get')).toEqual({ version: undefined, ageMs: 0 })
    expect(backbone.held('tick:1', 'watch')).toMatchObject({ order: 5 })
    const version = backbone.value('tick:1', '7', { order: 7 })
    expect(backbone.held('tick:1')).toMatchObject({ version, order: 7 })
  })

  test('holds back nobody else', async () => {
    const { connect, resume } = await lagging()
    await resume(7)
    const third = await connect()
    expect(await third.ask(subscribe('tick:1'))).toMatchObject([subscribed, { type: 'value', data: 5 }])
    expect(await third.ask(subscribe({ key: 'tick:1', order: 5 }))).toMatchObject([
      subscribed,
      { type: 'value', data: 5 },
    ])
  })

  test('hears it alone where the fetcher does not answer in time, and keeps what it has until then', async () => {
    const { backbone, client, other, pass, resume } = await lagging()
    await resume(7)
    await pass(1_000 + 1_999)
    expect(await client.received()).toEqual([])
    await pass(2_000)
    expect(await client.received()).toMatchObject([{ type: 'error', code: 'fetcher_timeout', subscribed: true }])
    await pass(60_000)
    expect([await client.received(), await other.received()]).toEqual([[], []])
    backbone.value('tick:1', '7', { order: 7 })
    expect(await client.received()).toMatchObject([{ type: 'current', order: 7 }])
    expect(await other.received()).toMatchObject([{ data: 7 }])
  })

  test('goes on to wait where others have waited for the key in vain', async () => {
    const { backbone, client, other, pass, resume } = await lagging()
    await resume(7)
    await pass(2_000)
    await other.ask({ type: 'get', id: 2, key: 'tick:1' })
    await pass(4_000)
    expect(await other.received()).toMatchObject([{ type: 'error', id: 2, code: 'fetcher_timeout' }])
    expect(backbone.calls.slice(-2)).toEqual(['cancelGet tick:1', 'renewWatch tick:1'])
    backbone.current('tick:1', versionOf(Buffer.from('5')), { order: 5 })
    expect(backbone.calls.at(-1)).toBe('get tick:1')
    backbone.value('tick:1', '7', { order: 7 })
    expect((await client.received()).at(-1)).toMatchObject({ type: 'current', order: 7 })
  })

  test('costs as much as one that comes to a key that nobody watches', async () => {
    const settings = { keysPerSessionMax: 20, requestsPerSecondMax: 20 }
    const { backbone, connect } = createTestGateway({ settings })
    const keys = Array.from({ length: 15 }, (_, n) => `tick:${n}`)
    const [client, other] = [await connect(), await connect()]
    await other.ask(subscribe(...keys))
    for (const key of keys) backbone.value(key, '5', { order: 5 })
    const resume = async (order: number) => {
      const [answer] = await client.ask(subscribe(...keys.map(key => ({ key, version: 'v', order }))))
      for (const key of [...keys, ...keys]) backbone.current(key, versionOf(Buffer.from('5')), { order: 5 })
      await client.received()
      return answer
    }
    for (let times = 0; times < 5; times++) expect(await resume(5)).toMatchObject({ type: 'subscribed' })
    expect(await resume(6)).toMatchObject({ type: 'subscribed' })
    expect(await resume(6)).toMatchObject({ type: 'error', code: 'rate_limited' })
  })

  test('waits likewise where the key has no value here yet', async () => {
    const { backbone, connect } = createTestGateway()
    const client = await connect()
    await client.ask(subscribe({ key: 'tick:1', version: versionOf(Buffer.from('7')), order: 7 }))
    expect(backbone.calls).toEqual(['watch tick:1'])
    backbone.value('tick:1', '6', { order: 6 }, false)
    expect(await client.received()).toEqual([])
    expect(backbone.calls).toEqual(['watch tick:1', 'get tick:1'])
    backbone.value('tick:1', '8', { order: 8 })
    expect(await client.received()).toMatchObject([{ type: 'value', data: 8 }])
  })

  test('is sent nothing where the fetcher could not ask, and hears why, once', async () => {
    const { backbone, client, other, pass, resume } = await lagging()
    await resume(7)
    backbone.failed('tick:1', 'backend_error')
    expect(await client.received()).toMatchObject([{ type: 'error', code: 'backend_error', subscribed: true }])
    await pass(60_000)
    backbone.failed('tick:1', 'backend_error')
    expect(await client.received()).toEqual([])
    expect(await other.received()).toMatchObject([{ type: 'stale' }])
    expect(backbone.calls.filter(call => call === 'get tick:1')).toHaveLength(1)

    backbone.value('tick:1', '6', { order: 6 }, false)
    expect(await client.received()).toEqual([])
    backbone.value('tick:1', '7', { order: 7 })
    expect(await client.received()).toMatchObject([{ type: 'current', order: 7 }])
  })

  test('is sent nothing older where the value of this gateway is stale', async () => {
    const { backbone, client, pass, resume } = await lagging()
    backbone.failed('tick:1', 'backend_error')
    await pass(60_000)
    expect(await resume(7)).toEqual([subscribed])
    backbone.failed('tick:1', 'backend_error')
    expect(await client.received()).toMatchObject([{ type: 'error', code: 'backend_error', subscribed: true }])
    backbone.value('tick:1', '7', { order: 7 })
    expect(await client.received()).toMatchObject([{ type: 'current', order: 7 }])
  })

  test('is sent nothing of what was between, where the value has come back', async () => {
    const { backbone, client, other } = await lagging()
    const version = versionOf(Buffer.from('5'))
    expect(await client.ask(subscribe({ key: 'tick:1', version, order: 7 }))).toEqual([subscribed])
    backbone.value('tick:1', '6', { order: 6 }, false)
    expect(await client.received()).toEqual([])
    backbone.value('tick:1', '5', { order: 7 }, false)
    expect(await client.received()).toMatchObject([{ type: 'current', version, order: 7 }])
    expect((await other.received()).map(({ data }) => data)).toEqual([6, 5])
  })

  test('is sent nothing that was on its way when it came', async () => {
    const { backbone, client, resume } = await lagging()
    await resume(7)
    backbone.value('tick:1', '6', { order: 6 })
    expect(await client.received()).toEqual([])
    expect(backbone.calls.at(-1)).toBe('get tick:1')
    backbone.value('tick:1', '7', { order: 7 })
    expect(await client.received()).toMatchObject([{ type: 'current', order: 7 }])
  })

  test('is sent nothing that it was due before', async () => {
    const { backbone, client } = await lagging()
    client.send(subscribe('tick:1'))
    client.send(subscribe({ key: 'tick:1', order: 7 }))
    expect((await client.received()).map(({ type }) => type)).toEqual(['subscribed', 'subscribed'])
    backbone.value('tick:1', '7', { order: 7 })
    expect(await client.received()).toMatchObject([{ data: 7 }])
  })

  test('does not keep those waiting who came to a cold key before', async () => {
    const { backbone, connect } = createTestGateway()
    const [client, other] = [await connect(), await connect()]
    await other.ask(subscribe('tick:1'))
    await client.ask(subscribe({ key: 'tick:1', order: Number.MAX_SAFE_INTEGER }))
    backbone.value('tick:1', '6', { order: 6 }, false)
    expect(await other.received()).toMatchObject([{ data: 6 }])
    expect(await client.received()).toEqual([])
  })

  test('is served by nodes that give no numbers as if it had named none', async () => {
    const { backbone, client, resume } = await lagging()
    backbone.value('tick:1', '6', {}, false)
    expect(await resume(7)).toMatchObject([subscribed, { type: 'value', data: 6 }])
    expect((await client.received()).length).toBe(0)
  })
})

test('a value that came back is sent with its number of now', async () => {
  const { backbone, connect } = createTestGateway()
  const [bytes, json] = [await connect('keycast.v1.bytes'), await connect()]
  for (const client of [bytes, json]) await client.ask(subscribe('tick:1'))
  const version = backbone.value('tick:1', '1', { order: 5 })
  for (const client of [bytes, json]) expect(await client.received()).toMatchObject([{ version, order: 5 }])
  backbone.current('tick:1', version, { order: 7 })
  for (const client of [bytes, json]) {
    expect(await client.ask(subscribe('tick:1'))).toMatchObject([{}, { type: 'value', version, order: 7 }])
    expect(await client.ask(subscribe({ key: 'tick:1', version }))).toMatchObject([{}, { type: 'current', order: 7 }])
  }
})

test('a client that has the latest version is sent current instead of the value', async () => {
  const { backbone, connect } = createTestGateway()
  const client = await connect()
  await client.ask(subscribe('tick:1'))
  const version = backbone.value('tick:1', '1')
  await client.received()

  const returning = await connect()
  expect(await returning.ask(subscribe({ key: 'tick:1', version }))).toEqual([
    { type: 'subscribed', id: 1, keys: [{ key: 'tick:1' }] },
    { type: 'current', key: 'tick:1', version },
  ])
  expect(await client.ask(subscribe({ key: 'tick:1', version: 'older' }))).toMatchObject([{}, { type: 'value' }])
})

test("a client's version of a cold key is compared when the answer comes, and never sent on", async () => {
  const { backbone, connect } = createTestGateway()
  const [holds, holdsOlder] = [await connect(), await connect()]
  const version = versionOf(Buffer.from('1'))
  await holds.ask(subscribe({ key: 'tick:1', version }))
  await holdsOlder.ask(subscribe({ key: 'tick:1', version: 'older' }))
  expect(backbone.held('tick:1')).toBeUndefined()

  backbone.value('tick:1', '1')

  expect(await holds.received()).toEqual([{ type: 'current', key: 'tick:1', version }])
  expect(await holdsOlder.received()).toMatchObject([{ type: 'value', data: 1 }])
})

test('a value that is not watched is sent while young enough, and the watch goes out none the less', async () => {
  const { gateway, backbone, connect } = createTestGateway()
  void gateway.singleFlight.want('tick:1')
  const version = backbone.value('tick:1', '1')

  const client = await connect()
  expect(await client.ask(subscribe('tick:1'))).toMatchObject([{}, { type: 'value', version }])
  expect(backbone.calls).toEqual(['get tick:1', 'watch tick:1'])
  expect(backbone.held('tick:1')).toEqual({ version, ageMs: 0 })
  backbone.current('tick:1', version)
  expect(await client.received()).toEqual([])
})

test('an old value that is not watched is sent only once it is confirmed', async () => {
  const { gateway, backbone, connect, pass } = createTestGateway()
  void gateway.singleFlight.want('tick:1')
  const version = backbone.value('tick:1', '1')
  await pass(1_001)

  const client = await connect()
  expect(await client.ask(subscribe('tick:1'))).toMatchObject([{ type: 'subscribed' }])
  expect(backbone.held('tick:1')).toEqual({ version, ageMs: 1_001 })
  backbone.current('tick:1', version)
  expect(await client.received()).toMatchObject([{ type: 'value', version, data: 1 }])
})

test('keys that cannot be subscribed get an error each, the others are subscribed', async () => {
  const { connect } = createTestGateway({ settings: { keysPerSessionMax: 2 } })
  const client = await connect()

  const answers = await client.ask(subscribe('tick:1', 'tick', 'nowhere:1', 'tick:2', 'tick:1', 'tick:3'))

  expect(answers).toMatchObject([
    { type: 'subscribed', id: 1, keys: [{ key: 'tick:1' }, { key: 'tick:2' }] },
    { type: 'error', id: 1, key: 'tick', code: 'bad_key' },
    { type: 'error', id: 1, key: 'nowhere:1', code: 'unknown_namespace' },
    { type: 'error', id: 1, key: 'tick:3', code: 'too_many_keys' },
  ])
  for (const { retryAfterMs } of answers) expect(retryAfterMs).toBeUndefined()
})

test('when no key is accepted, that is said as well', async () => {
  const { connect } = createTestGateway()
  expect(await (await connect()).ask(subscribe('x'))).toMatchObject([
    { type: 'subscribed', keys: [] },
    { code: 'bad_key' },
  ])
})

test('thousands of bad keys in one message end the session instead of asking for megabytes of errors', async () => {
  const { connect } = createTestGateway()
  const client = await connect()
  client.send(subscribe(...Array.from({ length: 15_000 }, (_, n) => `x${n}`)))
  expect(client.connection.closed?.code).toBe(4007)
})

test('a client that may read none of its 5,000 keys any more is told so of each', async () => {
  const { connect } = createTestGateway()
  const client = await connect()
  const told = await client.ask(subscribe(...Array.from({ length: 5_000 }, (_, n) => `none:${n}`)))
  expect(told.filter(({ code }) => code === 'unknown_namespace')).toHaveLength(5_000)
  expect(client.connection.closed).toBeUndefined()
})

test('past the cache limit a new key gets capacity, one that is watched does not', async () => {
  const { backbone, connect } = createTestGateway({ settings: { cacheBytesMax: 100_000 } })
  const client = await connect()
  await client.ask(subscribe('tick:1'))
  backbone.value('tick:1', '"short"')
  backbone.value('tick:1', `"${'x'.repeat(100_000)}"`)
  await client.received()

  const other = await connect()
  expect(await other.ask(subscribe('tick:1', 'tick:2'))).toMatchObject([
    { type: 'subscribed', keys: [{ key: 'tick:1' }] },
    { type: 'error', key: 'tick:2', code: 'capacity' },
    { type: 'value', key: 'tick:1' },
  ])
})

test('a first value that does not fit ends its subscriptions with capacity, and earlier subscriptions stand', async () => {
  const cacheBytesMax = 1024 ** 2
  const { gateway, backbone, connect } = createTestGateway({ settings: { cacheBytesMax } })
  const client = await connect()
  const keys = Array.from({ length: 100 }, (_, n) => `tick:${n}`)
  await client.ask(subscribe(...keys))
  for (const key of keys) backbone.value(key, `"${'x'.repeat(130_000)}"`)

  const told = await client.received()
  const held = told.filter(({ type }) => type === 'value').map(({ key }) => key)
  const ended = told.filter(({ type }) => type === 'error')
  // Seven, and one more after the ended ones made room for it.
  expect(held).toEqual([...keys.slice(0, 7), 'tick:99'])
  expect(ended.map(({ key }) => key)).toEqual(keys.slice(7, 99))
  for (const { code, retryAfterMs } of ended) expect([code, retryAfterMs]).toEqual(['capacity', 5_000])
  expect(keys.filter(key => gateway.values.describe(key).value)).toEqual(held)
  expect(backbone.calls.slice(100)).toEqual(keys.slice(7, 99).map(key => `unwatch ${key}`))
  expect(client.connection.session?.subscriptions.size).toBe(8)
})

test.each([
  ['asks on is closed', 0, 4007],
  ['waits as long as it is told is not', 5_000, undefined],
])('a client that finds no room and %s', async (_, waitMs, code) => {
  const { backbone, connect, pass } = createTestGateway({
    settings: { requestsPerSecondMax: 100, subscriptionsMax: 1 },
  })
  const client = await connect()
  await client.ask(subscribe('tick:1'))
  backbone.value('tick:1', '1')
  await client.received()
  for (let n = 0; n < 400 && !client.connection.closed; n++) {
    const error = (await client.ask(subscribe('tick:2'))).find(({ key }) => key === 'tick:2')
    if (error) expect(error).toMatchObject({ code: 'capacity', retryAfterMs: 5_000 })
    await pass(waitMs)
  }
  expect(client.connection.closed?.code).toBe(code)
})

test('a newer value of a key that is held is taken, also where it no longer fits', async () => {
  const { backbone, connect } = createTestGateway({ settings: { cacheBytesMax: 100_000 } })
  const client = await connect()
  await client.ask(subscribe('tick:1', 'tick:2'))
  backbone.value('tick:1', `"${'x'.repeat(50_000)}"`)
  backbone.value('tick:2', `"${'x'.repeat(40_000)}"`)
  await client.received()
  backbone.value('tick:1', `"${'y'.repeat(90_000)}"`)
  expect(await client.received()).toMatchObject([{ type: 'value', key: 'tick:1' }])
})

test('room is made by unwatched values, and by clients that leave', async () => {
  const { gateway, backbone, connect } = createTestGateway({ settings: { cacheBytesMax: 100_000 } })
  const body = `"${'x'.repeat(60_000)}"`
  void gateway.singleFlight.want('tick:0')
  backbone.value('tick:0', body)
  const client = await connect()
  await client.ask(subscribe('tick:1', 'tick:2'))
  backbone.value('tick:1', body)
  backbone.value('tick:2', body)
  expect(await client.received()).toMatchObject([
    { key: 'tick:2', code: 'capacity' },
    { key: 'tick:1', type: 'value' },
  ])

  await client.ask({ type: 'unsubscribe', keys: ['tick:1'] })
  expect(await client.ask(subscribe('tick:2'))).toMatchObject([{ keys: [{ key: 'tick:2' }] }])
  backbone.value('tick:2', body)
  expect(await client.received()).toMatchObject([{ type: 'value', key: 'tick:2' }])
})

test("the fetcher's word of no room ends a subscription, or leaves it with the value it has", async () => {
  const { backbone, connect } = createTestGateway()
  const client = await connect()
  await client.ask(subscribe('tick:1', 'tick:2'))
  backbone.value('tick:2', '"held"')
  await client.received()
  backbone.failed('tick:1', 'capacity', { retryAfterMs: undefined })
  backbone.failed('tick:2', 'capacity', { retryAfterMs: 5_000 })
  expect(await client.received()).toMatchObject([{ type: 'error', key: 'tick:1', code: 'capacity' }])
  expect(client.connection.session?.subscriptions.has('tick:1')).toBe(false)
  expect(client.connection.session?.subscriptions.has('tick:2')).toBe(true)
})

test('a get is answered with a value that there is no room to keep', async () => {
  const { backbone, connect } = createTestGateway({ settings: { cacheBytesMax: 100_000 } })
  const client = await connect()
  await client.ask(subscribe('tick:1'))
  backbone.value('tick:1', `"${'x'.repeat(60_000)}"`)
  await client.received()
  client.send({ type: 'get', id: 1, key: 'tick:2' })
  client.send(subscribe('tick:2'))
  await client.received()
  backbone.value('tick:2', `"${'x'.repeat(60_000)}"`)
  const told = await client.received()
  expect(told.map(({ type, id, code }) => [type, id, code]).sort()).toEqual([
    ['error', undefined, 'capacity'],
    ['value', 1, undefined],
  ])
  expect(backbone.held('tick:2')).toBeUndefined()
})

test('text and bytes come with their content type', async () => {
  const { backbone, connect } = createTestGateway()
  const client = await connect()
  await client.ask(subscribe('tick:1', 'tick:2'))
  backbone.value('tick:1', 'say "hi" \u2028', { contentType: 'text/plain', format: 'text' })
  backbone.value('tick:2', Buffer.from([0, 255]), { contentType: 'image/x', format: 'base64' })

  expect(await client.received()).toMatchObject([
    { key: 'tick:1', contentType: 'text/plain', text: 'say "hi" \u2028' },
    { key: 'tick:2', contentType: 'image/x', base64: 'AP8=' },
  ])
})

test('subscribing to ever new keys is slowed to as many a second as requests, whatever is let go of between', async () => {
  const { backbone, connect, pass } = createTestGateway({
    settings: { keysPerSessionMax: 500, requestsPerSecondMax: 100 },
  })
  const client = await connect()
  let named = 0
  const next = async () => {
    const keys = Array.from({ length: 100 }, () => `tick:${named++}`)
    const [answer] = await client.ask({ type: 'subscribe', id: named, keys })
    await client.ask({ type: 'unsubscribe', keys })
    return answer
  }
  for (let rounds = 0; rounds < 5; rounds++) expect(await next()).toMatchObject({ type: 'subscribed' })
  expect(await next()).toEqual({
    type: 'error',
    id: named,
    code: 'rate_limited',
    message: expect.any(String),
    retryAfterMs: 1,
  })
  const watched = () => backbone.calls.filter(call => call.startsWith('watch')).length
  expect(watched()).toBe(500)
  for (let tries = 0; tries < 40; tries++) {
    await pass(250)
    await next()
  }
  expect(watched()).toBeLessThanOrEqual(500 + 10 * 100 + 100)
  expect(watched()).toBeGreaterThan(500 + 9 * 100)
})

test('a session may resume all its keys at once where none is watched, and thousands come to keys that are', async () => {
  const { connect } = createTestGateway()
  const keys = Array.from({ length: 5_000 }, (_, n) => `tick:${n}`)
  const clients = await Promise.all(Array.from({ length: 3 }, () => connect()))
  for (const client of clients) {
    const answers = await client.ask(subscribe(...keys))
    expect(answers.map(({ type }) => type)).toEqual(['subscribed'])
    expect(answers[0].keys).toHaveLength(5_000)
  }
})

test('a subscribe that resumes rooms looks the namespace of each up once', async () => {
  const { namespaces, connect } = createTestGateway({ rooms: { room: {} } })
  const client = await connect()
  const { get } = namespaces.all
  const looks: string[] = []
  namespaces.all.get = name => {
    looks.push(name)
    return get(name)
  }

  const after = { epoch: 'E1', seq: 0 }
  await client.ask(subscribe({ key: 'room:1', after }, { key: 'room:2', after }))

  expect(looks).toEqual(['room', 'room'])
})

test('keys are paid for by the account also where the message that names them ends its session', async () => {
  const settings = { keysPerSessionMax: 500, requestsPerSecondMax: 20 }
  const { connect, pass } = createTestGateway({ settings })
  const from = { peer: { address: '192.0.2.1', isNamed: true } }
  const bad = Array.from({ length: 700 }, (_, n) => `${n}`)
  for (let round = 0; round < 20; round++) {
    const keys = Array.from({ length: 500 }, (_, n) => `tick:${round * 500 + n}`)
    const client = await connect('', '', from)
    client.send(subscribe(...keys, ...bad))
    client.connection.emit('close', 1006, Buffer.alloc(0))
    await pass(1_000)
  }
  expect(await (await connect('', '', from)).ask(subscribe('tick:1'))).toMatchObject([{ code: 'rate_limited' }])
})
