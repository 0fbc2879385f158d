// Backends that are read in another way than by a GET of a path: by POST, with the id in the query, without HEAD.
import { answers, documentOf, startBackend } from './support/backend.ts'
import { connect } from './support/client.ts'
import { startSystem } from './support/system.ts'

const backend = await startBackend()
const { gateways } = await startSystem({
  namespaces: {
    graph: {
      method: 'POST',
      url: `${backend.origin}/graphql`,
      body: { query: 'query ($id: ID!) { item(id: $id) { revision } }', variables: { id: '{id}' } },
      refresh: '100ms',
    },
    query: { url: `${backend.origin}/items?id={id}&full=1`, refresh: '100ms' },
    moved: { url: `${backend.origin}/old/{id}`, redirects: 'same-origin', refresh: '100ms' },
    guarded: {
      url: `${backend.origin}/docs/{id}`,
      authorize: { url: `${backend.origin}/may?read={id}`, keep: '10m' },
    },
  },
})

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
