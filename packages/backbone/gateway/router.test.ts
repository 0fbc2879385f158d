// The choice among many nodes for a key, while nodes come and go.
import { count, keyOfFirst, setup, startNode } from '../memory/test-support.ts'
import { CUT_OFF_MS, HOLD_MS_MAX, HOLD_MS_MIN } from './hold-down.ts'
import { ownersAmong } from './rendezvous.ts'
import { createValuesBackbone } from './values/values-backbone.ts'

test('each key is asked of its owner alone', async () => {
  const { network, nodes, backbone } = await setup({ nodes: ['n1', 'n2', 'n3'] })

  for (let i = 0; i < 100; i++) backbone.watch(`a:${i}`)
  await network.settle()

  const ownerOf = ownersAmong(['n1', 'n2', 'n3'])
  for (const [name, { heard }] of nodes) {
    for (const line of heard) expect(ownerOf(line.slice('watch '.length))).toBe(name)
  }
  expect([...nodes.values()].reduce((sum, { heard }) => sum + heard.length, 0)).toBe(100)
})

test('when an owner dies its keys go to the others with what is held, and come back with the node', async () => {
  const { network, nodes, backbone, received } = await setup({ nodes: ['n1', 'n2'] })
  const key = keyOfFirst(['n1', 'n2'])
  for (const node of nodes.values()) node.put(key, 'one')
  backbone.watch(key)
  await network.settle()

  network.swallowed.add('n1 answers').add('n1 beats').add('n1 requests')
  await network.pass(4_000)
  nodes.get('n2').put(key, 'two')
  await network.settle()
  expect(nodes.get('n2').heard).toEqual([`watch ${key} one`])
  expect(received.at(-1)).toBe(`${key} two`)

  network.swallowed.clear()
  nodes.get('n1').put(key, 'three')
  await network.pass(4_000)
  expect(nodes.get('n2').watching(key)).toBe(0)
  expect(received.at(-1)).toBe(`${key} three`)
})

test('an answer still under way from a node that no longer owns the key is not taken', async () => {
  const { network, node, backbone, received } = await setup()
  const joining = await startNode(network, 'n2')
  const key = keyOfFirst(['n2', 'n1'])
  joining.put(key, 'new')
  backbone.watch(key)
  await network.settle()
  network.unread.add('n1')
  node.put(key, 'late')
  await network.settle()

  await network.list(['n1', 'n2'])
  network.unread.clear()
  await network.pass(1_000)

  expect(node.heard).toEqual([`watch ${key}`, `unwatch ${key}`])
  expect(received).toEqual([`${key} new`])
})

test('a node that stops takes its leave: its keys go to the others at once', async () => {
  const { network, node, nodes, backbone, received } = await setup({ nodes: ['n1', 'n2'] })
  const key = keyOfFirst(['n1', 'n2'])
  for (const each of nodes.values()) each.put(key, 'one')
  backbone.watch(key)
  await network.settle()

  await node.hub.stop()
  nodes.get('n2').put(key, 'two')
  await network.settle()

  expect(backbone.nodesAlive()).toBe(1)
  expect(received.at(-1)).toBe(`${key} two`)
})

test('a node no longer listed gives up its keys once a listed one speaks', async () => {
  const { network, node, backbone } = await setup()
  const joining = await startNode(network, 'n2')
  const key = keyOfFirst(['n1', 'n2'])
  backbone.watch(key)
  await network.settle()

  await network.list([])
  expect(backbone.ownerOf(key)).toEqual({ node: 'n1', alive: true })

  await network.list(['n2'])
  expect(backbone.ownerOf(key)).toEqual({ node: 'n2', alive: true })
  expect(joining.heard).toEqual([`watch ${key}`])
  await network.pass(4_000)
  expect(node.watching(key)).toBe(0)
})

test('a gateway that was stopped links to nobody, also where a look-up ends later', async () => {
  const { network, backbone } = await setup()
  const joining = await startNode(network, 'n2')
  await backbone.stop()
  await network.list(['n1', 'n2'])
  await network.pass(2_000)
  expect(joining.hub.stats().links).toBe(0)
})

test('a node that beats and hears no requests gives up its keys, and has them back once it hears', async () => {
  const { network, node, nodes, backbone, received } = await setup({ nodes: ['n1', 'n2'] })
  const key = keyOfFirst(['n1', 'n2'])
  for (const each of nodes.values()) each.put(key, 'one')
  network.swallowed.add('n1 requests')
  backbone.watch(key)
  await network.pass(5_000)
  expect(backbone.ownerOf(key)).toEqual({ node: 'n2', alive: true })
  expect(received).toEqual([`${key} one`])

  await network.pass(20_000)
  expect(backbone.ownerOf(key)).toEqual({ node: 'n2', alive: true })

  network.swallowed.clear()
  await network.pass(3_000 + HOLD_MS_MIN)
  expect(backbone.ownerOf(key)).toEqual({ node: 'n1', alive: true })
  expect(node.watching(key)).toBe(1)
})

test('a node none of whose answers can be read gives up its keys, and has them back once one can', async () => {
  const { network, node, nodes, backbone, received } = await setup({ nodes: ['n1', 'n2'] })
  const key = keyOfFirst(['n1', 'n2'])
  for (const each of nodes.values()) each.put(key, 'one')
  network.damaged.add('n1')
  backbone.watch(key)
  await network.pass(5_000)
  expect(backbone.ownerOf(key)).toEqual({ node: 'n2', alive: true })
  expect(received).toEqual([`${key} one`])

  for (let second = 0; second < 60; second++) {
    await network.pass(1_000)
    expect(backbone.ownerOf(key)).toEqual({ node: 'n2', alive: true })
  }

  network.damaged.clear()
  await network.pass(3_000 + HOLD_MS_MIN)
  expect(backbone.ownerOf(key)).toEqual({ node: 'n1', alive: true })
  expect(node.watching(key)).toBe(1)
  expect(nodes.get('n2').watching(key)).toBe(0)
})

test('a node that cannot reach its log gives its keys to one that can, and has them back once it can', async () => {
  const { network, node, nodes, backbone } = await setup({ nodes: ['n1', 'n2'] })
  const key = keyOfFirst(['n1', 'n2'])
  backbone.watch(key)
  node.cutOff(true)
  await network.pass(CUT_OFF_MS)
  expect(backbone.ownerOf(key)).toEqual({ node: 'n1', alive: true })
  await network.pass(2_000)
  for (let second = 0; second < 60; second++) {
    expect(backbone.ownerOf(key)).toEqual({ node: 'n2', alive: true })
    await network.pass(1_000)
  }
  expect(nodes.get('n2').watching(key)).toBe(1)
  expect(backbone.nodesAlive()).toBe(2)

  node.cutOff(false)
  await network.pass(2_000 + HOLD_MS_MIN)
  expect(backbone.ownerOf(key)).toEqual({ node: 'n1', alive: true })

  node.cutOff(true)
  await network.pass(CUT_OFF_MS + 2_000)
  await nodes.get('n2').hub.stop()
  await network.settle()
  expect(backbone.ownerOf(key)).toEqual({ node: 'n1', alive: true })
})

test('where no node reaches its log no key moves, though each notices at another time', async () => {
  const { network, nodes, backbone } = await setup({ nodes: ['n1', 'n2'] })
  const keys = [keyOfFirst(['n1', 'n2']), keyOfFirst(['n2', 'n1'])]
  for (const isCutOff of [true, false]) {
    for (const node of nodes.values()) {
      node.cutOff(isCutOff)
      for (let second = 0; second < 4; second++) {
        await network.pass(1_000)
        expect(keys.map(key => backbone.ownerOf(key).node)).toEqual(['n1', 'n2'])
      }
    }
    await network.pass(2 * CUT_OFF_MS)
    expect(keys.map(key => backbone.ownerOf(key).node)).toEqual(['n1', 'n2'])
  }
})

test('keys move over many turns, and what changes meanwhile is not forgotten', async () => {
  const { network, nodes } = await setup({ nodes: ['n1', 'n2'] })
  const joining = await startNode(network, 'n3')
  let looks = 0
  let list: (names: string[]) => void = () => {}
  const backbone = createValuesBackbone({
    nodeSource: {
      async start(found) {
        list = found
        found(['n1', 'n2'])
      },
      stop() {},
    },
    dialOf: network.dialOf,
    events: { held: () => undefined, onAnswer() {} },
    ...network.world,
    now: () => network.now() + looks++ * 0.01, // each look at the clock is some work
    log: { debug() {}, info() {}, warn() {}, error() {} },
  })
  await backbone.start()
  const keys = Array.from({ length: 12_000 }, (_, i) => `a:${i}`)
  for (const key of keys) backbone.watch(key)
  await network.pass(1_000)

  list(['n1', 'n2', 'n3'])
  let isStopped = false
  for (let turns = 0, before = 0; turns < 200; turns++) {
    await new Promise(setImmediate)
    const heard = count(joining.heard, 'watch')
    expect(heard - before).toBeLessThan(500)
    before = heard
    if (heard < 1_000 || isStopped) continue
    isStopped = true
    await nodes.get('n1').hub.stop() // its keys go to the others while the first walk is under way
    for (const key of keys.slice(0, 6_000)) backbone.unwatch(key)
    backbone.watch('b:1')
  }
  expect(isStopped).toBe(true)
  await network.pass(1_000)

  const ownerOf = ownersAmong(['n2', 'n3'])
  const all = { n2: nodes.get('n2'), n3: joining }
  const watched = new Set(['b:1', ...keys.slice(6_000)])
  const misplaced = [...watched, ...keys.slice(0, 6_000)].filter(key =>
    Object.entries(all).some(
      ([name, node]) => node.watching(key) !== (watched.has(key) && name === ownerOf(key) ? 1 : 0),
    ),
  )
  expect(misplaced).toEqual([])
})

test('a node that is gone and found again at once is told its keys anew', async () => {
  const { network, node, backbone } = await setup()
  backbone.watch('a:1')
  await network.settle()

  await startNode(network, 'n2')
  await network.list(['n2'])
  network.list([])
  network.list(['n1'])
  await network.pass(5_000)
  expect(backbone.ownerOf('a:1')).toEqual({ node: 'n1', alive: true })
  expect(node.watching('a:1')).toBe(1)
})

/** @param node of which nothing is heard */
function cutOff({ swallowed }: Awaited<ReturnType<typeof setup>>['network'], node: string) {
  for (const what of ['requests', 'beats', 'answers']) swallowed.add(`${node} ${what}`)
}

test('a node whose host stalls again and again is held down: its keys stay where they are until it is calm', async () => {
  const { network, nodes, backbone } = await setup({ nodes: ['n1', 'n2'] })
  const key = keyOfFirst(['n1', 'n2'])
  backbone.watch(key)
  await network.settle()
  const owners: (string | undefined)[] = ['n1']
  const pass = async (ms: number) => {
    for (const endsAt = network.now() + ms; network.now() < endsAt; ) {
      await network.pass(100)
      const { node } = backbone.ownerOf(key)
      if (node !== owners.at(-1)) owners.push(node)
    }
  }
  for (let cycle = 0; cycle < 30; cycle++) {
    cutOff(network, 'n1')
    await pass(3_500)
    network.swallowed.clear()
    await pass(6_500)
  }
  // Held for 2, 4, 8 and 16 s: by then it is lost again before it has its keys.
  expect(owners).toEqual(['n1', 'n2', 'n1', 'n2', 'n1', 'n2', 'n1', 'n2'])
  expect(backbone.nodesAlive()).toBe(2)
  expect(backbone.nodesHeld()).toBe(1)

  await pass(HOLD_MS_MAX)
  expect(owners.slice(8)).toEqual(['n1'])
  expect(backbone.nodesHeld()).toBe(0)
  expect(nodes.get('n1').watching(key)).toBe(1)
  expect(nodes.get('n2').watching(key)).toBe(0)
})

test('a node that is held down serves all the same once no other node does', async () => {
  const { network, backbone } = await setup({ nodes: ['n1', 'n2'] })
  const key = keyOfFirst(['n1', 'n2'])
  for (let losses = 0; losses < 3; losses++) {
    cutOff(network, 'n1')
    await network.pass(4_000)
    network.swallowed.clear()
    await network.pass(1_000)
  }
  expect(backbone.ownerOf(key)).toEqual({ node: 'n2', alive: true })
  cutOff(network, 'n2')
  await network.pass(4_000)
  expect(backbone.ownerOf(key)).toEqual({ node: 'n1', alive: true })
})

test('nodes that are lost all at once are not held down: the first to answer must not get all keys', async () => {
  const { network, backbone } = await setup({ nodes: ['n1', 'n2', 'n3'] })
  for (const node of ['n1', 'n2', 'n3']) cutOff(network, node)
  await network.pass(5_000)
  expect(backbone.nodesAlive()).toBe(0)
  network.swallowed.clear()
  await network.pass(1_000)
  expect(backbone.nodesAlive()).toBe(3)
  expect(backbone.nodesHeld()).toBe(0)
  for (const first of ['n1', 'n2', 'n3']) {
    const key = keyOfFirst([first, ...['n1', 'n2', 'n3'].filter(name => name !== first)])
    expect(backbone.ownerOf(key).node).toBe(first)
  }
})

test('the only node is never held down', async () => {
  const { network, backbone } = await setup()
  for (let losses = 0; losses < 5; losses++) {
    cutOff(network, 'n1')
    await network.pass(4_000)
    network.swallowed.clear()
    await network.pass(1_000)
    expect(backbone.ownerOf('a:1')).toEqual({ node: 'n1', alive: true })
  }
})

test('a node that is held down is told of refreshes: another gateway may ask it', async () => {
  const { network, node, backbone } = await setup({ nodes: ['n1', 'n2'] })
  cutOff(network, 'n1')
  await network.pass(4_000)
  network.swallowed.clear()
  await network.pass(1_000)
  expect(backbone.nodesHeld()).toBe(1)
  const refreshed = backbone.refresh(['a:1'], { deadlineMs: 1_000 })
  await network.settle()
  await refreshed
  expect(node.heard).toContain('refresh a:1')
})
