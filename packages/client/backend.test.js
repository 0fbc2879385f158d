import { EventEmitter, once } from 'node:events'
import { createServer } from 'node:http'
import { CallError, createBackend, isFromKeycast } from './backend.js'

/** @typedef {{ method?: string, path?: string, headers: import('node:http').IncomingHttpHeaders, body: string }} Call */
/** @typedef {{ status?: number, body?: any, headers?: Record<string, string>, lost?: boolean }} Answer */

/** @type {(() => Promise<unknown>)[]} */
const ends = []
afterEach(async () => {
  for (const end of ends.splice(0)) await end()
})

/** @param {import('node:http').RequestListener} listener @returns {Promise<string>} its URL */
async function serve(listener) {
  const server = createServer(listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  ends.push(async () => {
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
  })
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
  return `http://127.0.0.1:${port}`
}

/** A gateway that is made up. Waits end at once and are noted. @param {(call: Call, count: number) => Answer} answerOf */
async function setup(answerOf) {
  /** @type {Call[]} */
  const calls = []
  const url = await serve(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    const call = { method: request.method, path: request.url, headers: request.headers, body }
    calls.push(call)
    const answer = answerOf(call, calls.length)
    if (answer.lost) response.destroy()
    else response.writeHead(answer.status ?? 200, answer.headers)
    response.end(typeof answer.body === 'string' ? answer.body : JSON.stringify(answer.body ?? {}))
  })
  /** @type {number[]} */
  const waits = []
  const environment = {
    random: () => 0,
    /** @param {() => void} task @param {number} ms */
    setTimeout(task, ms) {
      if (ms === 10_000) return undefined // a try's own
      if (ms !== 30) waits.push(ms)
      return setImmediate(task)
    },
    clearTimeout: clearImmediate,
  }
  const backend = createBackend(`${url}/`, { token: 'secret', environment })
  return { backend, calls, waits }
}

const bodies = (/** @type {Call[]} */ calls) => calls.map(({ body }) => JSON.parse(body))

test('keys named at once leave in one request, each once', async () => {
  const { backend, calls } = await setup(() => ({ status: 202, body: { keys: 3 } }))
  await Promise.all([backend.refresh('a:1'), backend.refresh(['a:2', 'a:1']), backend.refresh(new Set(['a:3']))])
  expect(calls).toMatchObject([
    {
      method: 'POST',
      path: '/v1/refresh',
      headers: { authorization: 'Bearer secret', 'content-type': 'application/json' },
    },
  ])
  expect(bodies(calls)).toEqual([{ keys: ['a:1', 'a:2', 'a:3'] }])
})

test('keys of the same users leave together, apart from the others', async () => {
  const { backend, calls } = await setup(() => ({ status: 202 }))
  await Promise.all([
    backend.refresh('a:1', ['ann', 'bob']),
    backend.refresh('a:2', ['bob', 'ann']),
    backend.refresh('a:3', ['ann']),
    backend.refresh('a:4'),
    backend.refresh([]),
  ])
  const sent = bodies(calls).sort((a, b) => a.keys[0].localeCompare(b.keys[0]))
  expect(sent).toEqual([
    { keys: ['a:1', 'a:2'], users: ['ann', 'bob'] },
    { keys: ['a:3'], users: ['ann'] },
    { keys: ['a:4'] },
  ])
})

test('no request names more than 5,000 keys or 1,000 users', async () => {
  const { backend, calls } = await setup(() => ({ status: 202 }))
  const keys = Array.from({ length: 7_000 }, (_, id) => `a:${id}`)
  await Promise.all([
    backend.refresh(keys),
    backend.refresh(
      'b:1',
      Array.from({ length: 1_500 }, (_, id) => `u${id}`),
    ),
  ])
  const sent = bodies(calls)
  for (const { keys, users = [] } of sent) {
    expect(keys.length).toBeLessThanOrEqual(5_000)
    expect(users.length).toBeLessThanOrEqual(1_000)
  }
  expect(sent.filter(({ users }) => !users).flatMap(({ keys }) => keys)).toEqual(keys)
  expect(new Set(sent.flatMap(({ users = [] }) => users)).size).toBe(1_500)
})

test('a wrong key fails alone, whatever it was collected with', async () => {
  const { backend } = await setup(({ body }) =>
    body.includes('bad')
      ? {
          status: 400,
          body: { code: 'bad_request', message: 'nothing was refreshed', problems: ['keys[0]: no such namespace'] },
        }
      : { status: 202 },
  )
  const ends = await Promise.allSettled(['a:1', 'a:2', 'bad:1', 'a:3', 'a:4'].map(key => backend.refresh(key)))
  expect(ends.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected', 'fulfilled', 'fulfilled'])
  expect(/** @type {any} */ (ends[2]).reason).toMatchObject({
    name: 'CallError',
    code: 'bad_request',
    status: 400,
    problems: ['keys[0]: no such namespace'],
  })
})

test('a call is repeated after the time that the answer says, then with more and more time', async () => {
  const answers = [
    { status: 503, body: { code: 'fetcher_unavailable', message: 'm', retryAfterMs: 700 } },
    { status: 429, body: '<html>', headers: { 'retry-after': '2' } },
    { lost: true },
    { status: 202 },
  ]
  const { backend, calls, waits } = await setup((_, count) => answers[count - 1])
  await backend.refresh('a:1')
  expect(calls).toHaveLength(4)
  expect(waits).toEqual([700, 2_000, 0])
})

test('repeating ends: after five tries, with a long Retry-After, and where a retry changes nothing', async () => {
  const busy = { status: 503, body: { code: 'journal_unavailable', message: 'no journal' } }
  const always = await setup(() => busy)
  await expect(always.backend.publish('room:1', 1)).rejects.toMatchObject({ code: 'journal_unavailable', status: 503 })
  expect(always.calls).toHaveLength(5)
  const long = await setup(() => ({ status: 503, headers: { 'retry-after': '31' } }))
  await expect(long.backend.refresh('a:1')).rejects.toMatchObject({ code: 'no_answer', retryAfterMs: 31_000 })
  expect(long.calls).toHaveLength(1)
  const full = await setup(() => ({ status: 507, body: { code: 'log_full', message: 'the log is full' } }))
  await expect(full.backend.publish('room:1', 1)).rejects.toThrow('the log is full')
  expect(full.calls).toHaveLength(1)
})

test('a message is repeated with its id, which the error has, too', async () => {
  const { backend, calls } = await setup((_, count) =>
    count === 1 ? { lost: true } : { body: { key: 'room:1', epoch: 'e', seq: 7, at: 1, duplicate: true } },
  )
  const kept = await backend.publish('room:1', { text: 'hi' }, { from: 'ann' })
  const [first, again] = bodies(calls)
  expect(again).toEqual(first)
  expect(first).toEqual({
    key: 'room:1',
    data: { text: 'hi' },
    from: 'ann',
    messageId: expect.stringMatching(/^[\w-]{22}$/),
  })
  expect(kept).toEqual({
    key: 'room:1',
    epoch: 'e',
    seq: 7,
    at: 1,
    duplicate: true,
    messageId: first.messageId,
  })
  const { backend: other } = await setup(() => ({ status: 409, body: { code: 'id_conflict', message: 'm' } }))
  await expect(other.publish('room:1', 1, { messageId: 'mine-mine-mine-mine' })).rejects.toMatchObject({
    code: 'id_conflict',
    messages: [{ key: 'room:1', data: 1, messageId: 'mine-mine-mine-mine' }],
  })
})

test('many messages: in order in each room, and those that are left can be given again', async () => {
  let isFull = true
  const { backend, calls } = await setup(({ body }) => {
    const { key, data } = JSON.parse(body)
    if (isFull && key === 'room:1' && data === 2) return { status: 507, body: { code: 'log_full', message: 'full' } }
    return { body: { key, epoch: 'e', seq: data, at: 1 } }
  })
  const messages = [1, 2, 3].flatMap(data => ['room:1', 'room:2'].map(key => ({ key, data })))
  const error = await backend.publishAll(messages).catch(error => error)
  expect(error).toBeInstanceOf(CallError)
  expect(error).toMatchObject({
    code: 'log_full',
    messages: [
      { key: 'room:1', data: 2 },
      { key: 'room:1', data: 3 },
    ],
  })
  const sentTo = (/** @type {string} */ room) => bodies(calls).filter(({ key }) => key === room)
  expect(sentTo('room:2').map(({ data }) => data)).toEqual([1, 2, 3])
  expect(sentTo('room:1').map(({ data }) => data)).toEqual([1, 2])
  isFull = false
  const kept = await backend.publishAll(error.messages)
  expect(kept.map(({ seq }) => seq)).toEqual([2, 3])
  const [, refused, again] = sentTo('room:1')
  expect(again).toEqual(refused)
})

test('a value is handed over as JSON, or as it is under its type', async () => {
  const { backend, calls } = await setup(() => ({ body: { key: 'a:1', taken: true, version: 'v' } }))
  expect(await backend.put('a:1/b c?d=e', { n: 1 }, { order: 17 })).toEqual({ key: 'a:1', taken: true, version: 'v' })
  await backend.put('a:2', 'Milk', { contentType: 'text/plain' })
  await backend.delete('a:3')
  await backend.putAll([
    { key: 'a:1', value: 'ä' },
    { key: 'a:2', delete: true, order: 3 },
  ])
  expect(calls.map(({ method, path, body }) => [method, path, body])).toEqual([
    ['PUT', '/v1/values/a%3A1%2Fb%20c%3Fd%3De', '{"n":1}'],
    ['PUT', '/v1/values/a%3A2', 'Milk'],
    ['DELETE', '/v1/values/a%3A3', ''],
    ['POST', '/v1/values', '{"key":"a:1","value":"ä"}\n{"key":"a:2","delete":true,"order":3}\n'],
  ])
  expect(calls[0].headers).toMatchObject({ 'content-type': 'application/json', 'keycast-order': '17' })
  expect(calls[1].headers).toMatchObject({ 'content-type': 'text/plain' })
  expect(calls[1].headers).not.toHaveProperty('keycast-order')
})

test('a value is repeated only with an order: else it could come after a newer one', async () => {
  const { backend, calls } = await setup(() => ({
    status: 503,
    body: { code: 'fetcher_unavailable', message: 'perhaps', lines: [1] },
  }))
  await expect(backend.put('a:1', 1)).rejects.toMatchObject({ code: 'fetcher_unavailable' })
  await expect(backend.delete('a:1')).rejects.toThrow('perhaps')
  const lines = [
    { key: 'a:1', value: 1, order: 1 },
    { key: 'a:2', value: 1 },
  ]
  await expect(backend.putAll(lines)).rejects.toMatchObject({ lines: [1] })
  expect(calls).toHaveLength(3)
  await expect(backend.put('a:1', 1, { order: 0 })).rejects.toThrow()
  await expect(backend.putAll([{ key: 'a:1', value: 1, order: 0 }])).rejects.toThrow()
  expect(calls).toHaveLength(3 + 2 * 5)
})

test('users are signed out, access is explained, and decisions are asked for again', async () => {
  const { backend, calls } = await setup(({ path }) => ({ body: { path } }))
  expect(await backend.revoke({ sub: 'ann' })).toEqual({ path: '/v1/revoke' })
  expect(await backend.access({ key: 'a:1', sub: 'ann' })).toEqual({ path: '/v1/access' })
  expect(await backend.askAgain({ user: 'ann' })).toEqual({ path: '/v1/access' })
  expect(bodies(calls)).toEqual([{ sub: 'ann' }, { key: 'a:1', sub: 'ann' }, { ask: { user: 'ann' } }])
})

test('a gateway that cannot be reached, and a redirect that the token must not follow', async () => {
  const { backend, calls } = await setup(() => ({ status: 302, headers: { location: 'http://127.0.0.1:9/' } }))
  await expect(backend.revoke({ jti: 'j' })).rejects.toMatchObject({ code: 'no_answer', status: 302 })
  expect(calls).toHaveLength(1)
  const nobody = createBackend('http://127.0.0.1:1', { token: 't' })
  await expect(nobody.put('a:1', 1)).rejects.toThrow(/PUT http:\/\/127\.0\.0\.1:1\/v1\/values\/a%3A1: .*/)
  expect(() => createBackend('gateway', { token: 't' })).toThrow('Invalid URL')
})

test('a gateway that says nothing is given up after 10 s', async () => {
  /** @type {[() => void, number][]} */
  const timers = []
  const gateway = new EventEmitter()
  const asked = once(gateway, 'asked')
  const url = await serve(() => gateway.emit('asked'))
  const environment = {
    setTimeout: (/** @type {() => void} */ task, /** @type {number} */ ms) => timers.push([task, ms]),
  }
  const backend = createBackend(url, { token: 't', environment })
  const put = backend.put('a:1', 1)
  await asked
  expect(timers.map(([, ms]) => ms)).toEqual([10_000])
  timers[0][0]()
  await expect(put).rejects.toThrow('nothing within 10000 ms')
})

test('close sends what was collected, and nothing comes after it', async () => {
  const { backend, calls } = await setup(() => ({ status: 202 }))
  const refreshed = backend.refresh('a:1')
  await backend.close()
  expect(bodies(calls)).toEqual([{ keys: ['a:1'] }])
  await refreshed
  await expect(backend.refresh('a:2')).rejects.toMatchObject({ code: 'closed' })
  await backend.close()
  expect(calls).toHaveLength(1)
})

describe("Keycast's calls to a backend", () => {
  const SECRET = 'a secret of sixteen'
  const BODY = '{"key":"room:1","text":"grüße"}'
  const T = 1_700_000_000
  // The same in clients/python/tests/test_backend.py and packages/service/notify/signature.test.ts.
  const V1 = '2d6c9ebe4f63044b546dd5d3f6aa069be030cedcb9aed9e9a2e62c1e9242f112'
  const now = () => T * 1_000
  const other = 'another secret that is long'

  test('a call of now that one of the secrets signed is taken', () => {
    const signature = `t=${T},v1=${V1}`
    expect(isFromKeycast(signature, BODY, SECRET, { now })).toBe(true)
    expect(isFromKeycast(signature, Buffer.from(BODY), [other, SECRET], { now })).toBe(true)
    expect(isFromKeycast(`t=${T},v1=${'0'.repeat(64)},v1=${V1}`, BODY, SECRET, { now })).toBe(true)
    expect(isFromKeycast(signature, BODY, SECRET, { now: () => (T + 300) * 1_000 })).toBe(true)
  })

  /** @type {[string, { body?: string, secrets?: string | string[], at?: number, signature?: string }][]} */
  const others = [
    ['another body', { body: `${BODY} ` }],
    ['another secret', { secrets: other }],
    ['no secret', { secrets: [] }],
    ['another time', { signature: `t=${T + 1},v1=${V1}` }],
    ['a call recorded long ago', { at: T + 301 }],
    ['a clock that is far behind', { at: T - 301 }],
    ['no signature', { signature: undefined }],
    ['half of one', { signature: `t=${T},v1=${V1.slice(2)}` }],
    ['one without a time', { signature: `v1=${V1}` }],
    ['a time that is no number', { signature: `t=now,v1=${V1}` }],
    ['two headers in one', { signature: `t=${T},v1=${V1.slice(1)}0, t=${T}` }],
  ]
  test.each(others)('%s is not', (_, { body = BODY, secrets = SECRET, at = T, ...more }) => {
    const signature = 'signature' in more ? more.signature : `t=${T},v1=${V1}`
    expect(isFromKeycast(signature, body, secrets, { now: () => at * 1_000 })).toBe(false)
  })
})
