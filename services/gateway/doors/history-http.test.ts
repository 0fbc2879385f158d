import type { Policy } from '../access/policy-file.ts'
import { readRule } from '../access/rule.ts'
import { issuers, sign } from '../access/test-tokens.ts'
import { createTestGateway } from '../test-support.ts'
import { closeServed, createTestApp, serve } from './http/test-support.ts'

afterEach(closeServed)

const key = 'room:1'

async function setUp(policy?: Partial<Policy>) {
  const { gateway, journal } = createTestGateway({ rooms: { room: {} }, policy })
  await gateway.start()
  const app = createTestApp(gateway)
  app.addHook('onClose', () => gateway.stop())
  for (const data of ['1', '{"n": 2.0}', '3', '4', '5', '6']) {
    journal.append({ room: key, messageId: undefined, from: 'ann', data: Buffer.from(data) })
  }
  return { gateway, journal, get: await serve(app) }
}

test('the newest messages of a room, as they were published', async () => {
  const { get, gateway } = await setUp()
  const response = await get(`/v1/messages/${key}?limit=2`)
  expect(response.status).toBe(200)
  expect(response.headers).toMatchObject({
    'content-type': 'application/json; charset=utf-8',
    'cache-control': 'no-store',
    'content-security-policy': "default-src 'none'; sandbox",
  })
  expect(response.json()).toMatchObject({ key, epoch: 'E1', oldest: 1, more: true, messages: [{}, {}] })
  expect(response.json()).not.toHaveProperty('type')
  const whole = await get(`/v1/messages/${key}?after=1&epoch=E1&limit=2`)
  expect(whole.body.toString()).toContain('"data":{"n": 2.0}}')
  expect(whole.json().messages.map(({ seq }: any) => seq)).toEqual([2, 3])
  expect(gateway.counts.httpMessages['200']).toBe(2)
})

test('messages before a seq', async () => {
  const { get } = await setUp()
  const { messages, more } = (await get(`/v1/messages/${key}?before=3`)).json()
  expect(messages.map(({ seq }: any) => seq)).toEqual([1, 2])
  expect(more).toBe(false)
})

test.each([
  ['a bound that is no number', '?after=x', 400, 'bad_message'],
  ['two bounds', '?after=1&before=2', 400, 'bad_message'],
  ['a limit of nothing', '?limit=0', 400, 'bad_message'],
  ['another epoch', '?after=0&epoch=E9', 410, 'other_epoch'],
])('%s is refused', async (_, query, status, code) => {
  const { get } = await setUp()
  const response = await get(`/v1/messages/${key}${query}`)
  expect([response.status, response.json().code]).toEqual([status, code])
})

test.each([
  ['a value', 'tick:1', 404, 'unknown_namespace'],
  ['no namespace', 'nowhere:1', 404, 'unknown_namespace'],
  ['no key', 'room', 400, 'bad_key'],
])('the messages of what is %s are refused', async (_, other, status, code) => {
  const { get } = await setUp()
  const response = await get(`/v1/messages/${other}`)
  expect([response.status, response.json().code]).toEqual([status, code])
})

test('without the right to read nothing of a room is said', async () => {
  const nothing = readRule({}, { user: false, strict: true }).rule
  const { get } = await setUp({ anonymous: nothing })
  expect((await get(`/v1/messages/${key}`)).status).toBe(401)
})

test('a request whose token is revoked while it waits for the journal is sent no message', async () => {
  const everyone = readRule({ read: ['room:*'] }, { user: true, strict: true }).rule
  const { get, gateway } = await setUp({ tokens: issuers, everyone })
  const headers = { authorization: `Bearer ${await sign({ sub: 'ann', nowMs: Date.now() })}` }
  expect((await get(`/v1/messages/${key}`, { headers })).status).toBe(200)
  const { read } = gateway.histories
  jest.spyOn(gateway.histories, 'read').mockImplementation((...asked) => {
    gateway.revoke({ sub: 'ann', before: Date.now() / 1_000 + 60 })
    return read(...asked)
  })
  const response = await get(`/v1/messages/${key}`, { headers })
  expect([response.status, response.json().code]).toEqual([401, 'token_refused'])
})

test('while the journal is away the answer is 503', async () => {
  const { get, journal } = await setUp()
  journal.setAway(true)
  const response = await get(`/v1/messages/${key}`)
  expect([response.status, response.headers['retry-after']]).toEqual([503, '1'])
})
