import type { Ruling } from '@keycast/backbone'
import { createContainment } from '@keycast/service'
import { createRights } from '../access/rights.ts'
import { readRule } from '../access/rule.ts'
import { createCounts } from '../counts.ts'
import { createTestGate } from '../gate/test-gate.ts'
import { createFakeBackbone, createNamespaces } from '../test-support.ts'
import { takeAnswers } from '../topics/rooms/held-answers.ts'
import { createPublishes } from './publish.ts'
import { createPublishRulings } from './publish-rulings.ts'

const key = 'room:1'

/** The rights of Ann. */
const rightsOf = (publish: string[]) => {
  const rule = (written: object) => readRule(written, { user: false, strict: true }).rule
  return createRights({ anonymous: rule({}), everyone: rule({ publish }) }).of('ann')
}

const ask = {
  urlFor: () => 'http://h/',
  origin: 'http://h',
  pattern: 'http://h/{id}',
  timeoutMs: 500,
  otherwise: 'refuse',
  headers: {},
} as const

function setUp({
  publishesPendingBytesMax = 4 * 513,
  otherwise = 'refuse',
}: {
  publishesPendingBytesMax?: number
  otherwise?: 'refuse' | 'take'
} = {}) {
  const under: ((result: any) => void)[] = []
  const said: any[] = []
  const ended: string[] = []
  const outbox = {
    send: (_: unknown, message: unknown) => void said.push(message),
    close: (_: unknown, end: string) => void ended.push(end),
  }
  const asked: any[] = []
  const counts = createCounts()
  const namespaces = createNamespaces(
    {},
    { room: { bytesMax: 10 }, news: { publish: 'server' }, asked: { bytesMax: 10, ask: { ...ask, otherwise } } },
  )
  const gate = createTestGate({ namespaces: namespaces.all, counts })
  const fetcher = createFakeBackbone()
  const { messages } = fetcher
  const publishes = createPublishes({
    namespaces: namespaces.journal,
    gate,
    backbone: {
      publish(publish, options, done) {
        asked.push({ ...publish, ...options, data: String(publish.data) })
        under.push(done)
      },
    },
    ruleOn: createPublishRulings({ backbone: fetcher.connect({} as never), counts }),
    outbox,
    containment: createContainment({ ends: ['session'], log: { error() {}, fatal() {} }, now: () => 0 }),
    publishMs: 2_000,
    publishesPendingBytesMax,
    counts,
    now: () => 0,
  })
  const session = {
    subscriptions: new Map(),
    rights: rightsOf(['room:*', 'news:*', 'asked:*']),
    ended: false,
    answersHeld: 0,
  } as any
  const publish = (id: number, data = '1', room: string = key) => {
    publishes.fromSession(session, { type: 'publish', id, key: room, messageId: 'a-messageId-of-mine', data })
  }
  const keep = (index: number, rest?: object) => {
    under[index]({ epoch: 'E', seq: index + 1, at: 5, duplicate: false, ...rest })
  }
  const subscribe = (cursor: number) => {
    const subscription = {
      session,
      topic: { kind: { name: 'room' }, epoch: 'E' },
      cursor,
      placing: undefined,
      answers: undefined,
    }
    session.subscriptions.set(key, subscription)
    return subscription as any
  }
  /** What a backend says, of the message that it was asked about nth. */
  const rule = async (index: number, ruling: Ruling | undefined) => {
    messages[index].resolve(ruling)
    await new Promise(setImmediate)
  }
  return { publishes, publish, keep, subscribe, session, said, asked, counts, ended, outbox, messages, rule }
}

test('a publish is from the user of the session, with its data as it was written', () => {
  const { publish, keep, asked, said, counts } = setUp()
  publish(7, '{"n":1.0}')
  expect(asked).toEqual([
    { room: key, messageId: 'a-messageId-of-mine', from: 'ann', data: '{"n":1.0}', deadlineMs: 2_000 },
  ])
  keep(0)
  expect(said).toEqual([{ type: 'published', id: 7, key, epoch: 'E', seq: 1, at: 5 }])
  expect(counts.publishes.kept).toBe(1)
})

test('a session that has a user meanwhile has its publishes to a room in one order: those under way keep their payer', () => {
  const { publish, keep, asked, session } = setUp()
  session.payer = 'g.A1'
  publish(1)
  session.payer = 'a1.u1'
  publish(2)
  publish(3, '1', 'room:2')
  keep(0)
  keep(1)
  publish(4)
  expect(asked.map(({ payer }) => payer)).toEqual(['g.A1', 'g.A1', 'a1.u1', 'a1.u1'])
})

test('answers come in the order sent, those of what was refused at once too', () => {
  const { publish, publishes, keep, said } = setUp()
  publish(1)
  publish(2)
  publish(3, '"too long for it"')
  publish(4, '1', 'room:2')
  keep(1)
  expect(said).toEqual([])
  keep(2)
  expect(said).toMatchObject([{ id: 4, key: 'room:2' }])
  keep(0, { duplicate: true })
  expect(said.slice(1)).toMatchObject([
    { type: 'published', id: 1, duplicate: true },
    { type: 'published', id: 2 },
    { type: 'error', id: 3, code: 'too_large' },
  ])
  expect(publishes.underWay()).toBe(0)
})

test('a session whose data is small has more publishes under way than one whose data is large', () => {
  const { publish, keep, said } = setUp({ publishesPendingBytesMax: 514 })
  publish(1, '12345')
  publish(2)
  expect(said).toMatchObject([{ id: 2, code: 'too_many_waiting' }])
  keep(0)
  publish(3)
  publish(4)
  publish(5)
  expect(said.slice(1)).toMatchObject([{ id: 1 }, { id: 5, code: 'too_many_waiting' }])
})

test('one that has too many under way is refused at once', () => {
  const { publish, keep, said, counts } = setUp({ publishesPendingBytesMax: 2 * 513 })
  for (const id of [1, 2, 3]) publish(id)
  publish(4, '1', 'room:2')
  const refused = { code: 'too_many_waiting', retryAfterMs: 100 }
  expect(said).toMatchObject([
    { id: 3, ...refused },
    { id: 4, ...refused },
  ])
  keep(0)
  keep(1)
  expect(said.slice(2)).toMatchObject([{ id: 1 }, { id: 2 }])
  expect(counts.publishes).toMatchObject({ kept: 2, too_many_waiting: 2 })
})

test('a subscribed publisher is sent its message first: until then its answer is held, and those after it', () => {
  const { publish, keep, subscribe, said } = setUp()
  const subscription = subscribe(0)
  for (const id of [1, 2, 3]) publish(id)
  keep(0)
  keep(1, { code: 'log_full', message: 'm', retryAfterMs: 1_000 })
  keep(2, { seq: 2 })
  expect(said).toEqual([])
  expect(subscription.answers).toMatchObject([
    { seq: 1, answer: { type: 'published', id: 1 } },
    { seq: 1, answer: { type: 'error', id: 2, code: 'log_full', subscribed: true } },
    { seq: 2, answer: { type: 'published', id: 3 } },
  ])
})

test('a publish whose answer is held is still under way: a client that does not read has so many, of all kinds', () => {
  const { publish, publishes, keep, subscribe, session, said } = setUp({ publishesPendingBytesMax: 3 * 512 })
  const subscription = subscribe(0)
  publish(1)
  keep(0)
  publish(2, '"too long for it"')
  publish(3)
  keep(1, { seq: 2 })
  expect(said).toEqual([])
  expect(session.answersHeld).toBe(3)
  expect(publishes.underWay()).toBe(0)
  const { answers } = subscription
  for (let id = 4; id < 1_000; id++) publish(id)
  expect(said).toHaveLength(996)
  expect(new Set(said.map(({ code }) => code))).toEqual(new Set(['too_many_waiting']))
  expect(subscription.answers).toBe(answers)
  expect(takeAnswers(subscription, 1)).toMatchObject([{ id: 1 }, { id: 2 }])
  expect(session.answersHeld).toBe(1)
  publish(1_000)
  keep(2, { seq: 3 })
  expect(takeAnswers(subscription)).toMatchObject([{ id: 3 }, { id: 1_000 }])
  expect(session.answersHeld).toBe(0)
})

test('a thousand answers are held in one list, which no answer copies', () => {
  const { publish, keep, subscribe, session } = setUp({ publishesPendingBytesMax: 2 ** 20 })
  const subscription = subscribe(0)
  publish(0)
  keep(0)
  const { answers } = subscription
  for (let id = 1; id < 1_000; id++) {
    publish(id)
    keep(id)
  }
  expect(subscription.answers).toBe(answers)
  expect(session.answersHeld).toBe(1_000)
})

test.each([
  ['the message was sent already', { cursor: 1 }],
  ['the stream has not begun', { placing: {} }],
  ['the room has another history by now', { topic: { kind: { name: 'room' }, epoch: 'F' } }],
])('where %s the answer is not held', (_, given) => {
  const { publish, keep, subscribe, said } = setUp()
  Object.assign(subscribe(0), given)
  publish(1)
  keep(0)
  expect(said).toMatchObject([{ type: 'published', id: 1 }])
})

test('to a session that ended nothing is said', () => {
  const { publish, keep, session, said, publishes } = setUp()
  publish(1)
  session.ended = true
  keep(0)
  expect(said).toEqual([])
  expect(publishes.underWay()).toBe(0)
})

test('a backend publishes where clients may not, for whom it names', async () => {
  const { publishes, publish, keep, said, asked } = setUp()
  publish(1, '1', 'news:1')
  expect(said).toMatchObject([{ code: 'forbidden', message: 'only the server publishes here' }])
  const outcome = publishes.fromBackend({ key: 'news:1', from: 'editor', data: '1' })
  await undefined
  expect(asked).toMatchObject([{ room: 'news:1', from: 'editor', messageId: undefined }])
  keep(0)
  expect(await outcome).toMatchObject({ seq: 1 })
})

test('sessions share what all may have under way: a hundred that send without end have a hundredth each, and a newcomer a place', () => {
  const { publishes, session, said, asked, keep } = setUp({ publishesPendingBytesMax: 2 ** 20 })
  const send = (of: object) =>
    publishes.fromSession(of as typeof session, { type: 'publish', id: 1, key, messageId: undefined, data: '1' })
  const sessions = Array.from({ length: 100 }, () => ({ ...session, places: 0 }))
  for (let n = 0; n < 600; n++) {
    for (const each of sessions) {
      const before = said.length
      send(each)
      if (said.length === before) each.places++
    }
  }
  const places = sessions.map(each => each.places)
  expect(Math.max(...places) - Math.min(...places)).toBeLessThanOrEqual(1)
  expect(asked.length).toBeGreaterThan(48_000)
  expect(asked.length * 513).toBeLessThan(24 * 2 ** 20)

  const refused = said.length
  send({ ...session })
  expect(said).toHaveLength(refused)
  for (let index = 0; index < asked.length; index++) keep(index)
  send(sessions[0])
  send(sessions[0])
  expect(said.filter(({ type }) => type === 'error')).toHaveLength(refused)
})

test('an error while an outcome is told ends that session alone', () => {
  const { publish, keep, said, ended, outbox } = setUp()
  publish(1)
  publish(2)
  const { send } = outbox
  outbox.send = () => {
    throw new Error('a fault of this program')
  }
  keep(0)
  expect(ended).toEqual(['internalError'])
  outbox.send = send
  keep(1)
  expect(said).toMatchObject([{ id: 2 }])
})

test('a backend is asked about a message with who, what and its id, before anybody is sent it', async () => {
  const { publish, keep, asked, said, messages, rule, counts } = setUp()
  publish(7, '{"n":1.0}', 'asked:1')
  await undefined
  const message = { key: 'asked:1', from: 'ann', messageId: 'a-messageId-of-mine', data: '{"n":1.0}' }
  expect(messages).toMatchObject([{ ...message, deadlineMs: expect.any(Number) }])
  expect(messages[0].deadlineMs).toBeGreaterThan(500)
  expect(asked).toEqual([])
  await rule(0, { ruling: 'take' })
  expect(asked).toMatchObject([{ room: 'asked:1', from: 'ann', messageId: 'a-messageId-of-mine', data: '{"n":1.0}' }])
  keep(0)
  expect(said).toMatchObject([{ type: 'published', id: 7 }])
  expect(counts.rulings.taken).toBe(1)
})

test('what a backend puts in its place is published; what it refuses is not, and the publisher is told its reason', async () => {
  const { publish, asked, said, rule, counts } = setUp()
  publish(1, '"rude"', 'asked:1')
  publish(2, '"ruder"', 'asked:2')
  publish(3, '"rudest"', 'asked:3')
  await undefined
  await rule(0, { ruling: 'take', data: Buffer.from('"r***"') })
  expect(asked).toMatchObject([{ data: '"r***"' }])
  await rule(1, { ruling: 'refuse', reason: 'profanity' })
  await rule(2, { ruling: 'refuse' })
  expect(said).toMatchObject([
    { type: 'error', id: 2, code: 'message_refused', reason: 'profanity' },
    { type: 'error', id: 3, code: 'message_refused', reason: undefined },
  ])
  expect(asked).toHaveLength(1)
  expect(counts.rulings).toMatchObject({ changed: 1, refused: 2 })
  expect(counts.publishes.message_refused).toBe(2)
})

test.each([
  ['says nothing of use', { ruling: 'none', message: 'the backend answered 500', retryAfterMs: 7_000 }, 7_000],
  ['cannot be asked', undefined, 1_000],
] as const)('where the backend %s the namespace says what becomes of a message', async (_, ruling, retryAfterMs) => {
  const { publish, asked, said, rule, counts } = setUp()
  publish(1, '1', 'asked:1')
  await undefined
  await rule(0, ruling)
  const code = ruling ? 'backend_error' : 'fetcher_timeout'
  expect([asked, said]).toMatchObject([[], [{ type: 'error', id: 1, code, retryAfterMs }]])
  expect(counts.rulings.unanswered_refused).toBe(1)

  const lenient = setUp({ otherwise: 'take' })
  lenient.publish(1, '1', 'asked:1')
  await undefined
  await lenient.rule(0, ruling)
  expect(lenient.asked).toMatchObject([{ data: '1' }])
  expect(lenient.counts.rulings.unanswered_taken).toBe(1)
})

test('a message about which the backend is not asked, because so many wait, is refused whatever the namespace says', async () => {
  for (const otherwise of ['refuse', 'take'] as const) {
    const { publish, asked, said, rule, counts } = setUp({ otherwise })
    publish(1, '1', 'asked:1')
    await undefined
    await rule(0, { ruling: 'crowded', message: 'too many wait', retryAfterMs: 1_000 })
    expect([asked, said]).toMatchObject([[], [{ type: 'error', id: 1, code: 'too_many_waiting', retryAfterMs: 1_000 }]])
    expect(counts.rulings.unanswered_refused).toBe(1)
  }
})

test('messages of a session are published in their order, in whatever order a backend answers', async () => {
  const { publish, keep, asked, said, rule } = setUp({ publishesPendingBytesMax: 2 ** 20 })
  for (const id of [1, 2, 3, 4]) publish(id, String(id), 'asked:1')
  publish(5, '5', 'asked:2')
  await undefined
  await rule(4, { ruling: 'take' })
  expect(asked.splice(0)).toMatchObject([{ data: '5' }])
  await rule(3, { ruling: 'take' })
  await rule(1, { ruling: 'take' })
  await rule(2, { ruling: 'refuse' })
  expect([asked, said]).toEqual([[], []])
  await rule(0, { ruling: 'take' })
  expect(asked.map(({ data }) => data)).toEqual(['1', '2', '4'])
  for (const index of [1, 2, 3]) keep(index)
  expect(said.map(({ id, type }) => `${id} ${type}`)).toEqual(['1 published', '2 published', '3 error', '4 published'])
})

test('any number of messages that waited behind another may be refused at once', async () => {
  const { publish, said, ended, messages } = setUp({ publishesPendingBytesMax: 2 ** 20 })
  for (let id = 0; id < 2_000; id++) publish(id, '1', 'asked:1')
  await new Promise(setImmediate)
  for (const message of messages.toReversed()) {
    message.resolve({ ruling: 'take', data: Buffer.from('"too long for it"') })
    await undefined
  }
  await new Promise(setImmediate)
  expect(said.map(({ id, code }) => `${id} ${code}`)).toEqual(said.map((_, id) => `${id} too_large`))
  expect([said.length, ended]).toEqual([2_000, []])
})

test('a message that is too long is not asked about, nor is one published whose session ended meanwhile or lost the right', async () => {
  const { publish, publishes, asked, said, messages, rule, session } = setUp()
  publish(1, '"too long for it"', 'asked:1')
  await new Promise(setImmediate)
  expect([said, messages]).toMatchObject([[{ id: 1, code: 'too_large' }], []])
  publish(2, '1', 'asked:1')
  await undefined
  session.rights = rightsOf(['room:*'])
  await rule(0, { ruling: 'take' })
  expect(said[1]).toMatchObject({ id: 2, code: 'forbidden' })
  session.rights = rightsOf(['asked:*'])
  publish(3, '1', 'asked:1')
  await undefined
  session.ended = true
  await rule(1, { ruling: 'take' })
  expect([asked, publishes.underWay()]).toEqual([[], 0])
})

test.each([
  ['whose session ended', (session: any) => Object.assign(session, { ended: true }), []],
  [
    'that lost the right',
    (session: any) => Object.assign(session, { rights: rightsOf([]) }),
    ['forbidden', 'forbidden'],
  ],
])('a message %s while it waited for one before it is not published', async (_, change, codes) => {
  const { publish, asked, said, rule, session, publishes } = setUp()
  publish(1, '1', 'asked:1')
  publish(2, '2', 'asked:1')
  await undefined
  await rule(1, { ruling: 'take' })
  change(session)
  await rule(0, { ruling: 'take' })
  expect([asked, said.map(({ code }) => code), publishes.underWay()]).toEqual([[], codes, 0])
})

test('messages that are asked about take half of what may be under way, and accounts share it: others publish on', async () => {
  const { publish, session, said, asked, messages } = setUp({ publishesPendingBytesMax: 2 ** 30 })
  session.payer = 'u-ann'
  for (let id = 0; id < 10_000; id++) publish(id, '1', 'asked:1')
  await new Promise(setImmediate)
  const places = messages.length
  expect(places).toBeGreaterThan(1_000)
  expect(places).toBeLessThan(10_000)
  publish(1, '1', 'room:1')
  expect(asked).toHaveLength(1)
  expect(said).toEqual([])
})
