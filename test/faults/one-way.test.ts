// A node that beats and hears no requests, as where a firewall blocks only its port for them: its keys go to the other
// node, stay there, and come back when the port is open again.
import { answers, documentOf, startBackend } from '../support/backend.ts'
import { startBlackhole } from '../support/blackhole.ts'
import { connect } from '../support/client.ts'
import { eventually } from '../support/deadline.ts'
import { msSince, show } from '../support/figures.ts'
import { nodeAt, startSystem } from '../support/system.ts'

const backend = await startBackend()
const namespaces = { doc: { url: `${backend.origin}/docs/{id}`, refresh: '200ms', timeout: '500ms' } }
const { fetchers, nodes, startGateway } = await startSystem({ gateways: 0, fetchers: 2, namespaces })
const requests = await startBlackhole(fetchers[0].ports.requestsPort)
const blocked = nodeAt({ ...fetchers[0].ports, requestsPort: requests.port })
const gateway = await startGateway({ FETCHER_NODES: [blocked, nodes[1]].join() })

/** The nodes that these keys are asked of. */
async function ownersOf(keys: string[]) {
  return new Set(await Promise.all(keys.map(async key => (await gateway.inspect(key)).owner.node)))
}

test.each(['drop', 'hold'] as const)(
  'a node whose port for requests is blocked (%s) gives up its keys, and has them back',
  async how => {
    const keys = Array.from({ length: 40 }, (_, index) => `doc:${how}-${index}`)
    const put = (revision: number) => {
      for (const key of keys) backend.on(`/docs/${key.slice(4)}`, answers.json(documentOf(revision)))
    }
    put(1)
    const viewer = await connect(gateway.url)
    await gateway.usesAllNodes()
    expect((await ownersOf(keys)).size).toBe(2)

    requests.swallow(how)
    const blockedAt = performance.now()
    await viewer.subscribe(keys)
    for (const key of keys) await viewer.reaches(key, 1)
    show(`${how}: all keys served ${msSince(blockedAt)} after they were asked for`)
    for (let revision = 2; revision <= 16; revision++) {
      put(revision)
      for (const key of keys) await viewer.reaches(key, revision)
      // A question costs the gateway CPU time: each round asks for a fifth of the keys.
      const some = keys.filter((_, index) => index % 5 === revision % 5)
      expect(await ownersOf(some)).toEqual(new Set([nodes[1]]))
    }

    expect(await ownersOf(keys)).toEqual(new Set([nodes[1]]))

    requests.mend()
    const mendedAt = performance.now()
    await eventually(async () => (await ownersOf(keys)).has(blocked), 'that the node has keys again')
    show(`${how}: the node has its keys again ${msSince(mendedAt)} after mending`)
    put(17)
    for (const key of keys) await viewer.reaches(key, 17)
    viewer.close()
  },
)
