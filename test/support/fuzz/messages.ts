// Valid messages of every kind: those of the WebSocket as the protocol's samples and its document have them; those of the
// backbone and of workers typed so that `tsc` demands a sample of each new kind.
import { readFileSync } from 'node:fs'
import type {
  Answer,
  Decision,
  DeleteCommand,
  Deleted,
  PublishCommand,
  Published,
  RoomAnswer,
  Rooms,
  Taken,
} from '@keycast/backbone'
import { roomsCodec } from '@keycast/backbone'
import type { Problem } from '@keycast/protocol'
import { parse } from 'yaml'
import type { Codec, Service } from '../../../packages/backbone/wire/codec.ts'
import type { CommandResult, FromHub, FromLink, Saying, Want } from '../../../packages/backbone/wire/envelope.ts'
import { encodeAnswers, encodeMessage, encodeRequest } from '../../../packages/backbone/wire/envelope.ts'
import type { AuthorizeCommand, PutCommand, Values } from '../../../packages/backbone/wire/values-codec.ts'
import { valuesCodec } from '../../../packages/backbone/wire/values-codec.ts'
import * as samples from '../../../packages/protocol/samples.fixture.ts'
import type { Lease, Result } from '../../../services/fetcher/worker-messages.ts'
import { encodeWork } from '../../../services/fetcher/worker-messages.ts'
import type { Named } from './absurd.ts'

/** One sample of each kind, whole. */
type EachOf<U extends Record<F, string>, F extends keyof U> = { [K in U[F]]: Required<Extract<U, Record<F, K>>> }

/** The messages of docs/asyncapi.yaml, which a test holds to the code. */
export const documented: Record<string, { examples: { payload: unknown; headers?: unknown }[] }> = parse(
  readFileSync(new URL('../../../docs/asyncapi.yaml', import.meta.url), 'utf8'),
).components.messages

const withExamples = (byType: object): Named<unknown>[] =>
  Object.entries(byType).flatMap(([type, sample]): Named<unknown>[] => [
    [type, sample],
    ...documented[type].examples.map(({ payload }, n): Named<unknown> => [`${type} ${n + 1} as documented`, payload]),
  ])

/** Those that clients send. */
export const requests = withExamples(samples.fromClients)

/** Those that gateways send as text. */
export const serverMessages = withExamples({
  ...samples.fromGateways,
  value: samples.value,
  message: samples.message,
  historyPart: samples.historyAnswer,
})

/** Those that gateways send as bytes: a line of JSON, and content. */
export const serverBytes = ['valueBytes', 'deltaBytes'].flatMap(type =>
  documented[type].examples.map(({ payload, headers }, n): Named<Buffer> => {
    return [`${type} ${n + 1} as documented`, Buffer.from(`${JSON.stringify(headers)}\n${payload}`)]
  }),
)

/** Stand for the id of a link and the number of a message in it: a peer puts its own in their place. */
export const LINK = 'aGVsbG8gdGhlcmU'
export const NUMBER = 424_242

const credentials = { authorization: 'Bearer a.b.c', expiresAt: 1_790_000_000_000 }
const body = Buffer.from('{"title":"Good morning"}')

type SayingsOf<S extends Service> = { [T in Saying<S>['type']]: (Saying<S> & { type: T })[] }

/** What gateways say to a node: requests, and beats on the other socket. */
function toNode<S extends Service>({ wire }: Codec<S>, sayings: SayingsOf<S>) {
  const beats: { [T in Exclude<FromLink['type'], 'incompatible'>]: object } = {
    beat: { type: 'beat', link: LINK, wire, number: NUMBER, taken: 0 },
    taken: { type: 'taken', link: LINK, taken: 100 },
    bye: { type: 'bye', link: LINK },
  }
  return {
    requests: (Object.values(sayings).flat() as Saying<S>[]).map(
      (saying, n): Named<Buffer[]> => [`${saying.type} ${n}`, encodeRequest(LINK, NUMBER, saying)],
    ),
    beats: Object.entries(beats).map(([name, beat]): Named<Buffer[]> => [name, [encodeMessage(beat)]]),
  }
}

const wanted: Required<Want<Values>> = {
  key: 'conversation:42',
  position: {
    version: samples.version,
    ageMs: 5,
    order: 1_795_000_000_000,
    rank: 7,
    plan: { inMs: 10, maxAgeMs: 1_000, askedAgoMs: 20 },
  },
  payload: { quiet: true, ...credentials },
  payer: 'n3kX0a1b2c3d.aXXXXXXXXXXX.uXXXXXXXXXXX',
}

const authorize: Required<AuthorizeCommand> = {
  type: 'authorize',
  key: 'conversation:42 anonymous',
  maxAgeMs: 1_000,
  ...credentials,
}

const put: Required<PutCommand> = {
  type: 'put',
  key: 'conversation:42',
  content: { version: samples.version, contentType: 'text/plain', format: 'text', body: Buffer.from('hello') },
  rank: 7,
  isRepeated: false,
}

const encodePut = (command: PutCommand) => valuesCodec.encodeCommand?.(command) ?? { head: command, parts: [] }

export const toFetcher = toNode<Values>(valuesCodec, {
  watch: [
    {
      type: 'watch',
      wants: [wanted, { ...wanted, key: 'own:1 anonymous' }, { key: 'conversation:1', position: undefined }],
    },
  ],
  get: [{ type: 'get', wants: [wanted, { key: 'conversation:1', position: undefined }] }],
  unwatch: [{ type: 'unwatch', keys: ['conversation:42'] }],
  cancelGet: [{ type: 'cancelGet', keys: ['conversation:42'] }],
  notice: [{ type: 'notice', notice: { type: 'refresh', keys: ['conversation:42'] } }],
  command: [
    { type: 'command', commands: [{ id: 'c1', encoded: { head: authorize, parts: [] }, leftMs: 5_000 }] },
    {
      type: 'command',
      commands: [
        { id: 'c2', encoded: encodePut(put), leftMs: 5_000 },
        { id: 'c3', encoded: encodePut({ ...put, content: undefined }), leftMs: 5_000 },
      ],
    },
  ],
})

const join = { user: 'ann', name: 'Ann', claim: 'mB2nq8xKQ3eV7bTnHw1cXz', leaving: undefined }

const publish: Required<Omit<PublishCommand, 'data'>> = {
  type: 'publish',
  room: 'room:42',
  messageId: 'q2VbR0cJmZC0yqk3',
  from: 'ann',
}
const deletions: DeleteCommand[] = [
  { type: 'delete', room: 'room:42', seqs: [1, 2] },
  { type: 'delete', room: 'room:42' },
  { type: 'delete', user: 'ann' },
]
const published = (id: string) => ({
  id,
  leftMs: 5_000,
  encoded: { head: { ...publish, messageId: `${publish.messageId}${id}` }, parts: [body] },
})

export const toJournal = toNode<Rooms>(roomsCodec, {
  watch: [
    {
      type: 'watch',
      wants: [
        { key: 'room:42', position: { epoch: 'e', seq: 7 } },
        { key: 'room:42 join dGFi', position: undefined, payload: join },
        { key: 'room:42 join dGFj', position: undefined, payload: { ...join, leaving: 'later' } },
        { key: 'room:42 members', position: { epoch: 'e', seq: 7 } },
        { key: '=price:7', position: { epoch: 'e', seq: 7 } },
      ],
    },
  ],
  get: [
    {
      type: 'get',
      wants: ['room:42 - before 900 50', 'room:42 e after 0 50', 'room:42 members', '=price:7'].map(key => ({
        key,
        position: undefined,
      })),
    },
  ],
  unwatch: [{ type: 'unwatch', keys: ['room:42', 'room:42 join dGFi', 'room:42 members', '=price:7'] }],
  cancelGet: [{ type: 'cancelGet', keys: ['room:42 - before 900 50', 'room:42 members', '=price:7'] }],
  notice: [],
  command: [
    { type: 'command', commands: [published('c1')] },
    { type: 'command', commands: [published('c2'), published('c3')] },
    { type: 'command', commands: [{ id: 'p1', leftMs: 5_000, encoded: encodePut({ ...put, key: '=price:7' }) }] },
    {
      type: 'command',
      commands: deletions.map((head, n) => ({ id: `d${n}`, leftMs: 5_000, encoded: { head, parts: [] } })),
    },
  ],
})

type HubBeats = { [T in Exclude<FromHub<Values>['type'], 'incompatible' | 'answers'>]: object }

/** What a node says to gateways. */
function fromNode<S extends Service>(
  codec: Codec<S>,
  answers: S['Answer'][],
  results: S['Result'][],
  heads: S['Heads'],
) {
  const beats: HubBeats = {
    beat: { type: 'beat', link: LINK, wire: codec.wire, reached: 1, answered: 0, heads },
    resync: { type: 'resync', link: LINK },
    bye: { type: 'bye', link: LINK },
  }
  const envelope = { link: LINK, number: NUMBER, reached: 1 }
  const ends: CommandResult<S>[] = results.map((result, n) => ({
    id: `c${n}`,
    result: codec.encodeResult ? codec.encodeResult(result) : result,
  }))
  return [
    ...Object.entries(beats).map(([name, beat]): Named<Buffer[]> => [name, [encodeMessage(beat)]]),
    ...answers.map((answer): Named<Buffer[]> => {
      return [`answer ${(answer as { type?: string }).type}`, encodeAnswers(envelope, [codec.encodeAnswer(answer)], [])]
    }),
    ['results', encodeAnswers(envelope, [], [...ends, { id: 'c9', isRefused: true }])] as Named<Buffer[]>,
  ]
}

const key = 'conversation:42'
const { version } = samples
const next = { inMs: 5, everyMs: 60_000 }
const delta = { from: 'u', bytes: Buffer.from('delta') }
const held = { order: 1_795_000_000_000, rank: 7, ageMs: 3, maxAgeMs: 1_000, store: true }

const valueAnswers: EachOf<Answer, 'type'> = {
  value: {
    type: 'value',
    key,
    version,
    ...held,
    contentType: 'application/json',
    format: 'json',
    body,
    delta,
    delayMs: 7,
    next,
  },
  current: { type: 'current', key, version, ...held, next },
  kept: { type: 'kept', key, version, next },
  failed: {
    type: 'failed',
    key,
    code: 'forbidden',
    message: 'no',
    ageMs: 1,
    maxAgeMs: 1_000,
    retryAfterMs: 1_000,
    tokenDigest: 'd',
    onlyFor: 'a0123456789-.u0123456789_',
    payer: wanted.payer,
  },
}
const takings: Taken[] = [
  { outcome: 'taken' },
  { outcome: 'older', rank: 9 },
  { code: 'capacity', message: 'full', retryAfterMs: 5_000 },
]
const decision: Required<Decision> = { verdict: 'admitted', message: '', ageMs: 5, retryAfterMs: 1_000 }

export const fromFetcher = fromNode<Values>(valuesCodec, Object.values(valueAnswers), [decision, ...takings], {
  lagsMs: { conversation: 5 },
})

const room = { key: 'room:42', epoch: 'e' }
const member = { id: 'a', user: 'ann', name: 'Ann', tabs: 1 }
const kept = { at: 1_790_000_000_000, from: 'ann', messageId: publish.messageId, data: body }
const messages = [
  { ...kept, seq: 8 },
  { ...kept, seq: 9, messageId: undefined },
  { ...kept, seq: 10, deleted: true as const },
  { ...kept, seq: 11, deletes: [[1, 3] as [number, number], [10, 10] as [number, number]] },
]

const roomAnswers: EachOf<RoomAnswer, 'type'> = {
  head: { type: 'head', ...room, seq: 7, oldest: 1, after: 7 },
  gap: { type: 'gap', ...room, seq: 7, oldest: 3, reason: 'trimmed' },
  messages: { type: 'messages', ...room, oldest: 3, messages },
  history: {
    type: 'history',
    ...room,
    key: 'room:42 - before 900 50',
    oldest: 1,
    newest: 9,
    messages,
    more: true,
    truncated: true,
  },
  failed: {
    type: 'failed',
    key: room.key,
    code: 'journal_unavailable',
    message: 'not now',
    retryAfterMs: 1_000,
    reason: 'x',
  },
  joined: { type: 'joined', key: 'room:42 join dGFi', name: 'Ann' },
  left: { type: 'left', key: 'room:42 join dGFi' },
  members: { type: 'members', ...room, key: 'room:42 members', rev: 7, count: 1, members: [member] },
  pushed: { type: 'pushed', ...room, key: '=price:7', seq: 8, order: 1_790_000_000_000, rank: 9, content: put.content },
  unchanged: { type: 'unchanged', ...room, key: '=price:7', seq: 8 },
  presence: { type: 'presence', ...room, key: 'room:42 members', rev: 8, count: 1, joined: [member], left: [member] },
}
const outcomes: (Published | Deleted | Taken | Problem)[] = [
  ...takings,
  { epoch: 'e', seq: 8, at: 1_790_000_000_000, duplicate: false },
  { messages: 3 },
  { code: 'log_full', message: 'full', retryAfterMs: 1_000 },
]

export const fromJournal = fromNode<Rooms>(roomsCodec, Object.values(roomAnswers), outcomes, [{ ...room, seq: 7 }])

export const lease: Required<Lease> = {
  type: 'lease',
  lease: 1,
  key,
  url: 'http://127.0.0.1:1/conversations/42',
  headers: { authorization: 'Bearer secret' },
  timeoutMs: 2_000,
  bytesMax: 100_000,
  delta: true,
  etag: '"e"',
  lastModified: 'Mon, 01 Jan 2024 00:00:00 GMT',
  version,
  redirects: true,
  lacksToken: true,
  waitSeconds: 20,
  statusOf: 'HEAD',
  hasBody: true,
  batch: { items: '/items', id: '/id', keys: [{ key, id: '42', version, delta: true }] },
}

/** What a primary sends its workers. */
export const leases: Named<Buffer[]>[] = [
  [
    'leases',
    encodeWork([
      { message: lease, body: Buffer.from('{}') },
      { message: { ...lease, lease: 2 }, body: Buffer.from('{}') },
    ]),
  ],
]

const freshness = { status: 200, store: true, maxAgeMs: 1_000, etag: '"e"', lastModified: lease.lastModified }
const content = { version, contentType: 'application/json', format: 'json' } as const

const results: EachOf<Result, 'kind'> = {
  value: { kind: 'value', ...content, ...freshness, deltaFrom: 'u', deltaSkipped: 'gain', waited: true },
  current: { kind: 'current', ...freshness, waited: true },
  failed: {
    kind: 'failed',
    code: 'backend_error',
    message: 'no',
    status: 500,
    retryAfterMs: 5,
    maxAgeMs: 5,
    traceparent: 't',
  },
  status: { kind: 'status', status: 200, retryAfterMs: 5, hasBody: true },
}

/** What workers send their primary. */
export const workerMessages: Named<Buffer[]>[] = [
  ['credit', encodeWork([{ message: { type: 'credit', worker: 1, credit: 8, cpuMs: 5, residentBytes: 9 } }])],
  ...Object.values(results).map((result): Named<Buffer[]> => {
    const parts = { value: { body, delta: delta.bytes }, status: { body }, current: {}, failed: {} }[result.kind]
    return [result.kind, encodeWork([{ message: { type: 'result', lease: 1, ...result }, ...parts }])]
  }),
]
