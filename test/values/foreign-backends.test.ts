// Backends that know nothing of Keycast, served through configuration alone.
import { utimesSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import { join } from 'node:path'
import { createSchema, createYoga } from 'graphql-yoga'
// @ts-expect-error it comes without types
import httpServer from 'http-server'
// @ts-expect-error it comes without types
import jsonServer from 'json-server'
// @ts-expect-error it comes without types
import send from 'send'
import { answers, documentOf, startBackend } from '../support/backend.ts'
import { newFolder } from '../support/cleanup.ts'
import { connect } from '../support/client.ts'
import { eventually } from '../support/deadline.ts'
import { msSince, show } from '../support/figures.ts'
import { ask } from '../support/http.ts'
import { serve } from '../support/sites.ts'
import { startSystem } from '../support/system.ts'

const directory = newFolder()

interface Served {
  path: string
  status: number
}

const edit = (name: string, revision: number) => writeFileSync(join(directory, name), documentOf(revision))

/** A file last edited an hour ago. */
const writeOld = (name: string, revision: number) => {
  edit(name, revision)
  const anHourAgo = Date.now() / 1_000 - 3_600
  utimesSync(join(directory, name), anHourAgo, anHourAgo)
}

/** Listens, and notes what was answered. */
const watch = async (server: Server) => {
  const served: Served[] = []
  server.prependListener('request', (request, response) => {
    const path = request.url ?? ''
    response.on('finish', () => served.push({ path, status: response.statusCode }))
  })
  return { origin: await serve(server), served }
}

/** http-server as `npx http-server` runs it: an ETag, and Cache-Control: max-age=3600. */
const withEtag = await watch(httpServer.createServer({ root: directory }).server)

/** A file server that knows Last-Modified alone, to the second, as HTTP dates are. */
const withLastModified = await watch(
  createServer((request, response) => send(request, request.url, { root: directory, etag: false }).pipe(response)),
)

/** json-server as `npx json-server` runs it, on records in memory. */
const posts = jsonServer.create()
posts.use(jsonServer.defaults({ logger: false }), jsonServer.router({ posts: [] }))
const withPosts = await watch(createServer(posts))

/** GraphQL Yoga on a schema as its guide has one. */
const articles = new Map<string, { title: string; revision: number }>()
const yoga = createYoga({
  schema: createSchema({
    typeDefs: `
      type Article { title: String!, revision: Int! }
      type Query { article(id: ID!): Article }
    `,
    resolvers: { Query: { article: (_, { id }) => articles.get(id) } },
  }),
  logging: false,
})
const withGraphql = await watch(createServer(yoga))
const demanding = await startBackend()

const { gateways } = await startSystem({
  namespaces: {
    etag: { url: `${withEtag.origin}/{id}.json`, refresh: '100ms' },
    modified: { url: `${withLastModified.origin}/{id}.json`, refresh: '100ms' },
    post: { url: `${withPosts.origin}/posts/{id}`, refresh: '100ms' },
    posts: { url: `${withPosts.origin}/posts`, query: ['author'], refresh: '100ms' },
    article: {
      method: 'POST',
      url: `${withGraphql.origin}/graphql`,
      body: { query: 'query ($id: ID!) { article(id: $id) { title revision } }', variables: { id: '{id}' } },
      refresh: '100ms',
    },
    misspelt: {
      method: 'POST',
      url: `${withGraphql.origin}/graphql`,
      body: { query: 'query ($id: ID!) { article(id: $id) { titel } }', variables: { id: '{id}' } },
      refresh: '100ms',
    },
    // biome-ignore lint/suspicious/noTemplateCurlyInString: as keycast.yaml has it
    demanding: { url: `${demanding.origin}/{id}`, headers: { 'X-Api-Key': '${BACKEND_KEY}' }, refresh: '100ms' },
    plain: { url: `${demanding.origin}/{id}`, refresh: '100ms' },
    mistaken: { url: `${demanding.origin}/{id}`, headers: { 'X-Api-Key': 'wrong' }, refresh: '100ms' },
  },
  fetcherEnv: { BACKEND_KEY: 'opensesame' },
})
const [gateway] = gateways

const servers: [string, string, Served[]][] = [
  ['a static file server with ETag and Cache-Control: max-age=3600', 'etag', withEtag.served],
  ['a static file server with Last-Modified alone', 'modified', withLastModified.served],
]

describe.each(servers)('%s', (_, namespace, served) => {
  const fileOf = (id: string) => `${namespace}-${id}.json`
  const keyOf = (id: string) => `${namespace}:${namespace}-${id}`
  const servedOf = (id: string) => served.filter(({ path }) => path === `/${fileOf(id)}`)

  test('a file edited on disk reaches the subscriber', async () => {
    writeOld(fileOf('edited'), 1)
    const client = await connect(gateway.url)
    await client.subscribe([keyOf('edited')])
    await client.reaches(keyOf('edited'), 1)
    const editedAt = performance.now()
    edit(fileOf('edited'), 2)
    await client.reaches(keyOf('edited'), 2)
    show(`${namespace}: edit → viewer ${msSince(editedAt)} (refresh 100 ms)`)
    client.close()
  })

  test('a second edit within the same second reaches the subscriber too', async () => {
    writeOld(fileOf('twice'), 1)
    const client = await connect(gateway.url)
    await client.subscribe([keyOf('twice')])
    await client.reaches(keyOf('twice'), 1)

    // Both edits fall into one second, the first one having been fetched in between: a busy machine may need more tries.
    let revision = 1
    let isWithinOne = false
    while (!isWithinOne) {
      await eventually(() => Date.now() % 1_000 < 100, 'the beginning of a second', { everyMs: 5 })
      const second = Math.floor(Date.now() / 1_000)
      edit(fileOf('twice'), ++revision)
      await client.reaches(keyOf('twice'), revision)
      edit(fileOf('twice'), ++revision)
      isWithinOne = Math.floor(Date.now() / 1_000) === second
      await client.reaches(keyOf('twice'), revision)
    }
    client.close()
  })

  test('an unchanged file costs the backend only 304s', async () => {
    writeOld(fileOf('same'), 1)
    const client = await connect(gateway.url)
    await client.subscribe([keyOf('same')])
    await client.reaches(keyOf('same'), 1)
    await eventually(() => servedOf('same').length >= 10, 'ten requests')
    const [first, ...rest] = servedOf('same').map(({ status }) => status)
    expect(first).toBe(200)
    expect(new Set(rest)).toEqual(new Set([304]))
    expect(client.of(keyOf('same')).values).toBe(1)
    client.close()
  })
})

describe('json-server', () => {
  const send = async (method: string, path: string, body?: object) => {
    const headers = { 'content-type': 'application/json' }
    const { status } = await ask(withPosts.origin + path, { method, headers, body: body && JSON.stringify(body) })
    expect(status).toBeLessThan(300)
  }

  test('a record that is written, changed and deleted reaches the subscriber each time', async () => {
    const client = await connect(gateway.url)
    await client.subscribe(['post:1'])
    await client.until(() => client.of('post:1').error?.code === 'not_found', 'that there is none yet')
    await send('POST', '/posts', { id: 1, revision: 1 })
    await client.reaches('post:1', 1)
    await send('PATCH', '/posts/1', { revision: 2 })
    await client.reaches('post:1', 2)
    await send('DELETE', '/posts/1')
    await client.until(() => client.of('post:1').error?.code === 'not_found', 'that it is gone')
    client.close()
  })

  test('a filtered list is a value, and costs only 304s while it stays as it is', async () => {
    const key = 'posts:?author=ann'
    const path = '/posts?author=ann'
    await send('POST', '/posts', { id: 2, author: 'ann' })
    const client = await connect(gateway.url)
    await client.subscribe([key])
    await client.until(() => client.of(key).data?.length === 1, 'a list of one')
    const before = withPosts.served.length
    const since = () => withPosts.served.slice(before).filter(served => served.path === path)
    await eventually(() => since().length >= 5, 'five requests')
    expect(new Set(since().map(({ status }) => status))).toEqual(new Set([304]))
    await send('POST', '/posts', { id: 3, author: 'ann' })
    await client.until(() => client.of(key).data.length === 2, 'a list of two')
    client.close()
  })
})

describe('a GraphQL server', () => {
  test('answers a query in the body of a POST, and what changes reaches the subscriber', async () => {
    articles.set('7', { title: 'Seven', revision: 1 })
    const client = await connect(gateway.url)
    await client.subscribe(['article:7', 'article:8'])
    const read = () => client.of('article:7').data?.data.article
    await client.until(read, 'the article')
    expect(read()).toEqual({ title: 'Seven', revision: 1 })
    articles.set('7', { title: 'Seven', revision: 2 })
    await client.until(() => read().revision === 2, 'its second revision')
    await client.until(() => client.of('article:8').data, 'an article that is not there')
    expect(client.of('article:8').data).toEqual({ data: { article: null } })
    client.close()
  })

  test('has its errors shown as the value, as GraphQL answers 200 with them', async () => {
    const client = await connect(gateway.url)
    await client.subscribe(['misspelt:7'])
    await client.until(() => client.of('misspelt:7').data, 'the errors')
    expect(client.of('misspelt:7').data.errors[0].message).toContain('Cannot query field "titel"')
    client.close()
  })
})

test('content whose type changes and whose bytes do not is a new version for its viewers', async () => {
  demanding.on('/typed', answers.content('[1]', 'text/plain'))
  const client = await connect(gateway.url)
  await client.subscribe(['plain:typed'])
  await client.until(() => client.of('plain:typed').values === 1, 'the text')
  const { version } = client.of('plain:typed')
  demanding.on('/typed', answers.content('[1]', 'application/json'))
  await client.until(() => client.of('plain:typed').values === 2, 'the JSON')
  expect(client.of('plain:typed')).toMatchObject({ data: [1] })
  expect(client.of('plain:typed').version).not.toBe(version)
  client.close()
})

test('a backend that demands a header is sent it, from keycast.yaml and a credential that fetchers alone have', async () => {
  const content = answers.json(documentOf(1))
  demanding.on('/guarded', (request, response) =>
    request.headers['x-api-key'] === 'opensesame' ? content(request, response) : answers.status(401)(request, response),
  )
  const client = await connect(gateway.url)
  await client.subscribe(['demanding:guarded', 'mistaken:guarded'])
  await client.reaches('demanding:guarded', 1)
  await client.until(() => client.of('mistaken:guarded').error, 'a refusal')
  expect(client.of('mistaken:guarded').error.code).toBe('backend_refused')
  expect(client.of('mistaken:guarded').values).toBe(0)
  client.close()
})
