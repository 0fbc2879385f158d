// The ways of a request and of a change through the gateway, by the files whose functions run: docs/architecture.md lists
// them, so that whoever reads those has read all there is.
import { readFileSync } from 'node:fs'
import { Session } from 'node:inspector/promises'
import { createTestGateway } from './test-support.ts'

const here = new URL('./', import.meta.url).href
const page = readFileSync(new URL('../../docs/architecture.md', import.meta.url), 'utf8')

/** Of one flow: more than a reader keeps in mind. A file that goes in is to take the place of another. */
const FILES_MAX = 15

/** The files of the gateway in which functions run, by V8's counts. */
async function filesEnteredBy(flow: () => Promise<unknown>): Promise<string[]> {
  const session = new Session()
  session.connect()
  /** By URL. Other test files in this process have loaded the same, and their timers may still run: the last one is ours. */
  const scripts = new Map<string, string>()
  session.on('Debugger.scriptParsed', ({ params: { url, scriptId } }) => {
    if (Number(scriptId) > Number(scripts.get(url) ?? 0)) scripts.set(url, scriptId)
  })
  try {
    await session.post('Debugger.enable')
    await session.post('Debugger.disable')
    await session.post('Profiler.enable')
    await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
    await session.post('Profiler.takePreciseCoverage')
    await flow()
    const { result } = await session.post('Profiler.takePreciseCoverage')
    return result
      .filter(({ url, scriptId }) => scripts.get(url) === scriptId)
      .filter(({ functions }) => functions.some(({ ranges }) => ranges[0].count > 0))
      .map(({ url }) => new URL(url, 'file:').href)
      .filter(url => url.startsWith(here) && !/test(-[a-z]+)?\.ts$/.test(url))
      .map(url => url.slice(here.length))
      .sort()
  } finally {
    session.disconnect()
  }
}

/** The files that a section of the page lists, in alphabetical order. */
function filesListed(heading: string) {
  const [, section] = page.split(`### ${heading}\n`)
  const [list] = section.split('\n#')
  return [...list.matchAll(/^- `([^`]+)`/gm)].map(([, file]) => file).sort()
}

async function watching() {
  const bench = createTestGateway()
  const client = await bench.connect()
  return { ...bench, client }
}

test('a subscribe to a key that nobody watched runs through the files that are listed', async () => {
  const { client } = await watching()
  const files = await filesEnteredBy(() => client.ask({ type: 'subscribe', id: 1, keys: ['tick:1'] }))
  expect(files).toEqual(filesListed('A cold subscribe in the gateway'))
  expect(files.length).toBeLessThanOrEqual(FILES_MAX)
})

test('a changed value runs through the files that are listed, from the backbone to the socket', async () => {
  const { backbone, client } = await watching()
  await client.ask({ type: 'subscribe', id: 1, keys: ['tick:1'] })
  backbone.value('tick:1', '1')
  await client.received()
  const files = await filesEnteredBy(async () => {
    backbone.value('tick:1', '2')
    expect(await client.received()).toMatchObject([{ type: 'value', data: 2 }])
  })
  expect(files).toEqual(filesListed('A changed value in the gateway'))
  expect(files.length).toBeLessThanOrEqual(FILES_MAX)
})
