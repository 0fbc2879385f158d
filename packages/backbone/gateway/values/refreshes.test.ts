// Refresh calls on their way to every node, whatever is lost.
import { createMemoryBackbone } from '../../memory/backbone-memory.ts'
import { count, setup, startGateway, startNode } from '../../memory/test-support.ts'

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

test('so is one that was started anew before anybody missed it', async () => {
  const { network, backbone } = await setup()
  const done = backbone.refresh(['a:1'], { deadlineMs: 60_000 })
  await network.settle()
  await done
  await network.pass(500)
  const restarted = await startNode(network, 'n1')
  await network.pass(2_000)
  expect(restarted.heard).toEqual(['refresh a:1'])
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

  const refused = expect(backbone.refresh(['a:1'], { deadlineMs: 20 })).rejects.toThrow('in time')
  await network.pass(20)
  await refused

  const node = await startNode(network, 'n1')
  await network.pass(5_000)
  expect(backbone.nodesAlive()).toBe(1)
  expect(node.heard).toEqual([])
})
