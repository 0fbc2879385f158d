// The rules of link.ts and hub.ts, seen from both ends at once: a gateway's wants, a node's view of them, and the
// answers, while messages are lost and processes stop.
import { CREDIT_BYTES } from '../hub/answers.ts'
import { count, setup, startNode } from './test-support.ts'

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

test('a get is over with its first answer', async () => {
  const { network, node, backbone, received } = await setup()
  node.put('a:1', 'one')

  backbone.get('a:1')
  await network.settle()
  backbone.cancelGet('a:1')
  await network.settle()

  expect(received).toEqual(['a:1 one'])
  expect(node.heard).toEqual(['get a:1'])
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

  expect(node.heard.slice(0, 2)).toEqual(['watch a:1', 'lost'])
  expect(node.heard.slice(2).sort()).toEqual(['watch a:1 one', 'watch a:2'])
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

  const restarted = await startNode(network, 'n1') // in place of a node that said nothing
  restarted.put('a:1', 'two')
  await network.pass(5_000)

  expect(restarted.heard).toContain('watch a:1 one')
  expect(received.at(-1)).toBe('a:1 two')
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

test('an answer to a watch is not one to a get under way, which may accept nothing as old', async () => {
  const { network, node, backbone, got } = await setup()
  node.put('a:1', 'one')
  network.unread.add('n1')
  backbone.watch('a:1')
  await network.settle()
  backbone.get('a:1')
  await network.settle()

  network.unread.clear()
  await network.pass(1_000)

  expect(got).toEqual([false, true])
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
  const { bytesOut, dueKeys } = node.hub.stats()
  expect(bytesOut).toBeGreaterThanOrEqual(CREDIT_BYTES)
  expect(bytesOut).toBeLessThan(CREDIT_BYTES + 2 * 2 ** 20)
  expect(dueKeys).toBe(40)

  network.unread.clear()
  await network.pass(2_000)
  const last = new Map(received.map(line => [line.split(' ')[0], line]))
  for (const key of keys) expect(last.get(key)).toContain('9 of ten')
  expect(received.length).toBeLessThan(60)
})
