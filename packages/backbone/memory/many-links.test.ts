// One node and hundreds of gateways: requests and answers stay within bounds, and all of it is done.
import { BEAT_MS } from '@keycast/service'
import { createLink } from '../gateway/link.ts'
import { CREDIT_TOTAL_BYTES } from '../hub/answers.ts'
import { valuesCodec } from '../wire/values-codec.ts'
import { createMemoryBackbone } from './backbone-memory.ts'
import { startNode } from './test-support.ts'

const log: any = { debug() {}, info() {}, warn() {}, error() {} }

/** @param count of gateways that each want some keys */
async function setup(count: number, keysOf: (gateway: number) => string[]) {
  const network = createMemoryBackbone()
  const node = await startNode(network, 'n1')
  /** The keys that each gateway was sent. */
  const received: Set<string>[] = []
  let dialled = 0
  const links = Array.from({ length: count }, (_, gateway) => {
    received.push(new Set())
    const dial = network.dialOf('n1')
    const link = createLink({
      ...network,
      codec: valuesCodec,
      node: 'n1',
      dial: message => {
        dialled++
        return dial(message)
      },
      events: {
        position: () => undefined,
        onAnswer: ({ key }) => received[gateway].add(key),
        onAlive() {},
        onDead() {},
      },
      log,
    })
    for (const key of keysOf(gateway)) link.watch(key)
    return link
  })
  return { network, node, links, received, dialled: () => dialled }
}

test('300 gateways say all they want to a node that just started and reads slowly: it settles', async () => {
  // 4 requests each; 9.6 s of work for the node, and 2.4 s until each gateway has its turn again.
  const { network, node, links, dialled } = await setup(300, () => [])
  network.readMs.set('n1', 8)
  for (const link of links) {
    for (let i = 0; i < 4; i++) link.notify({ type: 'refresh', keys: [`a:${i}`] }, () => {})
    link.start()
  }
  await network.pass(12 * BEAT_MS)
  expect(node.heard.filter(line => line === 'lost')).toEqual([])
  expect(node.heard).toHaveLength(1_200)
  expect(dialled()).toBe(300)
  expect(links.every(link => link.alive)).toBe(true)
})

test('100 gateways that read nothing pin as much as is under way to all; each goes on once it reads', async () => {
  const keys = Array.from({ length: 30 }, (_, i) => `a:${i}`)
  const { network, node, links, received } = await setup(100, () => keys)
  for (const key of keys) node.put(key, Buffer.alloc(100_000, `${key} `))
  network.unread.add('n1')
  for (const link of links) link.start()
  await network.pass(BEAT_MS)
  network.unread.clear()
  await network.pass(BEAT_MS)
  network.unread.add('n1')
  for (let round = 0; round < 3; round++) {
    for (const key of keys) node.put(key, Buffer.alloc(100_000, `${key} ${round} `))
    await network.settle()
  }
  const { bytesOut } = node.hub.stats()
  expect(bytesOut).toBeGreaterThan(0.8 * CREDIT_TOTAL_BYTES)
  expect(bytesOut).toBeLessThan(CREDIT_TOTAL_BYTES + 100 * 2 ** 17)
  network.unread.clear()
  for (const each of received) each.clear()
  await network.pass(5 * BEAT_MS)
  expect(node.hub.stats().dueKeys).toBe(0)
  for (const each of received) expect(each.size).toBe(30)
})
