// A process of its own, for flows.test.ts: says which files of the gateway functions ran in, by V8's counts.
import { Session } from 'node:inspector/promises'
import { createTestGateway } from './test-support.ts'

const here = new URL('./', import.meta.url).href

async function filesEnteredBy(flow: () => Promise<unknown>): Promise<string[]> {
  const session = new Session()
  session.connect()
  await session.post('Profiler.enable')
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
  await session.post('Profiler.takePreciseCoverage')
  await flow()
  const { result } = await session.post('Profiler.takePreciseCoverage')
  session.disconnect()
  return result
    .filter(({ functions }) => functions.some(({ ranges }) => ranges[0].count > 0))
    .map(({ url }) => url)
    .filter(url => url.startsWith(here) && !/(test-support|[.]fixture)[.]ts$/.test(url))
    .map(url => url.slice(here.length))
    .sort()
}

const { backbone, connect } = createTestGateway()
const client = await connect()
const subscribe = await filesEnteredBy(() => client.ask({ type: 'subscribe', id: 1, keys: ['tick:1'] }))
backbone.value('tick:1', '1')
await client.received()
let received: unknown
const change = await filesEnteredBy(async () => {
  backbone.value('tick:1', '2')
  received = await client.received()
})
process.stdout.write(JSON.stringify({ subscribe, change, received }))
process.exit()
