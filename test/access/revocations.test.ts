// A user who is signed out is signed out everywhere: at every gateway, at one that starts later, and after the journal that
// keeps the list was killed.
import { randomBytes } from 'node:crypto'
import { SignJWT } from 'jose'
import { answers, documentOf, startBackend } from '../support/backend.ts'
import { connect } from '../support/client.ts'
import { eventually } from '../support/deadline.ts'
import { ask } from '../support/http.ts'
import { startJournal } from '../support/journal.ts'
import { type NamespaceSettings, writeConfig } from '../support/keycast-yaml.ts'
import { type Gateway, PATIENCE, startSystem } from '../support/system.ts'

const JWT_SECRET = randomBytes(48).toString('base64')
const access = { tokens: [{ secret: `\${JWT_SECRET}`, algorithms: ['HS256'] }] }

const backend = await startBackend()
backend.on('/docs/1', answers.json(documentOf(1)))
const doc = { url: `${backend.origin}/docs/{id}`, timeout: PATIENCE }
const room: NamespaceSettings = { source: 'journal' }

const { startGateway } = await startSystem({
  namespaces: { doc, room },
  access,
  gateways: 0,
  env: { JWT_SECRET },
})
const journal = await startJournal({ config: writeConfig({ room }) })
const startTwo = (env: Record<string, string>) => Promise.all([1, 2].map(() => startGateway(env)))
const withJournal = { JOURNAL_NODES: journal.node }
const [one, other] = await startTwo(withJournal)

const signed = (sub: string) =>
  new SignJWT({ keys: { read: ['doc:*'] } })
    .setProtectedHeader({ alg: 'HS256' })
    .setSubject(sub)
    .setIssuedAt()
    .setExpirationTime('1h')
    .sign(Buffer.from(JWT_SECRET))

const revoke = ({ call }: Gateway, sub: string) =>
  call('/v1/revoke', { sub, before: Math.floor(Date.now() / 1_000) + 10 })

const statusAt = async ({ http }: { http: string }, token: string) =>
  (await ask(`${http}/v1/values/doc:1`, { headers: { authorization: `Bearer ${token}` } })).status

test('a revocation reaches every gateway, and one that starts after the journal was killed', async () => {
  const [token, ofEve] = await Promise.all([signed('ann'), signed('eve')])
  const client = await connect(other.url)
  expect(await client.request({ type: 'auth', token })).toMatchObject({ type: 'authed' })
  expect(await statusAt(one, token)).toBe(200)

  const answer = await revoke(one, 'ann')
  expect(answer.json()).toMatchObject({ sub: 'ann', sessionsEnded: 0, reach: 'every gateway' })
  expect((await client.gone()).code).toBe(4003)
  await eventually(async () => (await statusAt(other, token)) === 401, 'the refusal at the other gateway')
  expect(await statusAt(one, token)).toBe(401)

  await journal.process().kill()
  const alone = await revoke(one, 'eve')
  expect(alone.status).toBe(503)
  expect(alone.json()).toMatchObject({ code: 'journal_unavailable', retryAfterMs: expect.any(Number) })
  await journal.restart()
  await eventually(async () => (await revoke(one, 'eve')).status === 200, 'the call that is made again')

  const later = await startGateway(withJournal)
  expect(await statusAt(later, token)).toBe(401)
  expect(await statusAt(later, ofEve)).toBe(401)
  expect(await statusAt(later, await signed('bob'))).toBe(200)
})

test('an address whose sessions an operator closes is closed at every gateway, and the call is recorded once', async () => {
  const [meant, bystander] = await Promise.all(['192.0.2.7', '192.0.2.8'].map(from => connect(other.url, { from })))
  const answer = await one.call('/v1/close', { address: '192.0.2.7' })
  expect(answer.json()).toEqual({ address: '192.0.2.7', sessionsEnded: 0, reach: 'every gateway' })
  expect((await meant.gone()).code).toBe(4007)
  expect(await bystander.ping()).toMatchObject({ type: 'pong' })
  const recorded = [one, other].map(({ process }) => process.log().filter(({ path }) => path === '/v1/close').length)
  expect(recorded).toEqual([1, 0])
})

test('without a journal it holds at the gateway that was called, and the answer says so', async () => {
  const [one, other] = await startTwo({ KEYCAST_CONFIG: writeConfig({ doc }, access) })
  const token = await signed('ann')
  expect((await revoke(one, 'ann')).json()).toMatchObject({ reach: 'this gateway: call each one' })
  expect(await statusAt(one, token)).toBe(401)
  expect(await statusAt(other, token)).toBe(200)
})
