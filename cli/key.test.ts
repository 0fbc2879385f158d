import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { explainAccess, readViewer } from './explain.ts'
import { explain } from './key.ts'

const script = fileURLToPath(new URL('keycast.js', import.meta.url))

const fresh = {
  owner: { node: '10.0.0.1:7001:7002', alive: true },
  watched: true,
  sessionsWatching: 3,
  getsWaiting: 0,
  held: true,
  stale: false,
  version: 'abc',
  ageMs: 700,
  bytes: 130_000,
  contentType: 'application/json',
  namespace: { refreshMs: 1_000, maxAgeMs: 1_000, timeoutMs: 2_000 },
}
const lastFailure = { code: 'backend_timeout', message: 'no answer within 2000 ms', agoMs: 300, retryAfterMs: 800 }

test.each([
  ['fresh', {}],
  ['kept until the backend reports', { namespace: { ...fresh.namespace, refreshMs: 0 } }],
  ['stale: backend_timeout', { stale: true, lastFailure }],
  ['stale: its owner has not confirmed', { stale: true }],
  ['no value: backend_timeout', { held: false, lastFailure }],
  ['its first fetch is under way', { held: false }],
  ['nobody watches it at this gateway', { watched: false, sessionsWatching: 0, held: false }],
  ['not kept fresh: nobody watches it', { watched: false, sessionsWatching: 0 }],
  ['cannot be fresh: the fetcher node', { owner: { node: null, alive: false }, stale: true, lastFailure }],
])('the verdict is: %s', (verdict, known) => {
  expect(explain({ ...fresh, ...known } as any)[0]).toContain(verdict)
})

test('the facts behind the verdict are printed, the last failure with its age and the next try', () => {
  const text = explain({ ...fresh, lastFailure }).join('\n')
  expect(text).toContain('10.0.0.1:7001:7002\n')
  expect(text).toContain('3 sessions')
  expect(text).toContain('130000 bytes of application/json, version abc, 700 ms old')
  expect(text).toContain('no answer within 2000 ms, 300 ms ago, next try after 800 ms')
})

const none = { rule: 'anonymous', patterns: [], more: 0 }
const some = { rule: 'token keys', patterns: ['room:1', 'room:2'], more: 3 }

test('for each verb it says which rule admits, or which rules were asked and what they have', () => {
  const lines = explainAccess({
    key: 'room:7',
    user: 'ann',
    expiresInMs: 3_500_400,
    revokedBefore: 1_800_000_000,
    keyProblem: 'no such namespace',
    verbs: {
      read: { allowed: true, rule: 'everyone', pattern: 'room:*' },
      publish: { allowed: false, asked: [none, some] },
      join: { allowed: false, asked: [none] },
    },
  })
  expect(lines).toEqual([
    'room:7 for "ann", whose token expires in 3501 s',
    '  nobody gets it: no such namespace',
    '  revoked: tokens issued before 2027-01-15T08:00:00.000Z are refused',
    '  read     yes  everyone.read has room:*',
    '  publish  no   no pattern admits it:',
    '                anonymous.publish has none',
    '                token keys.publish has room:1 room:2 and 3 more',
    '  join     no   no pattern admits it:',
    '                anonymous.join has none',
  ])
})

test('where the backend decides as well, its request follows the rule', () => {
  const lines = explainAccess({
    key: 'doc:7',
    user: null,
    backendDecides: 'HEAD http://api/docs/7',
    verbs: {
      read: { allowed: true, rule: 'anonymous', pattern: 'doc:*' },
      publish: { allowed: false, asked: [none] },
      join: { allowed: false, asked: [none] },
    },
  })
  expect(lines[2]).toBe("           if the backend admits it, too: HEAD http://api/docs/7 with the viewer's token")
})

test.each([
  [{ as: '-' }, { token: 'read' }],
  [{ as: 'given' }, { token: 'given' }],
  [{ 'as-sub': 'ann' }, { sub: 'ann' }],
  [
    { 'as-sub': 'ann', grants: '{"read":["room:7"]}' },
    { sub: 'ann', keys: { read: ['room:7'] } },
  ],
  [{ 'as-anybody': true }, {}],
])('%j asks for %j', (given, viewer) => {
  expect(readViewer(given, () => 'read\n')).toEqual(viewer)
})

test.each([
  [{}, 'give one of'],
  [{ as: 't', 'as-sub': 'ann' }, 'give one of'],
  [{ as: 't', grants: '{}' }, '--grants goes with --as-sub'],
  [{ 'as-sub': '' }, 'name a user'],
  [{ 'as-sub': 'ann', grants: 'read' }, 'must be JSON'],
])('%j is refused: %s', (given, why) => {
  expect(() => readViewer(given, () => '')).toThrow(why)
})

describe('run at a gateway', () => {
  /** The requests it received. */
  const asked: { method?: string; url?: string; token?: string; body: string }[] = []
  /** The answer it gives. */
  let answer: { status: number; body: unknown }
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    const { method, url, headers } = request
    asked.push({ method, url, token: headers.authorization, body })
    response.writeHead(answer.status, { 'content-type': 'application/json' }).end(JSON.stringify(answer.body))
  })
  const folder = mkdtempSync(join(tmpdir(), 'keycast-key-'))
  writeFileSync(join(folder, 'tokens'), 'ann:admin:s3cret-of-ann\n')
  let port: number
  beforeAll(async () => {
    await once(server.listen(0, '127.0.0.1'), 'listening')
    port = (server.address() as AddressInfo).port
  })
  beforeEach(() => {
    asked.length = 0
    answer = { status: 200, body: fresh }
  })
  afterAll(() => {
    rmSync(folder, { recursive: true })
    return new Promise(resolve => server.close(resolve))
  })

  const run = (
    args: string[],
    env: Record<string, string> = { API_TOKENS_FILE: join(folder, 'tokens') },
  ): Promise<{ code: number; text: string }> =>
    new Promise(resolve => {
      execFile(process.execPath, [script, ...args], { env }, (error, stdout, stderr) => {
        resolve({ code: error ? Number(error.code) : 0, text: stdout + stderr })
      })
    })

  test('the gateway is found by its settings and asked with the token from the file', async () => {
    const env = { GATEWAY_INTERNAL_PORT: String(port), GATEWAY_INTERNAL_HOST: '0.0.0.0' }
    const { code, text } = await run(['key', 'text:a/b'], { ...env, API_TOKENS_FILE: join(folder, 'tokens') })
    expect(text).toContain('fresh')
    expect(code).toBe(0)
    expect(asked).toEqual([{ method: 'GET', url: '/v1/keys/text:a/b', token: 'Bearer s3cret-of-ann', body: '' }])
  })

  test('the query of a key is asked for as a part of it', async () => {
    await run(['key', 'tasks:7?status=open', '--gateway', `127.0.0.1:${port}`])
    expect(asked.map(({ url }) => url)).toEqual(['/v1/keys/tasks:7%3Fstatus=open'])
  })

  test('every gateway named is asked, and one that does not answer is an error beside the others', async () => {
    const { code, text } = await run(['key', 'text:1', '--gateway', `127.0.0.1:${port}`, '--gateway', '127.0.0.1:9'])
    expect(text).toContain(`127.0.0.1:${port}: fresh`)
    expect(text).toMatch(/127\.0\.0\.1:9: .+/)
    expect(code).toBe(1)
  })

  test('--refresh calls POST /v1/refresh', async () => {
    answer = { status: 202, body: { keys: 1 } }
    const { code, text } = await run(['key', 'text:1', '--refresh', '--gateway', `127.0.0.1:${port}`])
    expect(text).toContain('the fetcher asks the backend again')
    expect(code).toBe(0)
    expect(asked).toEqual([
      { method: 'POST', url: '/v1/refresh', token: 'Bearer s3cret-of-ann', body: '{"keys":["text:1"]}' },
    ])
  })

  test('a refresh that the gateway refuses is an error that says why', async () => {
    answer = { status: 400, body: { message: 'nothing was refreshed', problems: ['keys[0]: no such namespace'] } }
    const { code, text } = await run(['key', 'nope:1', '--refresh', '--gateway', `127.0.0.1:${port}`])
    expect(text).toContain('HTTP 400: nothing was refreshed: keys[0]: no such namespace')
    expect(code).toBe(1)
  })

  test('--as posts the token that the input brings, and prints what the gateway says of it', async () => {
    const refused = { reason: 'expired', message: 'its "exp" is over' }
    answer = { status: 200, body: { key: 'text:1', user: null, refused, verbs: {} } }
    const { code, text } = await run(['explain', 'text:1', '--as', 'a.b.c', '--gateway', `127.0.0.1:${port}`])
    expect(text).toContain('the token is refused, expired: its "exp" is over')
    expect(code).toBe(0)
    expect(asked).toEqual([
      { method: 'POST', url: '/v1/access', token: 'Bearer s3cret-of-ann', body: '{"key":"text:1","token":"a.b.c"}' },
    ])
  })

  test.each([
    [['key'], undefined, 'give one key'],
    [['key', 'a:1'], {}, 'API_TOKENS'],
    [['key', 'a:1', '--gateway', 'http://h'], undefined, 'HOST'],
    [['explain'], undefined, 'give one key'],
    [['explain', 'a:1'], undefined, 'give one of --as'],
  ])('%j is a usage error', async (args, env, why) => {
    expect(await run(args, env)).toMatchObject({ code: 2, text: expect.stringContaining(why) })
    expect(asked).toEqual([])
  })
})
