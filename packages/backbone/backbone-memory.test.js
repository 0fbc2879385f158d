// The rules of link.js, hub.js and backbone-links.js, seen from both ends at once: what a gateway wants, what a node
// hears, and what comes back, while messages are lost, processes stop and nodes come and go.
import { createMemoryBackbone } from './backbone-memory.js'
import { CREDIT_BYTES } from './hub.js'
import { ownersAmong } from './rendezvous.js'

/** @typedef {import('./backbone.js').Answer} Answer */

/**
 * A node that remembers what it heard and answers each want with the latest value put into it.
 *
 * @param {ReturnType<typeof createMemoryBackbone>} network @param {string} name
 */
async function startNode(network, name) {
  const hub = network.hub(name)
  /** @type {string[]} */
  const heard = []
  /** @type {Map<string, Set<string>>} */
  const watchers = new Map()
  /** @type {Map<string, Buffer>} */
  const bodies = new Map()
  /** @param {string} link @param {import('./backbone.js').Want} want @param {string} what */
  const wanted = (link, { key, held }, what) => {
    heard.push(`${what} ${key}${held ? ` ${held.version}` : ''}`)
    if (what === 'watch') watchers.set(key, (watchers.get(key) ?? new Set()).add(link))
    if (bodies.has(key)) hub.tell(link, key)
  }
  await hub.start({
    onWatch: (link, want) => wanted(link, want, 'watch'),
    onFetch: (link, want) => wanted(link, want, 'fetch'),
    onUnwatch: (link, key) => {
      heard.push(`unwatch ${key}`)
      watchers.get(key)?.delete(link)
    },
    onCancel: (_, key) => heard.push(`cancel ${key}`),
    onRefresh: key => heard.push(`refresh ${key}`),
    onLinkLost: link => {
      heard.push('lost')
      for (const links of watchers.values()) links.delete(link)
    },
    answerFor: (_, key) => {
      const body = bodies.get(key)
      if (!body) return undefined
      const version = body.toString('latin1', 0, 20)
      return {
        type: 'value',
        key,
        version,
        ageMs: 0,
        maxAgeMs: 1_000,
        store: true,
        contentType: 'text/plain',
        format: 'text',
        body,
      }
    },
  })
  return {
    hub,
    heard,
    watching: (/** @type {string} */ key) => watchers.get(key)?.size ?? 0,
    /** @param {string} key @param {string | Buffer} content */
    put(key, content) {
      bodies.set(key, Buffer.from(content))
      for (const link of watchers.get(key) ?? []) hub.tell(link, key)
    },
  }
}

/** @param {ReturnType<typeof createMemoryBackbone>} network @param {string[]} nodes */
async function startGateway(network, nodes) {
  /** @type {string[]} */
  const received = []
  /** @type {Map<string, import('./backbone.js').Held>} */
  const holds = new Map()
  /** Whether each answer was one to a fetch. @type {boolean[]} */
  const fetched = []
  const backbone = network.backbone(nodes, {
    held: key => holds.get(key),
    onAnswer: (answer, isFetched) => {
      fetched.push(isFetched)
      if (answer.type === 'value') holds.set(answer.key, { version: answer.version, ageMs: answer.ageMs })
      received.push(answer.type === 'failed' ? answer.code : `${answer.key} ${answer.version}`)
    },
  })
  await backbone.start()
  await network.settle()
  return { backbone, received, fetched, holds }
}

async function setup({ nodes = ['n1'] } = {}) {
  const network = createMemoryBackbone()
  const started = new Map()
  for (const name of nodes) started.set(name, await startNode(network, name))
  const gateway = await startGateway(network, nodes)
  return { network, node: started.get(nodes[0]), nodes: started, ...gateway }
}

/** A key owned by the first of the nodes. @param {string[]} nodes */
function keyOfFirst(nodes) {
  const ownerOf = ownersAmong(nodes)
  let i = 0
  while (ownerOf(`a:${i}`) !== nodes[0]) i++
  return `a:${i}`
}

/** Wants of one kind, whatever order they came in. @param {string[]} heard @param {string} what */
const count = (heard, what) => heard.filter(line => line.startsWith(what)).length

test('a watched key is answered now and at every change, until it is unwatched', async () => {
  const { network, node, backbone, received } = await setup()
  node.put('a:1', 'one')

  backbone.watch('a:1')
  await network.settle()
  node.put('a:1', 'two')
  await network.settle()
  backbone.unwatch('a:1')
  await network.settle()
  node.put('a:1', 'three')
  await network.settle()

  expect(received).toEqual(['a:1 one', 'a:1 two'])
  expect(node.heard).toEqual(['watch a:1', 'unwatch a:1'])
})

test('a fetch is over with its first answer', async () => {
  const { network, node, backbone, received } = await setup()
  node.put('a:1', 'one')

  backbone.fetch('a:1')
  await network.settle()
  backbone.cancel('a:1')
  await network.settle()

  expect(received).toEqual(['a:1 one'])
  expect(node.heard).toEqual(['fetch a:1'])
})

test('what changes back within a turn is not said', async () => {
  const { network, node, backbone } = await setup()

  backbone.watch('a:1')
  backbone.unwatch('a:1')
  await network.settle()

  expect(node.heard).toEqual([])
})

test('many keys go in requests of a bounded size', async () => {
  const { network, node, backbone } = await setup()

  for (let i = 0; i < 1_234; i++) backbone.watch(`a:${i}`)
  await network.settle()

  expect(count(node.heard, 'watch')).toBe(1_234)
})

test('states a gateway has not been sent yet are conflated: it gets the latest only', async () => {
  const { network, node, backbone, received } = await setup()
  backbone.watch('a:1')
  await network.settle()

  for (const content of ['one', 'two', 'three']) node.put('a:1', content)
  await network.settle()

  expect(received).toEqual(['a:1 three'])
})

test('lost requests are noticed by the beat after next, and everything is said again with what is held', async () => {
  const { network, node, backbone } = await setup()
  node.put('a:1', 'one')
  backbone.watch('a:1')
  await network.settle()

  network.swallowed.add('n1 requests')
  backbone.watch('a:2')
  await network.settle()
  network.swallowed.delete('n1 requests')
  await network.pass(2_000)

  expect(node.heard).toEqual(['watch a:1', 'lost', 'watch a:1 one', 'watch a:2'])
})

test('a request after a lost one is not heard out of order', async () => {
  const { network, node, backbone } = await setup()
  backbone.watch('a:1')
  await network.settle()
  network.swallowed.add('n1 requests')
  backbone.unwatch('a:1')
  await network.settle()
  network.swallowed.delete('n1 requests')

  backbone.watch('a:2')
  await network.pass(1_000)

  expect(node.heard).toEqual(['watch a:1', 'lost', 'watch a:2'])
  expect(node.watching('a:1')).toBe(0)
})

test('a lost answer is noticed by the next beat and given again', async () => {
  const { network, node, backbone, received } = await setup()
  node.put('a:1', 'one')
  backbone.watch('a:1')
  await network.settle()

  network.swallowed.add('n1 answers')
  node.put('a:1', 'two')
  await network.settle()
  network.swallowed.delete('n1 answers')
  await network.pass(1_000)

  expect(received).toEqual(['a:1 one', 'a:1 two'])
})

test('a node that falls silent is dead after 3 s, and lives again when it speaks', async () => {
  const { network, node, backbone, received } = await setup()
  node.put('a:1', 'one')
  backbone.watch('a:1')
  await network.settle()

  network.swallowed.add('n1 answers')
  await network.pass(3_000)
  expect(backbone.nodesAlive()).toBe(0)
  expect(backbone.ownerOf('a:1')).toEqual({ node: undefined, alive: false })

  node.put('a:1', 'two')
  network.swallowed.delete('n1 answers')
  await network.pass(3_000)
  expect(backbone.nodesAlive()).toBe(1)
  expect(received.at(-1)).toBe('a:1 two')
})

test('a silent gateway is forgotten after 3 s, and says its state again when it is back', async () => {
  const { network, node, backbone } = await setup()
  backbone.watch('a:1')
  await network.settle()

  network.swallowed.add('n1 beats')
  await network.pass(4_000)
  expect(node.watching('a:1')).toBe(0)
  network.swallowed.delete('n1 beats')
  await network.pass(3_000)

  expect(node.watching('a:1')).toBe(1)
})

test('a gateway that stops takes its leave: nothing is kept fresh for it', async () => {
  const { network, node, backbone } = await setup()
  backbone.watch('a:1')
  await network.settle()

  await backbone.stop()
  await network.settle()

  expect(node.heard).toEqual(['watch a:1', 'lost'])
  expect(node.hub.stats().links).toBe(0)
})

test('processes that were stopped judge nobody', async () => {
  const { network, node, backbone } = await setup()
  backbone.watch('a:1')
  await network.settle()

  await network.freeze(60_000)

  expect(backbone.nodesAlive()).toBe(1)
  expect(node.heard).toEqual(['watch a:1'])
})

test('a node that starts anew does not know its links and is told everything', async () => {
  const { network, node, backbone, received } = await setup()
  node.put('a:1', 'one')
  backbone.watch('a:1')
  await network.settle()

  const restarted = await startNode(network, 'n1') // in the place of one that said nothing
  restarted.put('a:1', 'two')
  await network.pass(5_000)

  expect(restarted.heard).toContain('watch a:1 one')
  expect(received.at(-1)).toBe('a:1 two')
})

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

test('a key left and wanted again in one turn is answered again', async () => {
  const { network, node, backbone, received } = await setup()
  node.put('a:1', 'one')
  backbone.watch('a:1')
  await network.settle()
  backbone.unwatch('a:1')
  backbone.watch('a:1')
  await network.settle()
  expect(received).toEqual(['a:1 one', 'a:1 one'])
  expect(node.heard).toEqual(['watch a:1', 'watch a:1 one'])
})

test('an answer to a watch is not one to a fetch under way, which may accept nothing as old', async () => {
  const { network, node, backbone, fetched } = await setup()
  node.put('a:1', 'one')
  network.unread.add('n1')
  backbone.watch('a:1')
  await network.settle()
  backbone.fetch('a:1')
  await network.settle()

  network.unread.clear()
  await network.pass(1_000)

  expect(fetched).toEqual([false, true])
})

test('a gateway that does not read is sent 8 MiB and one message; the rest waits as keys, and the latest follows', async () => {
  const { network, node, backbone, received } = await setup()
  const keys = Array.from({ length: 40 }, (_, i) => `a:${i}`)
  for (const key of keys) backbone.watch(key)
  await network.settle()

  network.unread.add('n1')
  for (let round = 0; round < 10; round++) {
    for (const key of keys) node.put(key, Buffer.alloc(2 ** 20, `${round} of ten, of many `))
    await network.settle()
  }
  const { bytesOut, lackingKeys } = node.hub.stats()
  expect(bytesOut).toBeGreaterThanOrEqual(CREDIT_BYTES)
  expect(bytesOut).toBeLessThan(CREDIT_BYTES + 2 * 2 ** 20)
  expect(lackingKeys).toBe(40)

  network.unread.clear()
  await network.pass(2_000)
  const last = new Map(received.map(line => [line.split(' ')[0], line]))
  for (const key of keys) expect(last.get(key)).toContain('9 of ten')
  expect(received.length).toBeLessThan(60)
})

test('a refresh is done when every node has it, whoever owns the keys', async () => {
  const { network, nodes, backbone } = await setup({ nodes: ['n1', 'n2'] })
  network.swallowed.add('n2 requests')
  let isDone = false
  const done = backbone.refresh(['a:1', 'a:2'], { deadlineMs: 60_000 }).then(() => {
    isDone = true
  })
  await network.settle()
  expect(nodes.get('n1').heard).toEqual(['refresh a:1', 'refresh a:2'])
  expect(isDone).toBe(false)

  network.swallowed.clear()
  await network.pass(3_000)
  await done
  expect(nodes.get('n2').heard).toEqual(['lost', 'refresh a:1', 'refresh a:2'])
})

test('a refresh does not wait for a node that died, and goes to one that came', async () => {
  const { network, backbone } = await setup({ nodes: ['n1', 'n2'] })
  network.swallowed.add('n1 requests').add('n2 answers').add('n2 beats').add('n2 requests')
  const done = backbone.refresh(['a:1'], { deadlineMs: 60_000 })
  const joining = await startNode(network, 'n3')
  await network.list(['n1', 'n2', 'n3'])
  await network.pass(4_000)

  network.swallowed.delete('n1 requests')
  await network.pass(3_000)
  await done

  expect(joining.heard).toEqual(['refresh a:1'])
})

test('a node that is found, or heard again, soon after a refresh is told of it', async () => {
  const { network, node, backbone } = await setup()
  const joining = await startNode(network, 'n2')
  const done = backbone.refresh(['a:1'], { deadlineMs: 60_000 })
  await network.settle()
  await done

  await network.list(['n1', 'n2'])
  expect(joining.heard).toEqual(['refresh a:1'])

  network.swallowed.add('n1 answers').add('n1 beats').add('n1 requests')
  await network.pass(4_000)
  network.swallowed.clear()
  await network.pass(4_000)
  expect(node.heard.at(-1)).toBe('refresh a:1')
})

test('a refresh of more keys than a message holds is done when all messages arrived', async () => {
  const { node, backbone, network } = await setup()
  const keys = Array.from({ length: 1_234 }, (_, i) => `a:${i}`)

  const done = backbone.refresh(keys, { deadlineMs: 60_000 })
  await network.settle()
  await done

  expect(count(node.heard, 'refresh')).toBe(1_234)
})

test('a refresh that was lost is said again', async () => {
  const { network, node, backbone } = await setup()
  network.swallowed.add('n1 requests')
  const done = backbone.refresh(['a:1'], { deadlineMs: 5_000 })
  await network.settle()
  network.swallowed.clear()

  await network.pass(3_000)
  await done

  expect(node.heard).toEqual(['lost', 'refresh a:1'])
})

test('a refresh nobody takes in time fails, and is not said later', async () => {
  const network = createMemoryBackbone()
  const { backbone } = await startGateway(network, ['n1'])

  await expect(backbone.refresh(['a:1'], { deadlineMs: 20 })).rejects.toThrow('in time')

  const node = await startNode(network, 'n1')
  await network.pass(5_000)
  expect(backbone.nodesAlive()).toBe(1)
  expect(node.heard).toEqual([])
})
