// Wants of viewer keys bring the viewer's credentials to the node that owns the key: both ends, on the memory network.
import { createHash } from 'node:crypto'
import { viewerKey } from '../wire/viewer-key.ts'
import { createMemoryBackbone } from './backbone-memory.ts'

const ann = createHash('sha256').update('ann').digest('base64url')
const KEY = viewerKey('doc:1', ann)
const credentials = { authorization: 'Bearer ann', expiresAt: 5_000 }

async function setup() {
  const network = createMemoryBackbone()
  const wants: [type: 'watch' | 'get', want: any][] = []
  const hub = network.hub('n1')
  await hub.start({
    onWatch: (_, want) => wants.push(['watch', want]),
    onGet: (_, want) => wants.push(['get', want]),
    onUnwatch() {},
    onCancelGet() {},
    onLinkLost() {},
    answersFor: () => ({ answers: [], more: false }),
  })
  let current: typeof credentials | undefined = credentials
  const backbone = network.backbone(['n1'], {
    held: () => undefined,
    credentials: key => (key.includes('|') ? current : undefined),
    onAnswer() {},
  })
  await backbone.start()
  await network.settle()
  return {
    network,
    wants,
    backbone,
    renew: (renewed: typeof credentials | undefined) => {
      current = renewed
    },
  }
}

test('a watch and a get of a viewer key bring the credentials, those of other keys none', async () => {
  const { network, wants, backbone } = await setup()
  backbone.watch(KEY)
  backbone.get(KEY)
  backbone.watch('doc:1')
  await network.settle()
  expect(wants).toEqual([
    ['watch', { key: KEY, position: undefined, payload: { quiet: true, ...credentials } }],
    ['watch', { key: 'doc:1', position: undefined, payload: { quiet: true } }],
    ['get', { key: KEY, position: undefined, payload: { quiet: false, ...credentials } }],
  ])
})

test('a watch is said again with credentials that were renewed, and without where they have expired', async () => {
  const { network, wants, backbone, renew } = await setup()
  backbone.watch(KEY)
  await network.settle()
  const renewed = { authorization: 'Bearer renewed', expiresAt: 9_000 }
  renew(renewed)
  backbone.renewWatch(KEY)
  backbone.renewWatch(viewerKey('doc:2', ann))
  await network.settle()
  expect(wants.slice(1)).toEqual([['watch', { key: KEY, position: undefined, payload: { quiet: true, ...renewed } }]])
  renew(undefined)
  backbone.renewWatch(KEY)
  await network.settle()
  expect(wants.at(-1)).toEqual(['watch', { key: KEY, position: undefined, payload: { quiet: true } }])
})

test('very long credentials of very many keys come in requests that a node takes', async () => {
  const { network, wants, backbone, renew } = await setup()
  renew({ authorization: `Bearer ${'x'.repeat(8_192)}`, expiresAt: 9_000 })
  for (let i = 0; i < 500; i++) backbone.watch(viewerKey(`doc:${i}`, ann))
  await network.settle()
  expect(wants).toHaveLength(500)
})
