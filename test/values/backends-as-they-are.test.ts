// Backends that are read in another way than by a GET of a path with an id: by POST, with the id in the query or
// nowhere, with parameters, without HEAD.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { answers, documentOf, startBackend } from '../support/backend.ts'
import { newFolder } from '../support/cleanup.ts'
import { connect } from '../support/client.ts'
import { startSystem } from '../support/system.ts'

const backend = await startBackend()
const tokenFile = join(newFolder(), 'token')
writeFileSync(tokenFile, 'first\n')
const { gateways } = await startSystem({
  namespaces: {
    graph: {
      method: 'POST',
      url: `${backend.origin}/graphql`,
      body: { query: 'query ($id: ID!) { item(id: $id) { revision } }', variables: { id: '{id}' } },
      refresh: '100ms',
    },
    query: { url: `${backend.origin}/items?id={id}&full=1`, refresh: '100ms' },
    filed: { url: `${backend.origin}/filed/{id}`, token: { file: tokenFile }, refresh: '100ms' },
    granted: {
      url: `${backend.origin}/granted/{id}`,
      token: { url: `${backend.origin}/token`, client: 'keycast', secret: 'secret' },
      refresh: '100ms',
    },
    inbox: { url: `${backend.origin}/me/inbox`, refresh: '100ms' },
    task: {
      url: `${backend.origin}/projects/{1}/tasks/{2}`,
      query: ['status', 'lang'],
      asHeaders: { lang: 'accept-language' },
      refresh: '100ms',
    },
    moved: { url: `${backend.origin}/old/{id}`, redirects: 'same-origin', refresh: '100ms' },
    guarded: {
      url: `${backend.origin}/docs/{id}`,
      authorize: { url: `${backend.origin}/may?read={id}`, keep: '10m' },
      // A question that was answered too late is asked again.
      timeout: '20s',
    },
  },
})

const valueUrl = (key: string) =>
  new URL(`/v1/values/${encodeURIComponent(key)}`, gateways[0].url.replace('ws:', 'http:'))

test('a value that is read by POST is kept fresh as any other', async () => {
  let revision = 1
  backend.on('/graphql', async (request, response) => {
    let text = ''
    for await (const chunk of request) text += chunk
    const { variables } = JSON.parse(text)
    answers.json(JSON.stringify({ revision, id: variables.id }))(request, response)
  })
  const viewer = await connect(gateways[0].url)
  await viewer.subscribe(['graph:item-7'])
  await viewer.reaches('graph:item-7', 1)
  expect(viewer.of('graph:item-7').data).toEqual({ revision: 1, id: 'item-7' })
  revision = 2
  await viewer.reaches('graph:item-7', 2)

  const asked = backend.askedFor('/graphql')
  expect(new Set(asked.map(({ method }) => method))).toEqual(new Set(['POST']))
  expect(asked.some(({ headers }) => headers['if-none-match'] !== undefined)).toBe(false)
  viewer.close()
})

test('an id may stand in the query', async () => {
  backend.on('/items?id=7&full=1', answers.json(documentOf(1)))
  const viewer = await connect(gateways[0].url)
  await viewer.subscribe(['query:7'])
  await viewer.reaches('query:7', 1)
  viewer.close()
})

test('a namespace may have no ids, and one key', async () => {
  backend.on('/me/inbox', answers.json(documentOf(1)))
  const viewer = await connect(gateways[0].url)
  await viewer.subscribe(['inbox:'])
  await viewer.reaches('inbox:', 1)
  const response = await fetch(valueUrl('inbox:'))
  expect(await response.json()).toEqual(JSON.parse(documentOf(1)))
  expect(await viewer.request({ type: 'get', key: 'inbox:7' })).toMatchObject({ type: 'error', code: 'bad_key' })
  viewer.close()
})

test('segments have their places, and a query goes to the URL or into headers', async () => {
  const path = '/projects/M%C3%BCller%20%2B%20S%C3%B6hne/tasks/ann%40acme.test'
  backend.on(`${path}?status=open`, answers.json(documentOf(1)))
  backend.on(path, answers.json(documentOf(2)))
  const key = 'task:Müller + Söhne/ann@acme.test'
  const viewer = await connect(gateways[0].url)
  await viewer.subscribe([key, `${key}?status=open&lang=de`])
  await viewer.reaches(`${key}?status=open&lang=de`, 1)
  await viewer.reaches(key, 2)
  expect(backend.askedFor(`${path}?status=open`)[0].headers['accept-language']).toBe('de')
  expect(backend.askedFor(path)[0].headers).not.toHaveProperty('accept-language')
  expect(await (await fetch(valueUrl(`${key}?status=open&lang=de`))).json()).toEqual(JSON.parse(documentOf(1)))
  expect(await viewer.request({ type: 'get', key: `${key}?lang=de&status=open` })).toMatchObject({
    code: 'bad_key',
    message: expect.stringContaining('status, lang'),
  })
  viewer.close()
})

/** Answers whoever shows a token, and 401 to others. */
const serveTo = (path: string, isGood: (token: string | undefined) => boolean, revision: () => number) =>
  backend.on(path, (request, response) => {
    const answer = isGood(request.headers.authorization) ? answers.json(documentOf(revision())) : answers.status(401)
    answer(request, response)
  })

test('the token that a backend is shown is read again from its file where it is refused', async () => {
  let good = 'first'
  let revision = 1
  serveTo(
    '/filed/7',
    token => token === `Bearer ${good}`,
    () => revision,
  )
  const viewer = await connect(gateways[0].url)
  await viewer.subscribe(['filed:7'])
  await viewer.reaches('filed:7', 1)
  good = 'second'
  revision = 2
  writeFileSync(tokenFile, 'second')
  await viewer.reaches('filed:7', 2)
  viewer.close()
})

test('the token that a backend is shown is had from a token endpoint, where it is missing until that answers', async () => {
  let issued = 0
  backend.on('/token', (request, response) => {
    issued++
    answers.json(JSON.stringify({ access_token: `t${issued}`, token_type: 'bearer', expires_in: 2 }))(request, response)
  })
  serveTo(
    '/granted/7',
    token => /^Bearer t\d+$/.test(token ?? ''),
    () => issued,
  )
  const viewer = await connect(gateways[0].url)
  await viewer.subscribe(['granted:7'])
  await viewer.reaches('granted:7', 3)
  expect(backend.askedFor('/granted/7').some(({ headers }) => headers.authorization === undefined)).toBe(false)
  viewer.close()
})

test('a value is read where its backend redirects to, at the same origin', async () => {
  backend.on('/old/7', answers.status(301, { location: '/moved/7/' }))
  backend.on('/moved/7/', answers.json(documentOf(1)))
  const viewer = await connect(gateways[0].url)
  await viewer.subscribe(['moved:7'])
  await viewer.reaches('moved:7', 1)
  backend.on('/moved/7/', answers.json(documentOf(2)))
  await viewer.reaches('moved:7', 2)
  viewer.close()
})

test('a backend that knows no HEAD is asked by GET who may read, and no more by HEAD', async () => {
  for (const id of ['1', '2']) {
    backend.on(`/docs/${id}`, answers.json(documentOf(1)))
    backend.on(`/may?read=${id}`, (request, response) =>
      answers.status(request.method === 'HEAD' ? 405 : 200)(request, response),
    )
  }
  const viewer = await connect(gateways[0].url)
  for (const key of ['guarded:1', 'guarded:2']) {
    await viewer.subscribe([key])
    await viewer.reaches(key, 1)
  }
  expect(backend.askedFor('/may?read=1').map(({ method }) => method)).toEqual(['HEAD', 'GET'])
  expect(backend.askedFor('/may?read=2').map(({ method }) => method)).toEqual(['GET'])
  viewer.close()
})
