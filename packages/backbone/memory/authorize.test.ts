// Questions whether a viewer may read a key: both ends, on the memory network.
import { createHash } from 'node:crypto'
import type { Decision } from '../backbone.ts'
import { ownersAmong } from '../gateway/rendezvous.ts'
import { REQUEST_BYTES_MAX } from '../wire/envelope.ts'
import { viewerKey } from '../wire/viewer-key.ts'
import { createMemoryBackbone } from './backbone-memory.ts'

const ann = createHash('sha256').update('ann').digest('base64url')
const credentials = { authorization: 'Bearer ann', expiresAt: 5_000 }

/** A node that keeps what it hears, and answers a question when told. */
async function startNode(network: ReturnType<typeof createMemoryBackbone>, name: string) {
  const hub = network.hub(name)
  const asked: { link: string; id: string; question: any }[] = []
  await hub.start({
    onWatch() {},
    onGet() {},
    onUnwatch() {},
    onCancelGet() {},
    onLinkLost() {},
    answersFor: () => ({ answers: [], more: false }),
    onCommand: (link, id, { type: _, ...question }) => asked.push({ link, id, question }),
  })
  return {
    hub,
    asked,
    answer(decision: Decision) {
      for (const { link, id } of asked.splice(0)) hub.tellResult(link, id, decision)
    },
  }
}

async function setup(names: string[] = ['n1']) {
  const network = createMemoryBackbone()
  const nodes = new Map()
  for (const name of names) nodes.set(name, await startNode(network, name))
  const backbone = network.backbone(names, { held: () => undefined, onAnswer() {} })
  await backbone.start()
  await network.settle()
  return { network, nodes, backbone }
}

const KEY = viewerKey('doc:1', ann)
const admitted = { verdict: 'admitted', message: '', ageMs: 0 } as const

test('the owner of a viewer key is asked with the credentials, and what it says comes back', async () => {
  const { network, nodes, backbone } = await setup()
  const node = nodes.get('n1')
  const decision = backbone.authorize(KEY, credentials, { deadlineMs: 2_000 })
  await network.settle()
  expect(node.asked.map(({ question }: any) => question)).toEqual([{ key: KEY, ...credentials }])
  node.answer(admitted)
  await network.settle()
  expect(await decision).toEqual({ ...admitted, retryAfterMs: undefined })
})

test('a viewer without a token is asked for without credentials', async () => {
  const { network, nodes, backbone } = await setup()
  void backbone.authorize(KEY, {}, { deadlineMs: 2_000 })
  await network.settle()
  expect(nodes.get('n1').asked[0].question).toEqual({ key: KEY })
})

test('where no node says anything in time there is no decision', async () => {
  const { network, backbone } = await setup()
  const decision = backbone.authorize(KEY, credentials, { deadlineMs: 2_000 })
  await network.pass(2_500)
  expect(await decision).toBeUndefined()
  const none = await setup([])
  expect(await none.backbone.authorize(KEY, credentials, { deadlineMs: 2_000 })).toBeUndefined()
})

test('a question to a node that dies is asked of the next owner, within the same deadline', async () => {
  const names = ['n1', 'n2']
  const owner = ownersAmong(names)(KEY) ?? ''
  const other = names.find(name => name !== owner) ?? ''
  const { network, nodes, backbone } = await setup(names)
  const decision = backbone.authorize(KEY, credentials, { deadlineMs: 10_000 })
  await network.settle()
  expect(nodes.get(owner).asked).toHaveLength(1)
  await nodes.get(owner).hub.stop()
  await network.settle()
  expect(nodes.get(other).asked).toHaveLength(1)
  nodes.get(other).answer(admitted)
  await network.settle()
  expect(await decision).toMatchObject(admitted)
})

test('a gateway that stops leaves no question open', async () => {
  const { network, backbone } = await setup()
  const decision = backbone.authorize(KEY, credentials, { deadlineMs: 10_000 })
  await network.settle()
  await backbone.stop()
  expect(await decision).toBeUndefined()
})

test('questions with the longest tokens leave in requests that a node accepts', async () => {
  const { network, backbone, nodes } = await setup()
  const authorization = `Bearer ${'t'.repeat(8_192)}`
  for (let each = 0; each < 200; each++) {
    void backbone.authorize(viewerKey(`a:${each}`, ann), { authorization, expiresAt: 5_000 }, { deadlineMs: 1_000 })
  }
  await network.settle()
  expect(nodes.get('n1').asked).toHaveLength(200)
  expect(network.requestBytes()).toBeLessThan(REQUEST_BYTES_MAX)
})
