// Backends that tell by server-sent events what changed (`changes`): one node holds the stream, another takes over.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createSession, type Session } from 'better-sse'
import { answers, type Backend, createGate, documentOf, startBackend } from '../support/backend.ts'
import { type Client, connect } from '../support/client.ts'
import { eventually } from '../support/deadline.ts'
import { show } from '../support/figures.ts'
import { startSystem } from '../support/system.ts'

/** A poll within the time of a test would hide what the stream does. */
const NEVER = '1h'

interface Row {
  path: string
  revision: number
}

/** A backend as one may be: rows, and a log of what changed that goes on where a client broke off (better-sse). */
async function startRows() {
  const backend = await startBackend()
  const log: object[] = []
  /** Events that come again to a client that broke off. */
  let repeated = 0
  const sessions = new Set<Session>()
  const opened: { lastEventId: string; authorization: string | undefined }[] = []

  async function open(request: IncomingMessage, response: ServerResponse) {
    const session = await createSession(request, response, { retry: 100 })
    opened.push({ lastEventId: session.lastId, authorization: request.headers.authorization })
    const from = session.lastId === '' ? log.length : Math.max(0, Number(session.lastId) - repeated)
    for (let at = from; at < log.length; at++) session.push(log[at], 'change', String(at + 1))
    sessions.add(session)
    session.on('disconnected', () => sessions.delete(session))
  }
  backend.on('/changes', open)

  function say(event: object) {
    log.push(event)
    for (const session of sessions) session.push(event, 'change', String(log.length))
  }

  const put = ({ path, revision }: Row) => backend.on(path, answers.json(documentOf(revision)))
  return {
    ...backend,
    /** Those that are open. */
    sessions,
    /** All that there were. */
    opened,
    open,
    put,
    change(key: string, row: Row) {
      put(row)
      say({ key })
    },
    /** An event that carries the value. */
    carry: (key: string, revision: number, order?: number) =>
      say({ key, value: JSON.parse(documentOf(revision)), order }),
    say,
    repeat(events: number) {
      repeated = events
    },
  }
}

const isUp = (backend: { sessions: Set<Session> }) => eventually(() => backend.sessions.size === 1, 'one open stream')

const watch = async (gateways: { url: string }[], keys: string[], revision: number) => {
  const viewers = await Promise.all(gateways.map(({ url }) => connect(url)))
  await Promise.all(viewers.map(viewer => viewer.subscribe(keys)))
  await reach(viewers, keys, revision)
  return viewers
}

const reach = (viewers: Client[], keys: string[], revision: number) =>
  Promise.all(viewers.flatMap(viewer => keys.map(key => viewer.reaches(key, revision))))

describe('two gateways and two nodes', () => {
  let backend: Awaited<ReturnType<typeof startRows>>
  let system: Awaited<ReturnType<typeof startSystem>>

  beforeAll(async () => {
    backend = await startRows()
    system = await startSystem({
      namespaces: {
        doc: {
          url: `${backend.origin}/docs/{id}`,
          headers: { authorization: 'Bearer secret' },
          changes: { sse: `${backend.origin}/changes` },
          refresh: NEVER,
        },
      },
      gateways: 2,
      fetchers: 2,
    })
    await isUp(backend)
    // When an event was taken, the keys that are asked for as a stream is opened were, too.
    backend.put({ path: '/docs/first', revision: 1 })
    const viewers = await watch(system.gateways, ['doc:first'], 1)
    backend.change('doc:first', { path: '/docs/first', revision: 2 })
    await reach(viewers, ['doc:first'], 2)
    for (const viewer of viewers) viewer.close()
  })
  afterAll(() => system.stop())

  test('open one stream, with the credentials of fetches', () => {
    expect(backend.opened).toEqual([{ lastEventId: '', authorization: 'Bearer secret' }])
  })

  test('ask for a key once when an event names it, and at no other time', async () => {
    const keys = Array.from({ length: 8 }, (_, id) => `doc:each${id}`)
    for (const [id] of keys.entries()) backend.put({ path: `/docs/each${id}`, revision: 1 })
    const viewers = await watch(system.gateways, keys, 1)
    const before = backend.asked.length
    for (const [id, key] of keys.entries()) backend.change(key, { path: `/docs/each${id}`, revision: 2 })
    await reach(viewers, keys, 2)
    for (const [id, key] of keys.entries()) backend.change(key, { path: `/docs/each${id}`, revision: 3 })
    await reach(viewers, keys, 3)
    expect(backend.asked.length - before).toBe(2 * keys.length)
    for (const viewer of viewers) viewer.close()
  })

  test('show a changed row soon', async () => {
    backend.put({ path: '/docs/soon', revision: 0 })
    const viewers = await watch(system.gateways, ['doc:soon'], 0)
    const took: number[] = []
    for (let revision = 1; revision <= 50; revision++) {
      const changedAt = performance.now()
      backend.change('doc:soon', { path: '/docs/soon', revision })
      await reach(viewers, ['doc:soon'], revision)
      took.push(performance.now() - changedAt)
    }
    took.sort((a, b) => a - b)
    show(`a changed row to two viewers: ${took[25].toFixed(1)} ms at the median, ${took[49].toFixed(1)} ms at most`)
    for (const viewer of viewers) viewer.close()
  })

  test('take the values that events carry, and do not ask for them', async () => {
    const keys = Array.from({ length: 8 }, (_, id) => `doc:carried${id}`)
    for (const [id] of keys.entries()) backend.put({ path: `/docs/carried${id}`, revision: 1 })
    const viewers = await watch(system.gateways, keys, 1)
    const before = backend.asked.length
    for (let revision = 2; revision <= 20; revision++) for (const key of keys) backend.carry(key, revision, revision)
    await reach(viewers, keys, 20)
    backend.carry(keys[0], 7, 7)
    backend.say({ key: keys[1], delete: true, order: 21 })
    await Promise.all(
      viewers.map(viewer => viewer.until(() => viewer.of(keys[1]).error?.code === 'not_found', 'no value')),
    )
    backend.carry(keys[1], 22, 22)
    await reach(viewers, [keys[1]], 22)
    expect(backend.asked).toHaveLength(before)
    for (const viewer of viewers) {
      for (const key of keys) {
        const { revisions } = viewer.of(key)
        expect(revisions).toEqual([...revisions].sort((a, b) => a - b))
      }
      viewer.close()
    }
  })

  test('let no fetch that began before a carried value come after it', async () => {
    backend.put({ path: '/docs/late', revision: 1 })
    const viewers = await watch(system.gateways, ['doc:late'], 1)
    const gate = createGate(answers.json(documentOf(2)))
    backend.on('/docs/late', gate.handler)
    backend.say({ key: 'doc:late' })
    await backend.until(() => gate.held() === 1, 'a fetch under way')
    backend.carry('doc:late', 3)
    await reach(viewers, ['doc:late'], 3)
    gate.open()
    backend.change('doc:late', { path: '/docs/late', revision: 4 })
    await reach(viewers, ['doc:late'], 4)
    for (const viewer of viewers) {
      expect(viewer.of('doc:late').revisions).toEqual([1, 3, 4])
      viewer.close()
    }
  })

  test('hand the stream over when the node that holds it dies, and miss nothing of the time between', async () => {
    const keys = Array.from({ length: 8 }, (_, id) => `doc:over${id}`)
    for (const [id] of keys.entries()) backend.put({ path: `/docs/over${id}`, revision: 1 })
    const viewers = await watch(system.gateways, keys, 1)
    backend.change(keys[0], { path: '/docs/over0', revision: 2 })
    await reach(viewers, [keys[0]], 2)
    const carried = ['doc:overOrdered', 'doc:overPlain']
    for (const key of carried) backend.put({ path: `/docs/${key.slice(4)}`, revision: 1 })
    const readers = await watch(system.gateways, carried, 1)
    for (let revision = 2; revision <= 10; revision++) {
      for (const key of carried) backend.put({ path: `/docs/${key.slice(4)}`, revision })
      backend.carry(carried[0], revision, revision)
      backend.carry(carried[1], revision)
    }
    await reach(readers, carried, 10)
    // Nothing of it may take a viewer back.
    backend.repeat(20)

    const downs = await Promise.all(system.fetchers.map(({ series }) => series('keycast_fetcher_changes_down_seconds')))
    const holder = downs.findIndex(lines => lines.length === 1)
    // The other node may have opened its own by the time that a busy machine looks.
    const [held] = backend.sessions
    await system.fetchers[holder].process.kill()
    await eventually(() => !backend.sessions.has(held), 'the end of the stream')
    for (const [id, key] of keys.entries()) backend.change(key, { path: `/docs/over${id}`, revision: 3 })
    await reach(viewers, keys, 3)
    await isUp(backend)
    expect(Number(backend.opened.at(-1)?.lastEventId)).toBeGreaterThan(0)
    for (const [index, key] of carried.entries()) {
      backend.put({ path: `/docs/${key.slice(4)}`, revision: 11 })
      backend.carry(key, 11, index === 0 ? 11 : undefined)
    }
    await reach(readers, carried, 11)
    for (const reader of readers) {
      for (const key of carried) {
        const { revisions } = reader.of(key)
        expect(revisions).toEqual([...revisions].sort((a, b) => a - b))
      }
    }
    for (const viewer of [...viewers, ...readers]) viewer.close()
  })
})

describe('a stream', () => {
  const start = async (backend: Backend, refresh: string) => {
    const { gateways, fetchers } = await startSystem({
      namespaces: {
        doc: { url: `${backend.origin}/docs/{id}`, changes: { sse: `${backend.origin}/changes` }, refresh },
      },
    })
    return { gateways, ...fetchers[0] }
  }

  test('that breaks off within an event goes on with that event', async () => {
    const backend = await startBackend()
    const asked: (string | undefined)[] = []
    let cut = () => {}
    backend.on('/changes', (request, response) => {
      asked.push(request.headers['last-event-id'] as string | undefined)
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write('retry: 100\nid: a\ndata: {"key":"doc:1"}\n\n')
      if (asked.length > 1) {
        // Not before: keys that were asked for when the first stream was opened may still be under way then.
        backend.on('/docs/2', answers.json(documentOf(2)))
        response.write('id: b\ndata: {"key":"doc:2"}\n\n')
      } else cut = () => response.write('id: b\ndata: {"key":"doc', () => response.destroy())
    })
    for (const id of [1, 2]) backend.on(`/docs/${id}`, answers.json(documentOf(1)))
    const { gateways } = await start(backend, NEVER)
    await backend.until(() => asked.length === 1, 'the stream')
    const viewers = await watch(gateways, ['doc:1', 'doc:2'], 1)

    cut()
    await reach(viewers, ['doc:2'], 2)
    expect(asked).toEqual([undefined, 'a'])
  })

  test('without ids that breaks off has every watched key asked for once it is back', async () => {
    const backend = await startBackend()
    const streams: ServerResponse[] = []
    backend.on('/changes', (_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write('retry: 100\n\n')
      streams.push(response)
      for (const id of [1, 2]) backend.on(`/docs/${id}`, answers.json(documentOf(streams.length)))
    })
    const { gateways } = await start(backend, NEVER)
    await backend.until(() => streams.length === 1, 'the stream')
    const viewers = await watch(gateways, ['doc:1', 'doc:2'], 1)

    streams[0].destroy()
    await reach(viewers, ['doc:1', 'doc:2'], 2)
  })

  test('that cannot be opened leaves keys to be asked for each refresh, and says so', async () => {
    const backend = await startBackend()
    backend.on('/changes', answers.status(503))
    backend.on('/docs/1', answers.json(documentOf(1)))
    const { gateways, series, process } = await start(backend, '200ms')
    const downs = async () =>
      (await series('keycast_fetcher_changes_down_seconds')).map(line => Number(line.split(' ').at(-1)))
    const viewers = await watch(gateways, ['doc:1'], 1)
    backend.on('/docs/1', answers.json(documentOf(2)))
    await reach(viewers, ['doc:1'], 2)
    await eventually(async () => (await downs())[0] > 0, 'the metric')
    expect(process.log()).toContainEqual(expect.objectContaining({ why: 'the backend answered 503' }))

    // Back, and with it the time in which nothing is asked unless it is told.
    backend.on('/changes', (_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
    })
    await eventually(async () => (await downs())[0] === 0, 'the stream')
  })

  test('may hold anything: what names no key is passed over, and the rest holds', async () => {
    const backend = await startBackend()
    let stream: ServerResponse | undefined
    backend.on('/changes', (_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write(': hello\n\n')
      stream = response
    })
    backend.on('/docs/1', answers.json(documentOf(1)))
    const { gateways, metric } = await start(backend, NEVER)
    await backend.until(() => stream !== undefined, 'the stream')
    const viewers = await watch(gateways, ['doc:1'], 1)
    backend.on('/docs/1', answers.json(documentOf(2)))
    for (const data of ['', 'no JSON', '7', '{"key":7}', '{"keys":{}}', '{"key":"other:1"}', '{"key":"doc:a/../b"}']) {
      stream?.write(`data: ${data}\n\n`)
    }
    stream?.write('event: change\ndata: {"keys":\ndata: ["doc:1"]}\n\n')
    await reach(viewers, ['doc:1'], 2)
    // Of a value that cannot be taken the key is asked for.
    backend.on('/docs/1', answers.json(documentOf(3)))
    stream?.write('data: {"key":"doc:1","value":{},"order":"first"}\n\n')
    await reach(viewers, ['doc:1'], 3)
    const refused = `keycast_fetcher_changes_events_total{origin="${backend.origin}",result="refused"}`
    expect(await metric(refused)).toBe(8)
  })
})
