// Access control with real processes: who gets in and reads a key, directly and through nginx, and what the logs keep
// secret.
import { execFileSync } from 'node:child_process'
import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { SignJWT } from 'jose'
import WebSocket from 'ws'
import { answers, documentOf, startBackend } from '../support/backend.ts'
import { atEnd, newFolder } from '../support/cleanup.ts'
import { closeClients, connect } from '../support/client.ts'
import { eventually, within } from '../support/deadline.ts'
import { ask } from '../support/http.ts'
import { writeConfig } from '../support/keycast-yaml.ts'
import { request, startProxy } from '../support/proxy.ts'
import { API_TOKEN, PATIENCE, startSystem } from '../support/system.ts'

const JWT_SECRET = randomBytes(48).toString('base64')
const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const directory = newFolder()
const pem = join(directory, 'public.pem')
writeFileSync(pem, publicKey.export({ type: 'spki', format: 'pem' }))

const backend = await startBackend()
for (const id of ['open', 'mine', 'secret']) backend.on(`/docs/${id}`, answers.json(documentOf(1)))

const namespaces = { doc: { url: `${backend.origin}/docs/{id}`, refresh: '100ms', timeout: PATIENCE } }
const system = await startSystem({
  namespaces,
  access: {
    anonymous: { read: ['doc:open'] },
    tokens: [
      { secret: `\${JWT_SECRET}`, algorithms: ['HS256'] },
      { publicKey: pem, algorithms: ['ES256'], prefix: 'staff|' },
    ],
  },
  env: { JWT_SECRET },
})
const [gateway] = system.gateways
const proxy = await startProxy([gateway.port])
const accessLog = join(proxy.directory, 'access.log')

const signed = ({
  sub = 'ann',
  ttlSeconds = 60,
  jti,
  read = ['doc:mine'],
}: {
  sub?: string
  ttlSeconds?: number
  jti?: string
  read?: string[]
} = {}) => {
  const nowSeconds = Math.floor(Date.now() / 1_000)
  const jwt = new SignJWT({ keys: { read }, ...(jti && { jti }) }).setProtectedHeader({ alg: 'HS256' })
  return jwt
    .setSubject(sub)
    .setIssuedAt(nowSeconds)
    .setExpirationTime(nowSeconds + ttlSeconds)
    .sign(Buffer.from(JWT_SECRET))
}

/** The status of an upgrade. */
const upgrade = (url: string, headers: Record<string, string>): Promise<number> => {
  const socket = new WebSocket(url, { headers, rejectUnauthorized: false })
  atEnd(() => socket.terminate())
  const answered = new Promise<number>((resolve, reject) => {
    socket.on('upgrade', response => resolve(response.statusCode as number))
    socket.on('unexpected-response', (_, response) => resolve(response.statusCode as number))
    socket.on('error', reject)
  })
  return within(answered, 'an answer to the upgrade')
}

afterEach(closeClients)

test('without a token a client reads what is open, and learns nothing of the rest', async () => {
  const client = await connect(gateway.url)
  expect(await client.request({ type: 'get', key: 'doc:open' })).toMatchObject({ type: 'value' })
  for (const key of ['doc:secret', 'doc:none', 'nowhere:1']) {
    expect(await client.request({ type: 'get', key })).toMatchObject({ code: 'unauthenticated' })
    expect((await ask(`${gateway.http}/v1/values/${key}`)).status).toBe(401)
  }
  expect(backend.asked.some(({ path }) => path === '/docs/secret' || path === '/docs/none')).toBe(false)
})

test('with a token it reads what that grants, and renews it without a message lost', async () => {
  const client = await connect(gateway.url)
  expect(await client.request({ type: 'auth', token: await signed() })).toMatchObject({ type: 'authed', user: 'ann' })
  await client.subscribe(['doc:mine', 'doc:open'])
  backend.on('/docs/mine', answers.json(documentOf(2)))
  await client.reaches('doc:mine', 2)
  expect(await client.request({ type: 'auth', token: await signed() })).toMatchObject({ type: 'authed' })
  backend.on('/docs/mine', answers.json(documentOf(3)))
  await client.reaches('doc:mine', 3)
  expect(await client.request({ type: 'get', key: 'doc:secret' })).toMatchObject({ code: 'forbidden' })

  expect(await client.request({ type: 'auth', token: await signed({ read: [] }) })).toMatchObject({ type: 'authed' })
  await eventually(() => client.of('doc:mine').error?.code === 'forbidden', 'the end of what is no longer granted')
})

test('a revoked user is cut off, and stays out', async () => {
  const client = await connect(gateway.url)
  const token = await signed({ sub: 'eve' })
  await client.request({ type: 'auth', token })
  const answer = await gateway.call('/v1/revoke', { sub: 'eve', before: Math.floor(Date.now() / 1_000) + 10 })
  expect(answer.json()).toMatchObject({ sub: 'eve', sessionsEnded: 1 })
  expect((await client.gone()).code).toBe(4003)
  expect(await upgrade(gateway.url, { authorization: `Bearer ${token}` })).toBe(401)
})

test('nginx passes tokens on, and no log has one', async () => {
  const token = await signed()
  const authorization = `Bearer ${token}`
  expect(await upgrade(proxy.url('/ws').replace('https', 'wss'), { authorization })).toBe(101)
  expect(await upgrade(proxy.url('/ws').replace('https', 'wss'), { authorization: `${authorization}x` })).toBe(401)
  const response = await request(proxy.url('/v1/values/doc:mine'), { headers: { authorization } })
  expect(response.status).toBe(200)
  expect(response.headers).toMatchObject({ vary: 'Authorization, Cookie' })
  expect(String(response.headers['cache-control'])).toMatch(/private|no-store/)
  expect((await request(proxy.url('/v1/values/doc:mine'))).status).toBe(401)

  await eventually(() => readFileSync(accessLog, 'utf8').includes('/v1/values/doc:mine'), 'the line of a request')
  const logs = readFileSync(accessLog, 'utf8') + proxy.log() + JSON.stringify(gateway.process.log())
  expect(logs).not.toContain(token)
  expect(logs).not.toContain(token.split('.')[2])
})

test('a token of keycast token is taken, its user under the prefix of the entry', async () => {
  const key = join(directory, 'private.pem')
  writeFileSync(key, privateKey.export({ type: 'pkcs8', format: 'pem' }))
  const printed = execFileSync(process.execPath, [
    'cli/keycast.js',
    'token',
    '--sub',
    'bob',
    '--read',
    'doc:mine',
    '--key',
    key,
  ])
  const client = await connect(gateway.url)
  expect(await client.request({ type: 'auth', token: printed.toString().trim() })).toMatchObject({ user: 'staff|bob' })
  expect(await client.request({ type: 'get', key: 'doc:mine' })).toMatchObject({ type: 'value' })
})

test('keycast explain says who may read a key, and which rule refuses', async () => {
  const env = { ...process.env, API_TOKENS: `test:admin:${API_TOKEN}` }
  const key = (args: string[], input?: string) => {
    const internal = ['--gateway', gateway.internal.replace('http://', '')]
    return execFileSync(process.execPath, ['cli/keycast.js', 'explain', ...args, ...internal], {
      env,
      input,
    }).toString()
  }
  const token = await signed()
  expect(key(['doc:mine', '--as', '-'], token)).toMatch(
    /doc:mine for "ann".*\n {2}read +yes +token keys\.read has doc:mine/,
  )
  expect(key(['doc:secret', '--as', '-'], `${token}x`)).toContain('the token is refused, bad_signature')
  expect(key(['doc:secret', '--as-anybody'])).toContain('anonymous.read has doc:open')
})

test.each([
  ['without an access section', null, 'no "access" in'],
  ['with an empty one', {}, 'access lets nobody in'],
])('%s nobody gets in, and start-up says what to write', async (_, access, note) => {
  const config = { KEYCAST_CONFIG: writeConfig(namespaces, access) }
  const { http, url, process: gateway } = await system.startGateway(config)
  const warned = gateway.log().find(({ level }) => level === 'warn')
  expect(warned?.msg).toContain(note)
  expect(warned?.msg).toContain('access: { anonymous: { read: ["doc:*"] } }')

  expect((await ask(`${http}/v1/values/doc:open`)).status).toBe(401)
  expect(await upgrade(url, { authorization: `Bearer ${await signed()}` })).toBe(401)
  const client = await connect(url)
  expect(await client.request({ type: 'get', key: 'doc:open' })).toMatchObject({ code: 'unauthenticated' })
  expect((await client.gone()).code).toBe(4001)
  await gateway.kill()
})
