// Links and hubs with a codec that is not the values': nothing of an order is lost, doubled or turned round, whatever
// the network swallows.
import { randomNumbers } from '../../../test/support/random.js'
import { CREDIT_BYTES } from '../hub/answers.ts'
import { createMemoryNetwork } from './network.ts'
import { startLogLink, startLogNode } from './test-service.ts'

async function setup() {
  const network = createMemoryNetwork()
  const node = await startLogNode({ bind: network.bindOf('n1'), ...network })
  const gateway = startLogLink({ dial: network.dialOf('n1'), ...network })
  await network.settle()
  return { network, node, ...gateway }
}

const range = (count: number) => Array.from({ length: count }, (_, i) => i + 1)

test('while one message in five is lost, commands are done once and in order, and watchers are told each entry once', async () => {
  const { network, node, link, received, append } = await setup()
  const random = randomNumbers(7)
  link.watch('room:1')
  network.chance.loses = () => random() < 0.2
  const results = []
  for (let i = 1; i <= 200; i++) {
    results.push(append('room:1', `id-${i}`, `text ${i}`))
    if (i % 5 === 0) await network.pass(500)
  }
  await network.pass(60_000)
  network.chance.loses = () => false
  await network.pass(10_000)

  expect(node.entriesOf('room:1').map(({ data }) => data.toString())).toEqual(range(200).map(i => `text ${i}`))
  expect(received.map(({ seq }) => seq)).toEqual(range(200))
  expect(received.map(({ data, stamp }) => `${data} ${stamp}`)).toEqual(range(200).map(i => `text ${i} id-${i}`))
  const ends = await Promise.all(results)
  expect(ends.map(end => end.type === 'result' && end.result.seq)).toEqual(range(200))
})

test('a command whose result was lost is repeated under its id, and the node tells it by that', async () => {
  const { network, node, append } = await setup()
  network.swallowed.add('n1 answers')
  const result = append('room:1', 'id-1', 'text')
  await network.settle()
  expect(node.entriesOf('room:1')).toHaveLength(1)

  network.swallowed.clear()
  await network.pass(2_000)
  expect(await result).toEqual({ type: 'result', result: { seq: 1, isDuplicate: true }, isRepeated: true })
  expect(node.entriesOf('room:1')).toHaveLength(1)
})

test('a publisher that watches is sent its entry before the result', async () => {
  const { network, link, received, append } = await setup()
  link.watch('room:1')
  await network.settle()
  const seen = append('room:1', 'id-1', 'text').then(() => received.length)
  await network.settle()
  expect(await seen).toBe(1)
})

test('a command the node may have heard ends as unknown at its deadline, one that was never said as unsaid', async () => {
  const { network, node, link, append } = await setup()
  network.swallowed.add('n1 answers')
  const heard = append('room:1', 'id-1', 'text', 1_000)
  await network.pass(1_000)
  expect(await heard).toEqual({ type: 'unknown' })

  await network.pass(5_000)
  const unheard = append('room:1', 'id-2', 'text', 1_000)
  await network.pass(1_000)
  expect(await unheard).toEqual({ type: 'unsaid' })

  const last = append('room:1', 'id-3', 'text')
  link.stop()
  expect(await last).toEqual({ type: 'unsaid' })
  expect(node.entriesOf('room:1')).toHaveLength(1)
})

test('a command costs the same however many are under way', async () => {
  const network = createMemoryNetwork()
  let clockReads = 0
  const now = () => {
    clockReads++
    return network.now()
  }
  const { append } = startLogLink({ ...network.world, dial: network.dialOf('n1'), now })
  for (let n = 0; n < 1_000; n++) append('room:1', `id-${n}`, 'text')
  clockReads = 0
  append('room:1', 'id-last', 'text')
  expect(clockReads).toBeLessThan(10)
})

test('a command of a kind that the node does not know is refused, and the next one is done', async () => {
  const { network, link, append } = await setup()
  const ends: unknown[] = []
  link.command('id-1', { key: 'room:1', command: { type: 'rewind', key: 'room:1' }, deadlineMs: 10_000 }, end =>
    ends.push(end),
  )
  const next = append('room:1', 'id-2', 'text')
  await network.settle()
  expect(ends).toEqual([{ type: 'refused' }])
  expect(await next).toMatchObject({ type: 'result' })
})

test('results told before a node stops arrive before its goodbye', async () => {
  const { network, node, link, append } = await setup()
  await network.settle()
  const result = append('room:1', 'id-1', 'text')
  // The result is told in the turn in which the node stops.
  while (node.entriesOf('room:1').length === 0) await new Promise(setImmediate)
  await node.hub.stop()
  await network.settle()
  expect(await result).toMatchObject({ type: 'result' })
  expect(link.alive).toBe(false)
})

test('a gateway that does not read is sent as much as its credit; the rest waits as a cursor, and nothing is left out', async () => {
  const { network, node, link, received } = await setup()
  link.watch('room:1')
  link.watch('room:2')
  await network.settle()
  network.unread.add('n1')
  for (let i = 1; i <= 2_000; i++) {
    node.append('room:1', `a-${i}`, Buffer.alloc(10_000), Buffer.from('x'))
    if (i <= 5) node.append('room:2', `b-${i}`, Buffer.from('small'), Buffer.from('x'))
  }
  await network.settle()
  const { bytesOut, dueKeys } = node.hub.stats()
  expect(bytesOut).toBeGreaterThanOrEqual(CREDIT_BYTES)
  expect(bytesOut).toBeLessThan(CREDIT_BYTES + 2 ** 20)
  expect(dueKeys).toBe(1) // the short room's entries went between those of the long one

  network.unread.clear()
  await network.pass(20_000)
  expect(received.filter(({ key }) => key === 'room:1').map(({ seq }) => seq)).toEqual(range(2_000))
  expect(received.filter(({ key }) => key === 'room:2').map(({ seq }) => seq)).toEqual(range(5))
})

test('beats say how far the node is, and a payload that changed is said again', async () => {
  const { network, node, link, heads, reader } = await setup()
  link.watch('room:1')
  await network.settle()
  node.append('room:1', 'id-1', Buffer.from('text'), Buffer.from('x'))
  await network.pass(1_000)
  expect(heads.at(-1)).toEqual({ 'room:1': 1 })

  reader.name = 'bob'
  link.renewWatch('room:1')
  await network.settle()
  expect(node.readers).toEqual(['ann', 'bob'])
})
