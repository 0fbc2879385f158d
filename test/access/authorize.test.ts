// A backend that decides who reads its keys, with real processes: it counts what it is asked, and sees whose token came.
import { createHash, randomBytes } from 'node:crypto'
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { fnv1a, viewerKey } from '@keycast/backbone'
import { SignJWT } from 'jose'
import { answers, documentOf, startBackend } from '../support/backend.ts'
import { closeClients, connect } from '../support/client.ts'
import { eventually } from '../support/deadline.ts'
import { ask } from '../support/http.ts'
import { startJournal } from '../support/journal.ts'
import { writeConfig } from '../support/keycast-yaml.ts'
import { PATIENCE, startSystem } from '../support/system.ts'

const JWT_SECRET = randomBytes(48).toString('base64')
const KEEP_MS = 2_000
const SERVICE_TOKEN = 'Bearer of-the-service-itself'

const backend = await startBackend()
const rights = await startBackend()

const room = {
  source: 'journal',
  members: 'named',
  // A variable that gateways and fetchers have, and the journal needs not.
  authorize: { url: `\${RIGHTS}/rights/{id}`, keep: `${KEEP_MS}ms`, timeout: PATIENCE },
} as any
/** Is asked about messages. */
const moderator = await startBackend()
const moderated = {
  source: 'journal',
  publish: { ask: `\${RIGHTS_OF_MESSAGES}/rooms/{id}/ask`, timeout: '6s' },
  headers: { 'x-key': 'of-the-fetcher' },
} as any
const lenient = { ...moderated, publish: { ...moderated.publish, timeout: '300ms', otherwise: 'take' } }
const journal = await startJournal({ config: writeConfig({ room, asked: moderated, lenient }) })

const doc = {
  url: `${backend.origin}/docs/{id}`,
  refresh: '100ms',
  timeout: PATIENCE,
  headers: { authorization: SERVICE_TOKEN },
  authorize: { url: `${rights.origin}/rights/{id}`, keep: `${KEEP_MS}ms` },
}

const system = await startSystem({
  namespaces: {
    room,
    asked: moderated,
    lenient,
    doc,
    // For backends that hang.
    hasty: { ...doc, timeout: '1s' },
    // A verdict of the backend is kept for longer than a test takes.
    patient: { ...doc, refresh: '1s', authorize: { ...doc.authorize, keep: '1m' } },
    plain: { url: `${backend.origin}/docs/{id}`, refresh: '100ms' },
  },
  access: {
    anonymous: { read: ['patient:open', 'plain:*'] },
    everyone: {
      read: ['doc:*', 'hasty:*', 'patient:*', 'room:*', 'asked:*', 'lenient:*'],
      publish: ['room:*', 'asked:*', 'lenient:*'],
      join: ['room:*'],
    },
    tokens: [{ secret: `\${JWT_SECRET}`, algorithms: ['HS256'] }],
  },
  gateways: 2,
  env: {
    JWT_SECRET,
    FETCHER_WORKERS: '2',
    JOURNAL_NODES: journal.node,
    RIGHTS: rights.origin,
    RIGHTS_OF_MESSAGES: moderator.origin,
  },
})
const [gateway, otherGateway] = system.gateways

function signed(sub: string, ttlSeconds = 600, claims: Record<string, unknown> = {}) {
  const nowSeconds = Math.floor(Date.now() / 1_000)
  const jwt = new SignJWT(claims).setProtectedHeader({ alg: 'HS256' }).setSubject(sub).setIssuedAt(nowSeconds)
  return jwt.setExpirationTime(nowSeconds + ttlSeconds).sign(Buffer.from(JWT_SECRET))
}

function userOf({ headers: { authorization } }: IncomingMessage | { headers: IncomingHttpHeaders }) {
  if (authorization === undefined) return 'anonymous'
  return JSON.parse(Buffer.from(authorization.split('.')[1], 'base64url').toString()).sub
}

/** The users who may read each document. */
const readers = new Map<string, Set<string>>()

/** A document, and the users who may read it. */
function publish(id: string, users: string[], revision = 1) {
  backend.on(`/docs/${id}`, answers.json(documentOf(revision)))
  readers.set(id, new Set(users))
  rights.on(`/rights/${id}`, (request, response) => {
    response.writeHead(readers.get(id)?.has(userOf(request)) ? 204 : 403).end()
  })
}

async function viewer(user: string, url: string = gateway.url) {
  const token = await signed(user)
  const client = await connect(url)
  await client.request({ type: 'auth', token })
  return { ...client, token }
}

/** A viewer's one value of a key, or why there is none. A fetcher without CPU time for seconds says nothing: it is asked again. */
const get = (client: Awaited<ReturnType<typeof connect>>, key: string): Promise<any> =>
  eventually(async () => {
    const answer = await client.request({ type: 'get', key })
    return !['fetcher_timeout', 'fetcher_unavailable'].includes(answer.code) && answer
  }, `an answer of the fetcher about ${key}`)

const asked = (id: string) => rights.askedFor(`/rights/${id}`)

afterEach(() => {
  closeClients()
  rights.failWith(undefined)
  backend.failWith(undefined)
})

test('the viewer is admitted or refused by what the backend says to their own token, and nothing else is sent along', async () => {
  publish('a', ['ann'])
  const [ann, bob] = [await viewer('ann'), await viewer('bob')]
  expect(await get(ann, 'doc:a')).toMatchObject({ type: 'value' })
  expect(await get(bob, 'doc:a')).toMatchObject({ code: 'forbidden' })
  const shown = new Set(asked('a').map(({ headers }) => headers.authorization))
  expect([...shown]).toEqual([`Bearer ${ann.token}`, `Bearer ${bob.token}`])
  expect(asked('a').every(({ method }) => method === 'HEAD')).toBe(true)
  // The document itself is fetched with the service's own token.
  expect(backend.askedFor('/docs/a').every(({ headers }) => headers.authorization === SERVICE_TOKEN)).toBe(true)
})

test('POST /v1/access has every gateway ask the backend again, long before what it said is over', async () => {
  publish('again', ['ann'])
  const [ann, there] = [await viewer('ann'), await viewer('ann', otherGateway.url)]
  for (const each of [ann, there]) {
    await each.subscribe(['patient:again'])
    await each.reaches('patient:again', 1)
  }
  const say = (change: object) => gateway.call('/v1/access', { ask: change })
  readers.get('again')?.delete('ann')
  expect((await say({ user: 'bob' })).json()).toMatchObject({ user: 'bob', reach: 'every gateway' })
  expect((await say({ user: 'ann', key: 'patient:again' })).json()).toMatchObject({ reach: 'every gateway' })
  for (const each of [ann, there]) {
    await each.until(() => each.of('patient:again').error?.code === 'forbidden', 'the end of the subscription')
    expect(each.of('patient:again').error).toMatchObject({ subscribed: false })
  }
  readers.get('again')?.add('ann')
  expect((await say({ key: 'patient:again' })).status).toBe(200)
  expect(await get(ann, 'patient:again')).toMatchObject({ type: 'value' })
})

test('a narrow token is not let in by a broad one of the same user, neither beside it nor after it', async () => {
  publish('scoped', [])
  rights.on('/rights/scoped', ({ headers: { authorization } }, response) => {
    const { scope } = JSON.parse(Buffer.from(`${authorization}`.split('.')[1], 'base64url').toString())
    response.writeHead(scope === 'read' ? 403 : 204).end()
  })
  const clientWith = async (scope: string, ttlSeconds: number, url = gateway.url) => {
    const token = await signed('scoped', ttlSeconds, { scope })
    const client = await connect(url)
    await client.request({ type: 'auth', token })
    return { ...client, token }
  }
  const broad = await clientWith('read all', 900)
  expect(await get(broad, 'doc:scoped')).toMatchObject({ type: 'value' })
  const narrow = [await clientWith('read', 300), await clientWith('read', 300, otherGateway.url)]
  for (const client of narrow) expect(await get(client, 'doc:scoped')).toMatchObject({ code: 'forbidden' })
  broad.socket.terminate()
  const headers = { authorization: `Bearer ${narrow[0].token}` }
  expect((await ask(`${gateway.http}/v1/values/doc:scoped`, { headers })).status).toBe(403)
})

test('at every door a refused key and one that does not exist answer the same, and the cache gives nothing away', async () => {
  publish('b', ['ann'])
  const [ann, bob] = [await viewer('ann'), await viewer('bob')]
  await ann.subscribe(['doc:b'])
  await ann.reaches('doc:b', 1)
  const authorization = `Bearer ${bob.token}`
  const seen = []
  for (const key of ['doc:b', 'doc:absent']) {
    const got = await bob.request({ type: 'get', key })
    const subscribed = await bob.subscribe([key])
    await eventually(() => bob.of(key).error, 'an error about the key')
    const { status, body } = await ask(`${gateway.http}/v1/values/${key}`, { headers: { authorization } })
    seen.push(JSON.stringify([got, subscribed, bob.of(key).error, status, body.toString()]).replaceAll(key, 'KEY'))
  }
  const ids = (text: string) => text.replaceAll(/"id":\d+/g, '"id"')
  expect(ids(seen[1])).toBe(ids(seen[0]))
  expect(seen[0]).toContain('forbidden')
  expect(backend.askedFor('/docs/absent')).toEqual([])
})

test('all without a token are one viewer', async () => {
  publish('open', ['anonymous'])
  const clients = await Promise.all([1, 2, 3].map(() => connect(gateway.url)))
  for (const client of clients) expect(await get(client, 'patient:open')).toMatchObject({ type: 'value' })
  expect((await ask(`${gateway.http}/v1/values/patient:open`)).status).toBe(200)
  expect(asked('open').map(userOf)).toEqual(['anonymous'])
})

test('once per viewer, key and keep, whatever they open: tabs, gateways, HTTP', async () => {
  publish('c', ['ann'])
  const tabs = await Promise.all([gateway, gateway, otherGateway].map(({ url }) => viewer('ann', url)))
  for (const tab of tabs) await tab.subscribe(['patient:c'])
  for (const tab of tabs) await tab.reaches('patient:c', 1)
  const headers = { authorization: `Bearer ${tabs[0].token}` }
  for (const { http } of system.gateways)
    expect((await ask(`${http}/v1/values/patient:c`, { headers })).status).toBe(200)
  expect(asked('c')).toHaveLength(1)

  publish('kept', ['ann'])
  for (const tab of tabs) await tab.subscribe(['doc:kept'])
  await rights.until(() => asked('kept').length >= 3, 'two more questions')
  const at = asked('kept').map(each => each.at)
  expect(at[2] - at[0]).toBeGreaterThan(2 * KEEP_MS - 100)
})

test('a running subscription ends once the backend refuses', async () => {
  publish('d', ['ann', 'bob'])
  const [ann, bob] = [await viewer('ann'), await viewer('bob')]
  for (const client of [ann, bob]) await client.subscribe(['doc:d'])
  for (const client of [ann, bob]) await client.reaches('doc:d', 1)
  readers.get('d')?.delete('bob')
  await bob.until(() => bob.of('doc:d').error?.code === 'forbidden', 'the end of the subscription')
  expect(bob.of('doc:d').error).toMatchObject({ subscribed: false })
  const { values } = bob.of('doc:d')
  publish('d', ['ann'], 2)
  await ann.reaches('doc:d', 2)
  expect(bob.of('doc:d').values).toBe(values)
})

test('1,000 viewers of one key, each with a token of their own: each is asked for once, the key as often as for one', async () => {
  publish(
    'e',
    Array.from({ length: 1_000 }, (_, i) => `user-${i}`).filter((_, i) => i % 10 !== 0),
  )
  const tokens = await Promise.all(Array.from({ length: 1_000 }, (_, i) => signed(`user-${i}`)))
  const before = backend.askedFor('/docs/e').length
  const statuses = []
  for (let next = 0; next < tokens.length; next += 50) {
    const some = tokens.slice(next, next + 50).map(token => {
      const headers = { authorization: `Bearer ${token}` }
      return ask(`${gateway.http}/v1/values/patient:e`, { headers })
    })
    statuses.push(...(await Promise.all(some)).map(({ status }) => status))
  }
  expect(statuses.filter(status => status === 200)).toHaveLength(900)
  expect(statuses.filter(status => status === 403)).toHaveLength(100)
  expect(asked('e')).toHaveLength(1_000)
  expect(new Set(asked('e').map(({ headers }) => headers.authorization)).size).toBe(1_000)
  expect(backend.askedFor('/docs/e').length - before).toBeLessThan(100)
})

test('while nobody can be asked a viewer keeps access for one more keep, is told then, and goes on when it can', async () => {
  publish('f', ['ann'])
  const ann = await viewer('ann')
  await ann.subscribe(['doc:f'])
  await ann.reaches('doc:f', 1)
  await rights.down()
  await ann.until(() => ann.of('doc:f').error, 'being told')
  const admittedAt = asked('f').at(-1)?.at ?? NaN
  expect(performance.now() - admittedAt).toBeGreaterThan(1.5 * KEEP_MS)
  expect(ann.of('doc:f').error).toMatchObject({ code: 'backend_error', subscribed: true })
  expect(ann.of('doc:f').error.retryAfterMs).toBeGreaterThan(0)
  const stranger = await viewer('bob')
  expect(await stranger.request({ type: 'get', key: 'doc:f' })).toMatchObject({ code: 'backend_error' })
  const { values } = ann.of('doc:f')
  publish('f', ['ann'], 2)
  await rights.up()
  await ann.reaches('doc:f', 2)
  expect(ann.of('doc:f').values).toBeGreaterThan(values)
})

test('a backend that answers 500, 429 or not at all says nothing', async () => {
  publish('g', ['ann'])
  const ann = await viewer('ann')
  let number = 0
  for (const fault of [answers.status(500), answers.status(429, { 'retry-after': '1' }), answers.silence()]) {
    rights.failWith(fault)
    expect(await get(ann, `hasty:g${number++}`)).toMatchObject({
      code: 'backend_error',
      retryAfterMs: expect.any(Number),
    })
  }
  const { status, headers } = await ask(`${gateway.http}/v1/values/hasty:g9`, {
    headers: { authorization: `Bearer ${ann.token}` },
  })
  expect(status).toBe(502)
  expect(headers['retry-after']).toBeDefined()
})

test('one that flaps never lets in who is refused, and costs who is admitted nothing', async () => {
  publish('h', ['ann'])
  const [ann, bob] = [await viewer('ann'), await viewer('bob')]
  let count = 0
  rights.on('/rights/h', (request, response) => {
    if (count++ % 2 === 1) return response.writeHead(503).end()
    return response.writeHead(readers.get('h')?.has(userOf(request)) ? 204 : 403).end()
  })
  for (const client of [ann, bob]) await client.subscribe(['doc:h'])
  for (let revision = 1; revision <= 6; revision++) {
    backend.on('/docs/h', answers.json(documentOf(revision)))
    await ann.reaches('doc:h', revision)
    await eventually(() => count > revision, 'another question')
  }
  expect(ann.of('doc:h').error).toBeUndefined()
  expect(bob.of('doc:h').values).toBe(0)
})

test('while questions hang, fetches go on; while fetches hang, questions are answered', async () => {
  publish('i', ['ann'])
  backend.on('/docs/j', answers.json(documentOf(1)))
  const ann = await viewer('ann')
  rights.failWith(answers.silence())
  ann.send({ type: 'subscribe', id: 'many', keys: Array.from({ length: 300 }, (_, i) => ({ key: `hasty:hang${i}` })) })
  const plain = await connect(gateway.url)
  await plain.subscribe(['plain:j'])
  await plain.reaches('plain:j', 1)
  backend.on('/docs/j', answers.json(documentOf(2)))
  await plain.reaches('plain:j', 2)
  rights.failWith(undefined)
  backend.failWith(answers.silence())
  const many = await connect(gateway.url)
  many.send({ type: 'subscribe', id: 'many', keys: Array.from({ length: 600 }, (_, i) => ({ key: `plain:hang${i}` })) })
  const bob = await viewer('bob')
  // On a slow machine the questions that hung have opened the breaker meanwhile.
  const isRefused = async () => (await bob.request({ type: 'get', key: 'hasty:i' })).code === 'forbidden'
  await eventually(isRefused, 'the answer to a question')
})

test('a token renewed in place is asked with, without a message lost', async () => {
  publish('k', ['ann'])
  const ann = await viewer('ann')
  await ann.subscribe(['doc:k'])
  await ann.reaches('doc:k', 1)
  const renewed = await signed('ann', 1_200)
  expect(await ann.request({ type: 'auth', token: renewed })).toMatchObject({ type: 'authed' })
  await rights.until(() => asked('k').at(-1)?.headers.authorization === `Bearer ${renewed}`, 'the new token')
  publish('k', ['ann'], 2)
  await ann.reaches('doc:k', 2)
  expect(ann.of('doc:k').error).toBeUndefined()
})

test('a question whose worker is killed is asked again by another', async () => {
  publish('l', ['ann'])
  const ann = await viewer('ann')
  rights.on('/rights/l', answers.silence())
  const answer = get(ann, 'patient:l')
  await rights.until(() => asked('l').length === 1, 'the question')
  rights.on('/rights/l', answers.status(204))
  const { workers } = system.fetchers[0].process.listening
  const key = viewerKey('patient:l', createHash('sha256').update('ann').digest('base64url'))
  process.kill(workers[(fnv1a(key) >>> 0) % workers.length], 'SIGKILL')
  expect(await answer).toMatchObject({ type: 'value' })
  expect(asked('l').length).toBeGreaterThan(1)
})

test('a fetcher that is killed keeps nobody out for longer than it is away, and lets nobody in', async () => {
  publish('m', ['ann'])
  const [ann, bob] = [await viewer('ann'), await viewer('bob')]
  await ann.subscribe(['doc:m'])
  await ann.reaches('doc:m', 1)
  const [fetcher] = system.fetchers
  await fetcher.process.kill()
  const refused = await bob.request({ type: 'get', key: 'doc:m' })
  expect(['fetcher_unavailable', 'fetcher_timeout']).toContain(refused.code)
  publish('m', ['ann'], 2)
  await system.startFetcher(fetcher.ports)
  await ann.reaches('doc:m', 2)
  await eventually(
    async () => (await bob.request({ type: 'get', key: 'doc:m' })).code === 'forbidden',
    'the decision about a viewer who is refused',
  )
})

test('rooms: every door waits for the backend, and a user whom it refuses later is out', async () => {
  publish('n', ['ann', 'bob'])
  const [ann, bob, eve] = [await viewer('ann'), await viewer('bob', otherGateway.url), await viewer('eve')]
  const key = 'room:n'
  expect(await eve.request({ type: 'publish', key, data: 'no' })).toMatchObject({ code: 'forbidden' })
  expect(await ann.request({ type: 'publish', key, data: 'one' })).toMatchObject({ type: 'published', seq: 1 })
  for (const message of [
    { type: 'history', key, after: 0, limit: 5 },
    { type: 'join', key, name: 'a name' },
  ]) {
    expect(await eve.request(message)).toMatchObject({ code: 'forbidden' })
  }
  // Named in an error of its own, before or after the `subscribed` that leaves it out.
  const answer = await eve.request({ type: 'subscribe', keys: [{ key }] })
  expect(answer.keys ?? []).toEqual([])
  const headers = ({ token }: { token: string }) => ({ authorization: `Bearer ${token}` })
  const messages = `/v1/messages/${key}`
  expect((await ask(`${gateway.http}${messages}`, { headers: headers(eve) })).status).toBe(403)
  expect((await ask(`${gateway.http}${messages}`, { headers: headers(ann) })).json()).toMatchObject({
    messages: [{ data: 'one' }],
  })
  expect(await ann.request({ type: 'subscribe', keys: [{ key, presence: true }] })).toMatchObject({
    type: 'subscribed',
    keys: [{ key, seq: 1 }],
  })
  expect(await bob.request({ type: 'join', key, name: 'bob' })).toMatchObject({ type: 'joined' })
  expect(await bob.request({ type: 'history', key, after: 0, limit: 5 })).toMatchObject({ messages: [{ seq: 1 }] })

  readers.get('n')?.delete('bob')
  await bob.until(() => bob.of(key).error?.code === 'forbidden', 'the end of the membership')
  expect(await bob.request({ type: 'publish', key, data: 'two' })).toMatchObject({ code: 'forbidden' })
  expect(await ann.request({ type: 'publish', key, data: 'two' })).toMatchObject({ type: 'published', seq: 2 })
})

/** A backend that is asked about the messages of a room. @returns what it was asked, in order */
function moderate(id: string, answer: (message: any) => [status: number, body?: object | string, afterMs?: number]) {
  const questions: any[] = []
  moderator.on(`/rooms/${id}/ask`, async (request, response) => {
    const chunks = await request.toArray()
    const message = JSON.parse(String(Buffer.concat(chunks)))
    questions.push(message)
    const [status, body = '', afterMs = 0] = answer(message)
    const text = typeof body === 'string' ? body : JSON.stringify(body)
    setTimeout(() => response.writeHead(status).end(text), afterMs)
  })
  return questions
}

const messageId = () => randomBytes(16).toString('base64url')

test('messages: a backend takes, changes or refuses each before anybody is sent it, and is not asked about its own', async () => {
  const key = 'asked:a'
  const questions = moderate('a', ({ data }) => {
    if (data.includes('rude')) return [422, { reason: 'profanity' }]
    return data.includes('phone') ? [200, { data: 'call ***' }] : [204]
  })
  const [ann, bob] = [await viewer('ann'), await viewer('bob', otherGateway.url)]
  await bob.request({ type: 'subscribe', keys: [{ key }] })
  const id = messageId()
  expect(await ann.request({ type: 'publish', key, messageId: id, data: 'hello' })).toMatchObject({ seq: 1 })
  expect(await ann.request({ type: 'publish', key, data: 'phone 7' })).toMatchObject({ seq: 2 })
  const refusal = { type: 'error', code: 'message_refused', reason: 'profanity' }
  expect(await ann.request({ type: 'publish', key, data: 'rude' })).toMatchObject(refusal)
  const response = await gateway.call('/v1/publish', { key, data: 'rude, from the backend' })
  expect(response.json()).toMatchObject({ seq: 3 })

  expect(questions).toHaveLength(3)
  expect(questions[0]).toEqual({ key, messageId: id, from: 'ann', data: 'hello' })
  const { method, headers } = moderator.askedFor('/rooms/a/ask')[0]
  expect(method).toBe('POST')
  expect(headers).toMatchObject({ 'content-type': 'application/json', 'x-key': 'of-the-fetcher' })
  expect(headers.authorization).toBeUndefined()
  const { messages } = await bob.request({ type: 'history', key, after: 0, limit: 5 })
  expect(messages.map(({ data }: any) => data)).toEqual(['hello', 'call ***', 'rude, from the backend'])

  // Sent again, through another gateway: the answer stands, and so does what was published.
  questions.length = 0
  const [first, second] = [messageId(), messageId()]
  const publish = (client: typeof ann, id: string, data: string) =>
    client.request({ type: 'publish', key, messageId: id, data })
  expect(await publish(ann, first, 'phone 8')).toMatchObject({ seq: 4 })
  const again = await viewer('ann', otherGateway.url)
  expect(await publish(again, first, 'phone 8')).toMatchObject({ seq: 4, duplicate: true })
  expect(await publish(ann, second, 'rude')).toMatchObject(refusal)
  moderate('a', () => [204])
  expect(await publish(again, second, 'rude')).toMatchObject(refusal)
  expect(questions).toHaveLength(2)
})

test('messages: a hundred of one session keep their order, however long a backend takes for each', async () => {
  const key = 'asked:b'
  moderate('b', ({ data }) => [data % 10 === 3 ? 403 : 204, '', (data * 37) % 50])
  const [ann, bob] = [await viewer('ann'), await viewer('bob', otherGateway.url)]
  await bob.request({ type: 'subscribe', keys: [{ key }] })
  const numbers = Array.from({ length: 100 }, (_, n) => n)
  const answers = await Promise.all(numbers.map(data => ann.request({ type: 'publish', key, data })))
  const { messages } = await bob.request({ type: 'history', key, after: 0, limit: 200 })
  expect(messages.map(({ data }: any) => data)).toEqual(numbers.filter(n => n % 10 !== 3))
  const seqs = answers.filter(({ type }) => type === 'published').map(({ seq }) => seq)
  expect(seqs).toEqual(seqs.map((_, index) => index + 1))
  expect(answers.filter(({ code }) => code === 'message_refused')).toHaveLength(10)
})

test('messages: without an answer of use they are refused, or taken, as their namespace says', async () => {
  moderate('c', ({ data }) => (data === 'page' ? [200, '<html>'] : [500]))
  moderator.on('/rooms/d/ask', answers.silence())
  const ann = await viewer('ann')
  const publish = (key: string, data: string) => ann.request({ type: 'publish', key, data })
  const refused = { type: 'error', code: 'backend_error', retryAfterMs: expect.any(Number) }
  const said = 'the backend answered 500 when asked whether this may be published'
  expect(await publish('asked:c', 'x')).toMatchObject({ ...refused, message: said })
  expect(await publish('asked:c', 'page')).toMatchObject(refused)
  expect(await publish('lenient:c', 'x')).toMatchObject({ type: 'published', seq: 1 })
  expect(await publish('lenient:d', 'slow')).toMatchObject({ type: 'published', seq: 1 })
  expect(await publish('asked:d', 'slow')).toMatchObject({ ...refused, message: expect.stringContaining('6000 ms') })
  await moderator.down()
  expect(await publish('asked:c', 'down')).toMatchObject(refused)
  expect(await publish('lenient:c', 'down')).toMatchObject({ type: 'published', seq: 2 })
  const { messages } = await ann.request({ type: 'history', key: 'asked:c', after: 0, limit: 5 })
  expect(messages).toEqual([])
  const unanswered = (how: string) => gateway.metric(`keycast_gateway_rulings_total{ruling="unanswered_${how}"}`)
  expect([await unanswered('refused'), await unanswered('taken')]).toEqual([4, 3])
})

test('no token is in any log, nor in what the services tell', async () => {
  const logs = JSON.stringify([
    ...system.gateways.map(({ process }) => process.log()),
    ...system.fetchers.map(({ process }) => process.log()),
  ])
  expect(logs).not.toMatch(/eyJ[A-Za-z0-9_-]+\.eyJ/)
  expect(logs).not.toContain(SERVICE_TOKEN)
  const told = JSON.stringify(await gateway.inspect('doc:a'))
  expect(told).not.toMatch(/eyJ/)
})
