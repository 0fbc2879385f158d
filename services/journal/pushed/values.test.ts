// Values that backends hand over, from a gateway's put to another's viewers, on the in-process network.
import { createHub, createRoomsBackbone, type HandedOver, publishTo, pushedKey, roomsCodec } from '@keycast/backbone'
import { createMemoryNetwork } from '@keycast/backbone/memory'
import { versionOf } from '@keycast/protocol'
import { realWorld, withReserved } from '@keycast/service'
import { createMetrics } from '@keycast/service/metrics'
import { createJournal } from '../journal.ts'
import type { Log } from '../log/log.ts'
import { createMemoryLog } from '../log/memory/memory.ts'

const silent: any = { debug() {}, info() {}, warn() {}, error() {} }

const contentOf = (text: string): HandedOver['content'] => {
  const body = Buffer.from(JSON.stringify(text))
  return { version: versionOf(body, 'application/json'), contentType: 'application/json', format: 'json', body }
}

async function setup({ bytesMax = 2 ** 30, wrap = (log: Log): Log => log } = {}) {
  const network = createMemoryNetwork()
  const log = wrap(createMemoryLog({ ...realWorld, bytesMax }))
  const price: any = { name: 'price', source: 'pushed', bytesMax: 1_000 }
  const room: any = { history: { messages: 10, ageMs: 1e9, bytes: 1e9 }, bytesMax: 1_000, publish: 'client' }
  const hub = createHub({ codec: roomsCodec, bind: network.bindOf('n1'), log: silent, ...network })
  const { registry, ...metrics } = createMetrics({ service: 'journal' })
  await createJournal({
    namespaces: withReserved({ get: name => (name === 'room' ? room : undefined), names: ['room'] }),
    pushed: { get: name => (name === 'price' ? price : undefined), names: ['price'] },
    hub,
    log,
    metrics,
    report: silent,
    ...network,
  }).start()

  /** `seen`: what the gateway was told. `held`: by key, its version. */
  async function startGateway() {
    const seen: unknown[] = []
    const held = new Map<string, string>()
    const backbone = createRoomsBackbone({
      ...network,
      nodeSource: { start: async found => found(['n1']), stop() {} },
      log: silent,
      events: {
        onHead() {},
        onMessages() {},
        onGap() {},
        onFailed() {},
        heldVersion: key => held.get(key),
        onPushed(state, isGot) {
          const { type, key } = state
          if (type === 'value') held.set(key, state.content.version)
          const what = type === 'value' ? String(state.content.body) : type === 'failed' ? state.code : type
          seen.push(isGot ? [what] : what)
        },
      },
    })
    await backbone.start()
    await network.settle()

    async function put(key: string, content: HandedOver['content'], rank?: number) {
      const taken = backbone.values.handOver({ key, content, rank }, { deadlineMs: 5_000 })
      await network.settle()
      return taken
    }
    return { backbone, ...backbone.values, seen, put, told: () => seen.splice(0) }
  }
  return { network, log, startGateway, one: await startGateway(), other: await startGateway() }
}

test('a watch is told that there is no value, then each one, then that it was removed', async () => {
  const { network, one, other } = await setup()
  one.watch('price:7')
  await network.settle()
  expect(one.told()).toEqual(['not_found'])
  expect(await other.put('price:7', contentOf('a'))).toEqual({ outcome: 'taken' })
  expect(one.told()).toEqual(['"a"'])
  await other.put('price:7', contentOf('b'))
  await other.put('price:7', undefined)
  expect(one.told()).toEqual(['"b"', 'not_found'])
  one.unwatch('price:7')
  await other.put('price:7', contentOf('c'))
  expect(one.told()).toEqual([])
})

test('a get is answered once, with the value of now', async () => {
  const { network, one, other } = await setup()
  one.get('price:a b')
  await network.settle()
  await other.put('price:a b', contentOf('a'))
  one.get('price:a b')
  await network.settle()
  expect(one.told()).toEqual([['not_found'], ['"a"']])
})

test('an id that reads like the key of something else is a value as any other', async () => {
  const { network, one, other } = await setup()
  for (const key of ['price:1 members', 'price:1 join dGFi', 'price:1 - after 0 50']) {
    await other.put(key, contentOf(key))
    one.watch(key)
    await network.settle()
    one.get(key)
    await network.settle()
    expect(one.told().flat()).toContain(`"${key}"`)
  }
})

test('a lower rank is told so, in whatever order and by whichever gateway it comes', async () => {
  const { one, other } = await setup()
  expect(await one.put('price:7', contentOf('b'), 2)).toEqual({ outcome: 'taken' })
  expect(await other.put('price:7', contentOf('a'), 1)).toEqual({ outcome: 'older', rank: 2 })
  expect(await other.put('price:7', undefined, 3)).toEqual({ outcome: 'taken' })
  expect(await one.put('price:7', contentOf('c'), 2)).toEqual({ outcome: 'older', rank: 3 })
})

test('of many in one batch a watcher is sent the last, and all are told what became of theirs', async () => {
  const { network, one, other } = await setup()
  one.watch('price:7')
  await network.settle()
  one.told()
  const ranks = [3, 1, 2, 9, 4]
  const taken = ranks.map(rank =>
    other.handOver({ key: 'price:7', content: contentOf(`rank ${rank}`), rank }, { deadlineMs: 5_000 }),
  )
  await network.settle()
  expect(one.told()).toEqual(['"rank 9"'])
  expect(await Promise.all(taken)).toEqual([
    { outcome: 'taken' },
    { outcome: 'older', rank: 3 },
    { outcome: 'older', rank: 3 },
    { outcome: 'taken' },
    { outcome: 'older', rank: 9 },
  ])
})

test('a gateway that has the value is told that nothing changed, and not sent it again', async () => {
  const { network, one, other } = await setup()
  await other.put('price:7', contentOf('a'))
  one.watch('price:7')
  await network.settle()
  expect(one.told()).toEqual(['"a"'])
  network.swallowed.add('n1 answers')
  one.watch('price:8')
  await network.settle()
  network.swallowed.delete('n1 answers')
  await network.pass(10_000)
  expect(one.told().sort()).toEqual(['current', 'not_found'])
})

test('a log that is full takes nothing of a new key, and the next value of one that it has', async () => {
  const { network, one, other } = await setup({ bytesMax: 1_200 })
  one.watch('price:8')
  await network.settle()
  one.told()
  await other.put('price:7', contentOf('a'))
  const full = await other.put('price:8', contentOf('b'.repeat(400)))
  expect(full).toMatchObject({ code: 'capacity', retryAfterMs: 1_000 })
  expect(one.told()).toEqual([])
  expect(await other.put('price:7', contentOf('c'))).toEqual({ outcome: 'taken' })
})

test('what nobody configured, or is too large, is refused', async () => {
  const { network, one } = await setup()
  expect(await one.put('other:7', contentOf('a'))).toMatchObject({ code: 'unknown_namespace' })
  expect(await one.put('room:7', contentOf('a'))).toMatchObject({ code: 'unknown_namespace' })
  expect(await one.put('price:7', contentOf('x'.repeat(1_000)))).toMatchObject({ code: 'too_large' })
  one.watch('other:7')
  await network.settle()
  expect(one.told()).toEqual(['unknown_namespace'])
})

test('nobody publishes or reads messages where a value is kept', async () => {
  const { network, one } = await setup()
  await one.put('price:7', contentOf('a'))
  for (const room of [pushedKey('price:7'), 'price:7']) {
    const published = publishTo(
      one.backbone,
      { room, messageId: undefined, from: 'ann', data: Buffer.from('"mine"') },
      { deadlineMs: 5_000 },
    )
    await network.settle()
    expect(await published).toMatchObject({ code: 'unknown_namespace' })
  }
  const read = one.backbone.history('price:7', { after: 0, limit: 10 }, { deadlineMs: 5_000 })
  await network.settle()
  expect(await read).toMatchObject({ code: 'unknown_namespace' })
  one.watch('price:7')
  await network.settle()
  expect(one.told()).toEqual(['"a"'])
})

test('a log that cannot be read is told once, and the value comes when it can', async () => {
  let isBroken = false
  const { network, one, other } = await setup({
    wrap: log => ({
      ...log,
      read: (...of) => (isBroken ? Promise.reject(new Error('the disk')) : log.read(...of)),
    }),
  })
  await other.put('price:7', contentOf('a'))
  isBroken = true
  one.watch('price:7')
  one.get('price:7')
  await network.settle()
  expect(new Set(one.told().flat())).toEqual(new Set(['journal_unavailable']))
  isBroken = false
  await network.pass(3_000)
  expect(one.told()).toEqual(['"a"'])
})

test('while a log that others share is out of reach watchers are told so, and then that nothing changed', async () => {
  let isAway = false
  const { network, one, other } = await setup({
    wrap: log => ({
      ...log,
      news: {
        listen() {},
        heads: async keys => {
          if (isAway) throw new Error('away')
          return Promise.all(keys.map(async room => ({ room, head: await log.head(room) })))
        },
      },
    }),
  })
  await other.put('price:7', contentOf('a'))
  one.watch('price:7')
  await network.pass(2_000)
  expect(one.told()).toEqual(['"a"'])
  isAway = true
  await network.pass(2_000)
  expect(one.told()).toEqual(['journal_unavailable'])
  isAway = false
  await network.pass(2_000)
  expect(one.told()).toEqual(['current'])
})
