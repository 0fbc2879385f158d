// A backend that holds a request until the value changes (`refresh: wait`, RFC 7240).
import type { IncomingMessage, ServerResponse } from 'node:http'
import { documentOf, startBackend } from '../support/backend.ts'
import { connect } from '../support/client.ts'
import { eventually } from '../support/deadline.ts'
import { show } from '../support/figures.ts'
import { childrenOf } from '../support/processes.ts'
import { startSystem } from '../support/system.ts'

/** A backend whose documents are waited for: by whom asks with the entity tag of what there is. */
async function startWaiting() {
  const backend = await startBackend()
  const revisions = new Map<string, number>()
  const held = new Map<string, { response: ServerResponse; end: (status: number) => void }[]>()
  const tagOf = (path: string) => `"${revisions.get(path)}"`

  function answer(path: string, response: ServerResponse, applied: Record<string, string> = {}) {
    response.writeHead(200, { etag: tagOf(path), 'content-type': 'application/json', ...applied })
    response.end(documentOf(revisions.get(path) as number))
  }

  function handle(request: IncomingMessage, response: ServerResponse) {
    const path = request.url ?? ''
    const seconds = Number(/^wait=(\d+)$/.exec(request.headers.prefer as string)?.[1] ?? 0)
    const isCurrent = request.headers['if-none-match'] === tagOf(path)
    const applied = { 'preference-applied': `wait=${seconds}` }
    if (!isCurrent) return answer(path, response, seconds > 0 ? applied : {})
    if (seconds === 0) return response.writeHead(304, { etag: tagOf(path) }).end()
    const waiting = held.get(path) ?? []
    held.set(path, waiting)
    waiting.push({
      response,
      end(status) {
        if (status === 304) response.writeHead(304, { etag: tagOf(path), ...applied }).end()
        else answer(path, response, applied)
      },
    })
  }

  return {
    ...backend,
    held: (path: string) => held.get(path)?.length ?? 0,
    /** Takes what is held, to be answered. */
    release: (path: string) => held.get(path)?.splice(0) ?? [],
    /** Whoever waits is told. */
    put(path: string, revision: number) {
      revisions.set(path, revision)
      backend.on(path, handle)
      for (const { end } of held.get(path)?.splice(0) ?? []) end(200)
    },
    /** What is changed while nobody is told. */
    change: (path: string, revision: number) => revisions.set(path, revision),
  }
}

const backend = await startWaiting()
const { gateways, fetchers } = await startSystem({
  namespaces: { doc: { url: `${backend.origin}/docs/{id}`, refresh: 'wait', maxAge: '1h', timeout: '2s' } },
})
const [gateway] = gateways

const watch = async (key: string, revision: number) => {
  const viewer = await connect(gateway.url)
  await viewer.subscribe([key])
  await viewer.reaches(key, revision)
  return viewer
}

test('a value is there as soon as the backend has it, and the backend is asked once for each', async () => {
  backend.put('/docs/1', 0)
  const viewer = await watch('doc:1', 0)
  await eventually(() => backend.held('/docs/1') === 1, 'a request that waits')
  const took: number[] = []
  const asked = backend.askedFor('/docs/1').length
  for (let revision = 1; revision <= 20; revision++) {
    const changedAt = performance.now()
    backend.put('/docs/1', revision)
    await viewer.reaches('doc:1', revision)
    took.push(performance.now() - changedAt)
    await eventually(() => backend.held('/docs/1') === 1, 'the next request that waits')
  }
  expect(backend.askedFor('/docs/1')).toHaveLength(asked + 20)
  took.sort((a, b) => a - b)
  show(`a changed value to a viewer: ${took[10].toFixed(1)} ms at the median, ${took[19].toFixed(1)} ms at most`)
  viewer.close()
})

test('a refresh asks beside a request that waits, whose answer then counts no more', async () => {
  backend.put('/docs/beside', 1)
  const viewer = await watch('doc:beside', 1)
  await eventually(() => backend.held('/docs/beside') === 1, 'a request that waits')
  const [waiting] = backend.release('/docs/beside')
  backend.change('/docs/beside', 3)
  await gateway.refresh(['doc:beside'])
  await viewer.reaches('doc:beside', 3)
  // Of the time before: whoever believed it would go back.
  waiting.response.writeHead(200, { etag: '"2"', 'preference-applied': 'wait=20' }).end(documentOf(2))
  await eventually(() => backend.held('/docs/beside') === 1, 'the next request that waits')
  backend.put('/docs/beside', 4)
  await viewer.reaches('doc:beside', 4)
  expect(viewer.of('doc:beside').revisions).toEqual([1, 3, 4])
  const ended = `keycast_fetcher_waits_total{origin="${backend.origin}",end="void"}`
  expect(await fetchers[0].metric(ended)).toBe(1)
  viewer.close()
})

test('a worker that dies takes no wait along for good', async () => {
  backend.put('/docs/dies', 1)
  const viewer = await watch('doc:dies', 1)
  await eventually(() => backend.held('/docs/dies') === 1, 'a request that waits')
  backend.release('/docs/dies')
  backend.change('/docs/dies', 2)
  for (const pid of childrenOf(fetchers[0].process.pid)) process.kill(pid, 'SIGKILL')
  await viewer.reaches('doc:dies', 2)
  await eventually(() => backend.held('/docs/dies') === 1, 'the next request that waits')
  viewer.close()
})
