// Every door against every kind of bad token with a real gateway, directly and through nginx: each is refused, counted once,
// and shown nowhere.
import { writeFileSync } from 'node:fs'
import type { IncomingHttpHeaders } from 'node:http'
import { join } from 'node:path'
import WebSocket from 'ws'
import { badTokens, issuers, sign } from '../../services/gateway/access/test-tokens.ts'
import { answers, documentOf, startBackend } from '../support/backend.ts'
import { atEnd, newFolder } from '../support/cleanup.ts'
import { within } from '../support/deadline.ts'
import { request, startProxy } from '../support/proxy.ts'
import { PATIENCE, startSystem } from '../support/system.ts'

const folder = newFolder()
const [withKey, withSecret] = issuers
const publicKey = join(folder, 'public.pem')
writeFileSync(publicKey, withKey.keys[0].export({ type: 'spki', format: 'pem' }) as string)

const backend = await startBackend()
for (const id of ['mine', 'secret']) backend.on(`/docs/${id}`, answers.json(documentOf(1)))
const system = await startSystem({
  namespaces: {
    doc: { url: `${backend.origin}/docs/{id}`, timeout: PATIENCE },
    room: { source: 'journal', members: 'named' },
  },
  journals: 1,
  access: {
    cookie: 'session',
    tokens: [
      { publicKey, algorithms: ['ES256'], audience: 'keycast' },
      { secret: `\${JWT_SECRET}`, algorithms: ['HS256'], audience: 'keycast', prefix: withSecret.prefix },
    ],
  },
  env: {
    GATEWAY_ORIGINS: 'https://page.example',
    // Requests without a token take their time on a busy machine.
    GATEWAY_AUTH_MS: '60s',
    JWT_SECRET: withSecret.keys[0].export().toString(),
  },
})
const [gateway] = system.gateways
const proxy = await startProxy([gateway.port], { args: ['--exempt', '127.0.0.0/8'] })
const answer = await gateway.call('/v1/revoke', { sub: 'mallory', before: Math.floor(Date.now() / 1_000) + 3_600 })
if (answer.status !== 200) throw new Error(answer.body.toString())

const grants = { read: ['doc:mine', 'room:mine'], publish: ['room:mine'], join: ['room:mine'] }
const good = () => sign({ nowMs: Date.now(), keys: grants })
const REFUSED = 'the token was refused'

/** The ways to the gateway. */
const ways: Record<string, (path: string) => string> = {
  directly: path => `${gateway.http}${path}`,
  'through nginx': proxy.url,
}

/** @param url http or https */
async function openSocket(url: string, headers: Record<string, string> = {}) {
  const socket = new WebSocket(url.replace(/^http/, 'ws'), { headers, rejectUnauthorized: false })
  atEnd(() => socket.terminate())
  const messages: any[] = []
  let wake: () => void = () => {}
  socket.on('message', data => {
    messages.push(JSON.parse(data.toString()))
    wake()
  })
  socket.on('error', () => {})
  const refused = new Promise<{ status: number; headers?: IncomingHttpHeaders; body?: string }>(resolve => {
    socket.on('unexpected-response', (_, response) => {
      let body = ''
      response.on('data', chunk => {
        body += chunk
      })
      response.on('end', () => resolve({ status: response.statusCode as number, headers: response.headers, body }))
    })
  })
  const opened = new Promise<{ status: number; headers?: IncomingHttpHeaders; body?: string }>(resolve =>
    socket.on('open', () => resolve({ status: 101 })),
  )
  const outcome = await within(Promise.race([opened, refused]), 'an answer to the upgrade')
  return {
    ...outcome,
    /** @param message with an id @returns what answers it */
    async ask(message: object): Promise<any> {
      socket.send(JSON.stringify(message))
      const id = (message as { id: number }).id
      const answered = new Promise(resolve => {
        wake = () => {
          // Refused keys are named after the `subscribed` that leaves them out.
          const found = messages.filter(each => each.id === id && each.keys?.length !== 0)[0]
          if (found) resolve(found)
        }
        wake()
      })
      return within(answered, 'an answer')
    },
    close: () => socket.terminate(),
  }
}

const VALUE = '/v1/values/doc:mine'
const MESSAGES = '/v1/messages/room:mine'

let lastId = 100

/** The requests that a session may make about a key; of a subscribe, the error about the key. */
const requests: Record<string, (id: string) => any> = {
  get: id => ({ type: 'get', id: ++lastId, key: `doc:${id}` }),
  subscribe: id => ({ type: 'subscribe', id: ++lastId, keys: [{ key: `doc:${id}` }] }),
  'subscribe to a room': id => ({ type: 'subscribe', id: ++lastId, keys: [{ key: `room:${id}` }] }),
  'subscribe to who is there': id => ({
    type: 'subscribe',
    id: ++lastId,
    keys: [{ key: `room:${id}`, presence: true }],
  }),
  history: id => ({ type: 'history', id: ++lastId, key: `room:${id}`, after: 0, limit: 5 }),
  publish: id => ({ type: 'publish', id: ++lastId, key: `room:${id}`, data: 'hello' }),
  join: id => ({ type: 'join', id: ++lastId, key: `room:${id}`, name: 'ann' }),
}

/** Each door shows the token, and returns the answer: a status and a text. */
const doors: Record<
  string,
  (url: (path: string) => string, token: string) => Promise<{ status: number; body: string }>
> = {
  'upgrade, header': (url, token) => upgrade(url, { authorization: `Bearer ${token}` }),
  'upgrade, cookie': (url, token) => upgrade(url, { cookie: `session=${token}` }),
  'GET /v1/values, header': (url, token) => get(url, VALUE, { authorization: `Bearer ${token}` }),
  'GET /v1/values, cookie': (url, token) => get(url, VALUE, { cookie: `session=${token}` }),
  'GET /v1/messages, header': (url, token) => get(url, MESSAGES, { authorization: `Bearer ${token}` }),
  'GET /v1/messages, cookie': (url, token) => get(url, MESSAGES, { cookie: `session=${token}` }),
  async 'auth as first message'(url, token) {
    const socket = await openSocket(url('/ws'))
    const answer = await socket.ask({ type: 'auth', id: 1, token })
    for (const [type, request] of Object.entries(requests)) {
      const { code } = await socket.ask(request('mine'))
      if (code !== 'unauthenticated') throw new Error(`${type} was answered with ${code}`)
    }
    socket.close()
    return { status: answer.code === 'token_refused' ? 401 : 0, body: answer.message }
  },
  async 'auth as renewal'(url, token) {
    const socket = await openSocket(url('/ws'), { authorization: `Bearer ${await good()}` })
    const answer = await socket.ask({ type: 'auth', id: 1, token })
    // The session keeps its rights, and gets no more.
    for (const [type, request] of Object.entries(requests)) {
      const had = await socket.ask(request('mine'))
      const { code } = await socket.ask(request('secret'))
      if (had.type === 'error' || code !== 'forbidden') throw new Error(`${type}: ${had.type} ${had.code} and ${code}`)
    }
    socket.close()
    return { status: answer.code === 'token_refused' ? 401 : 0, body: answer.message }
  },
}

async function upgrade(url: (path: string) => string, headers: Record<string, string>) {
  const socket = await openSocket(url('/ws'), headers)
  socket.close()
  return { status: socket.status, body: socket.body ?? '' }
}

async function get(url: (path: string) => string, path: string, headers: Record<string, string>) {
  const { status = 0, body } = await request(url(path), { headers })
  return { status, body }
}

const refusals = () => gateway.metric('keycast_gateway_tokens_refused_total')

describe.each(Object.keys(ways))('%s', way => {
  const url = ways[way]

  test.each(Object.keys(doors))('%s: every bad token is refused alike, and counted once', async door => {
    const before = await refusals()
    const got: Record<string, { status: number; body: string }> = {}
    const wanted: typeof got = {}
    for (const [name, make] of Object.entries(badTokens)) {
      const token = await make(Date.now())
      const { status, body } = await doors[door](url, token)
      got[name] = { status, body: body.includes(REFUSED) ? REFUSED : body }
      wanted[name] = { status: 401, body: REFUSED }
      if (token) expect(body).not.toContain(token)
    }
    expect(got).toEqual(wanted)
    expect((await refusals()) - before).toBe(Object.keys(badTokens).length)
  })

  test('a good token as long as one may be opens each door that takes it in a header', async () => {
    const keys = {
      read: ['doc:mine', 'room:mine', ...Array.from({ length: 257 }, (_, n) => `doc:another-key-${1_000 + n}`)],
    }
    const token = await sign({ nowMs: Date.now(), keys })
    expect(token.length).toBeGreaterThan(8_000)
    expect((await upgrade(url, { authorization: `Bearer ${token}` })).status).toBe(101)
    expect((await upgrade(url, { cookie: `session=${token}` })).status).toBe(101)
    expect((await get(url, VALUE, { authorization: `Bearer ${token}` })).status).toBe(200)
    expect((await get(url, MESSAGES, { authorization: `Bearer ${token}` })).status).toBe(200)
  })

  test('a good token for another key is refused, with the same answer whether the key exists or not', async () => {
    const headers = { authorization: `Bearer ${await good()}` }
    for (const path of [VALUE, MESSAGES]) {
      expect(await get(url, path, headers)).toMatchObject({ status: 200 })
      const [there, absent] = await Promise.all(
        ['secret', 'none'].map(id => get(url, path.replace('mine', id), headers)),
      )
      expect(there.status).toBe(403)
      expect({ ...absent, body: absent.body.replaceAll(':none', ':secret') }).toEqual(there)
    }
    const socket = await openSocket(url('/ws'), headers)
    for (const request of Object.values(requests)) {
      const [one, other] = [await socket.ask(request('secret')), await socket.ask(request('none'))]
      expect(one.code).toBe('forbidden')
      expect({ ...other, id: one.id, key: one.key }).toEqual(one)
    }
    socket.close()
  })
})

test('the backend was asked for nothing but what was granted, and no log has a token', async () => {
  expect(new Set(backend.asked.map(({ path }) => path))).toEqual(new Set(['/docs/mine']))
  const logs = proxy.log() + JSON.stringify(gateway.process.log())
  // Every token that is one begins so: {"alg":
  expect(logs).not.toContain('eyJhbGci')
})
