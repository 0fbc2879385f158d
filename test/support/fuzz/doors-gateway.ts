// Doors: what clients and backends send to a gateway, up to its answers. The gateway is whole; its sockets, its fetcher
// and its journal are stand-ins.
import { createSecretKey } from 'node:crypto'
import { BYTES_SUBPROTOCOL, JSON_SUBPROTOCOL } from '@keycast/protocol'
import { noContainment, realWorld } from '@keycast/service'
import { createInternalServer } from '@keycast/service/internal-server'
import { createMetrics } from '@keycast/service/metrics'
import fc from 'fast-check'
import { readRule } from '../../../services/gateway/access/rule.ts'
import { addInternal } from '../../../services/gateway/doors/http/internal.ts'
import { createPublicApp } from '../../../services/gateway/doors/http/public.ts'
import { createNamespaces, createTestGateway } from '../../../services/gateway/test-support.ts'
import { atEnd } from '../cleanup.ts'
import { absurdJson, absurdText } from './absurd.ts'
import { absurdTokens, SECRET } from './doors-access.ts'
import type { AnyDoor } from './judge.ts'
import { requests } from './messages.ts'

const API_TOKEN = 'a-token-for-tests'

const namespaces = { conversation: { ids: { min: 1, max: 2 } }, own: { isPerUser: true } }
const rooms = { room: { members: 'named', names: 'unique' } } as const

type TestGateway = ReturnType<typeof createTestGateway>
type TestClient = Awaited<ReturnType<TestGateway['connect']>>

function createWorld() {
  const everything = readRule({ read: ['*:**'], publish: ['*:**'], join: ['*:**'] }, { user: false, strict: true }).rule
  const world = createTestGateway({
    namespaces,
    rooms,
    // An absurd message counts as ten: without this most would be refused unread.
    settings: { requestsPerSecondMax: 1_000_000, keysPerSessionMax: 100_000, subscriptionsMax: 1_000_000 },
    policy: {
      anonymous: everything,
      tokens: [
        {
          name: 'access.tokens.0',
          algorithms: ['HS256'],
          issuer: undefined,
          audience: 'keycast',
          prefix: '',
          jwks: undefined,
          type: undefined,
          viewer: [],
          keys: [createSecretKey(SECRET, 'utf8')],
        },
      ],
    },
  })

  /** A fetcher that answers what it was asked since the last call. */
  function answerAll() {
    const { calls, questions } = world.backbone
    for (const call of calls.splice(0)) {
      const [verb, key] = call.split(/ (.*)/s)
      if (verb === 'get') world.backbone.value(key, JSON.stringify({ title: 'Good morning', key }))
    }
    for (const { resolve } of questions.splice(0)) resolve({ verdict: 'admitted', message: '', ageMs: 0 })
  }
  return { ...world, answerAll }
}

const isAnswered = (received: { type?: string }[]) => received.some(({ type }) => type === 'pong')

/** Sessions of one subprotocol that send some messages each, most of them absurd, in an order that may be wrong. */
function sessions(subprotocol: string): AnyDoor {
  let world = createWorld()
  let bystander: TestClient | undefined
  const valid = fc.constantFrom(...requests).map(([, request]) => Buffer.from(JSON.stringify(request)))
  const absurd = absurdJson(requests).map(({ bytes }) => bytes)
  const message = fc.oneof({ weight: 1, arbitrary: valid }, { weight: 3, arbitrary: absurd })
  return {
    name: `a session of ${subprotocol}`,
    inputs: fc.array(fc.tuple(message, fc.nat(99)), { minLength: 1, maxLength: 12 }),
    async take(messages: [Buffer, number][]) {
      bystander ??= await world.connect(subprotocol)
      let client = await world.connect(subprotocol)
      for (const [bytes, n] of messages) {
        // One in a hundred is sent as binary, which no request is.
        client.connection.emit('message', bytes, n === 0)
        world.answerAll()
        if (n < 10) await client.received()
        if (client.connection.closed || client.connection.terminated) client = await world.connect(subprotocol)
      }
      await world.pass(1_000)
      await client.received()
      client.connection.terminate()
      if (!isAnswered(await bystander.ask({ type: 'ping' }))) {
        world = createWorld()
        bystander = undefined
        throw new Error('the bystander was not answered')
      }
    },
  }
}

const keyTexts = ['conversation:42', 'room:42', 'conversation:a/b', 'own:1']

/** A request before it goes to Fastify, whose own parser of HTTP is judged by bytes on a socket (fuzz-system). */
interface Request {
  method: string
  url: string
  headers: Record<string, string>
  body?: string
}

const paths = [
  ['GET', '/v1/values/'],
  ['HEAD', '/v1/values/'],
  ['GET', '/v1/messages/'],
  ['GET', '/v1/keys/'],
  ['GET', '/v1/rooms/'],
] as const

const queries = absurdText(['?epoch=q3kV7bTn&before=118&limit=20', '?after=0', '?limit=__proto__&after[]=1&after=2'])
const fields = fc.oneof(
  fc.tuple(
    fc.constantFrom('if-none-match', 'x-forwarded-for', 'cookie', 'accept', 'range', 'origin', 'host'),
    absurdText(['"abc", W/"d"', '192.0.2.1, 10.0.0.1', 'token=a; token=b']),
  ),
  absurdTokens.map(token => ['authorization', `Bearer ${token}`] as const),
)
/** As a parser of HTTP would let it through. */
const inHeader = (text: string) => text.replace(/[^\x20-\x7e]/g, '?').slice(0, 16_000)

const get: fc.Arbitrary<Request> = fc
  .tuple(fc.constantFrom(...paths), absurdText(keyTexts), fc.boolean(), queries, fields, fc.nat(3))
  .map(([[method, path], key, isEncoded, query, [name, value], n]) => ({
    method,
    url: path + inHeader(isEncoded ? encodeURIComponent(key.toWellFormed()) : key) + (n === 0 ? inHeader(query) : ''),
    headers: { [name]: inHeader(value) },
  }))

const posts: [path: string, body: unknown][] = [
  ['/v1/refresh', { keys: ['conversation:42', 'conversation:1'] }],
  ['/v1/publish', { key: 'room:42', from: 'ann', messageId: 'q2VbR0cJmZC0yqk3', data: { text: 'Good morning' } }],
  ['/v1/values', { key: 'conversation:42', value: { n: 1 }, contentType: 'application/json', order: 7 }],
  ['/v1/values', { key: 'conversation:42', delete: true }],
  ['/v1/revoke', { sub: 'ann', before: 1_800_000_000 }],
  ['/v1/revoke', { jti: 'j' }],
  ['/v1/access', { key: 'conversation:42', sub: 'ann', keys: { read: ['conversation:*'] } }],
  ['/v1/access', { key: 'conversation:42', token: 'a.b.c' }],
]
const post: fc.Arbitrary<Request> = fc
  .tuple(absurdJson(posts), fc.constantFrom('application/json', 'application/json; charset=x', 'text/plain', ''))
  .map(([{ name, text }, type]) => ({
    method: 'POST',
    url: name,
    headers: { authorization: `Bearer ${API_TOKEN}`, 'content-type': type },
    body: text,
  }))

export async function gatewayDoors(): Promise<AnyDoor[]> {
  const world = createWorld()
  const { gateway } = world
  await gateway.start()
  atEnd(() => gateway.stop())
  const open = createPublicApp({
    ...realWorld,
    ...gateway,
    containment: noContainment,
    log: { warn() {} },
    origins: '*',
    connectionsMax: 100,
    unreadBytesMax: 2 ** 20,
  })
  const internal = createInternalServer({
    host: '127.0.0.1',
    port: 0,
    metrics: createMetrics({ service: 'fuzz' }),
    ready: () => undefined,
    containment: noContainment,
  })
  addInternal(internal.app, {
    ...gateway,
    namespaces: createNamespaces(namespaces, rooms).values,
    apiTokens: [{ name: 'fuzz', scopes: ['admin'], token: API_TOKEN }],
    audit() {},
    wallNow: Date.now,
    turn: realWorld.turn,
  })

  const http = (name: string, app: typeof open, inputs: fc.Arbitrary<Request>): AnyDoor => ({
    name,
    inputs,
    async take({ method, url, headers, body }: Request) {
      let response: { statusCode: number; body: string } | undefined
      const under = app.inject({ method: method as 'GET', url, headers, payload: body }).then(given => {
        response = given
      })
      while (!response) {
        await Promise.race([under, world.turn()])
        world.answerAll()
      }
      if (response.statusCode === 500) throw new Error(`answered with 500: ${response.body}`)
      if (response.statusCode >= 400 && response.body.length > ERROR_BYTES_MAX) {
        throw new Error(`an error of ${response.body.length} bytes`)
      }
    },
  })
  return [
    sessions(JSON_SUBPROTOCOL),
    sessions(BYTES_SUBPROTOCOL),
    http('a public request', open, get),
    http('an internal request', internal.app as unknown as typeof open, fc.oneof(post, get)),
  ]
}

/** Errors of a call to refresh name ten keys. */
const ERROR_BYTES_MAX = 8_192
