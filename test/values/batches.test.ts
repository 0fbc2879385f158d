// A backend that is asked for many keys at once: by few requests, and with no key harmed by another.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { answers, startBackend } from '../support/backend.ts'
import { connect, type Sight } from '../support/client.ts'
import { startSystem } from '../support/system.ts'

const KEYS = 1_000

const backend = await startBackend()
const { gateways } = await startSystem({
  namespaces: {
    item: {
      batch: { url: `${backend.origin}/items?ids={ids}`, max: 100, items: '/data/items', id: '/id' },
      refresh: '2s',
    },
    other: { batch: { url: `${backend.origin}/others/{ids}`, items: '', id: '/key/id' }, refresh: 0 },
  },
})

const revisions = new Map<string, number>()
const revisionOf = (id: string) => revisions.get(id) ?? 1

const idsIn = (path: string) => new URL(path, backend.origin).searchParams.get('ids')?.split(',') ?? []

/** Has no item named `missing`, and fails for whoever asks for `bad`. */
function serve(request: IncomingMessage, response: ServerResponse) {
  const ids = idsIn(request.url ?? '')
  if (ids.includes('bad')) {
    answers.status(500)(request, response)
    return
  }
  const items = ids
    .filter(id => id !== 'missing')
    .map(id => ({ name: `item ${id}`, id: /^\d+$/.test(id) ? Number(id) : id, revision: revisionOf(id) }))
    .reverse()
  answers.json(JSON.stringify({ data: { items, count: items.length } }))(request, response)
}

const keys = Array.from({ length: KEYS }, (_, id) => `item:${id}`)

/**
 * The number of requests from one on that ask for something that none before them did: a busy machine takes longer than a
 * period, and some keys are asked for again meanwhile.
 */
function requestsForNews(from: number) {
  const seen = new Set<string>()
  return backend.asked.slice(from).filter(({ path }) => {
    const before = seen.size
    for (const id of idsIn(path)) seen.add(id)
    return seen.size > before
  }).length
}

test('a thousand keys are asked for in about ten requests, and again in about ten each refresh', async () => {
  backend.failWith(serve)
  const viewer = await connect(gateways[0].url)
  await viewer.subscribe(keys)
  for (const key of keys) await viewer.reaches(key, 1)
  expect(viewer.of('item:7').data).toEqual({ name: 'item 7', id: 7, revision: 1 })
  expect(requestsForNews(0)).toBeLessThanOrEqual(20)

  const before = backend.asked.length
  for (const key of keys) revisions.set(key.slice('item:'.length), 2)
  for (const key of keys) await viewer.reaches(key, 2)
  expect(requestsForNews(before)).toBeLessThanOrEqual(40)
  viewer.close()
})

test('an item that is missing is not found, and one that makes the backend fail harms no other', async () => {
  backend.failWith(serve)
  const viewer = await connect(gateways[0].url)
  const good = Array.from({ length: 150 }, (_, id) => `item:good-${id}`)
  await viewer.subscribe([...good.slice(0, 50), 'item:missing', 'item:bad', ...good.slice(50)])
  for (const key of good) await viewer.reaches(key, 1)
  await viewer.until(() => viewer.of('item:missing').error?.code === 'not_found', 'not_found of the missing item')
  await viewer.until(() => viewer.of('item:bad').error?.code === 'backend_error', 'the failure of the bad item')
  const codesOf = ({ error, stale }: Sight) => [error?.code, stale?.code].filter(code => code !== undefined)
  // A busy machine may be too slow for some: that is no harm that another item did.
  const harm = good.flatMap(key => codesOf(viewer.of(key))).filter(code => code !== 'backend_timeout')
  expect(harm).toEqual([])

  // From then on the bad one is asked for alone, and the others are kept fresh.
  for (const key of good) revisions.set(key.slice('item:'.length), 2)
  for (const key of good) await viewer.reaches(key, 2)
  const withBad = backend.asked.filter(({ path }) => path.includes('bad')).slice(-1)
  expect(withBad[0].path).toBe('/items?ids=bad')
  viewer.close()
})

test('a 503 is that of all keys, which is not asked in parts, and ends when the backend is well again', async () => {
  backend.failWith(serve)
  const viewer = await connect(gateways[0].url)
  const many = Array.from({ length: 100 }, (_, id) => `item:many-${id}`)
  await viewer.subscribe(many)
  for (const key of many) await viewer.reaches(key, 1)

  backend.failWith(answers.status(503, { 'retry-after': '1' }))
  const from = backend.asked.length
  for (const key of many) await viewer.until(() => viewer.of(key).stale !== undefined, `${key} is stale`)
  const failed = backend.asked.slice(from).filter(({ path }) => path.includes('many'))
  expect(failed.length).toBeLessThan(many.length / 2)

  for (const key of many) revisions.set(key.slice('item:'.length), 2)
  backend.failWith(serve)
  for (const key of many) await viewer.reaches(key, 2)
  viewer.close()
})

test('the list may be the whole response, with ids deeper within its items, in the path', async () => {
  backend.failWith((request, response) => {
    const ids = decodeURIComponent(request.url?.split('/').at(-1) ?? '').split(',')
    answers.content(Buffer.from(JSON.stringify(ids.map(id => ({ key: { id }, revision: 1 })))), 'text/plain')(
      request,
      response,
    )
  })
  const viewer = await connect(gateways[0].url)
  await viewer.subscribe(['other:Müller + Söhne', 'other:b'])
  await viewer.reaches('other:Müller + Söhne', 1)
  await viewer.reaches('other:b', 1)
  viewer.close()
})
