import type { Ruling } from '@keycast/backbone'
import { type JournalNamespaces, realWorld } from '@keycast/service'
import { type Ask, createQuestions, type Reply } from '../questions/questions.ts'
import { createRulings, KEPT_MS, rulingQuestions } from './rulings.ts'

const ID = 'q2VbR0cJmZC0yqk3sM1v5g'

function setup({ otherwise = 'refuse', bytesMax = 100 }: { otherwise?: 'refuse' | 'take'; bytesMax?: number } = {}) {
  let at = 1_000
  const url = { urlFor: (id: string) => `http://h/${id}`, origin: 'http://h', pattern: 'http://h/{id}' }
  const ask = { ...url, timeoutMs: 500, otherwise, headers: { 'x-key': 'k' } }
  const namespaces = {
    names: ['room', 'open'],
    get: (name: string) => ({ room: { ask, bytesMax }, open: {} })[name],
  } as unknown as JournalNamespaces
  const asked: any[] = []
  const told: [string, Ruling][] = []
  const counted: string[] = []
  const nothing: unknown[][] = []
  const rulings = createRulings({
    namespaces,
    questions: { add: wanted => void asked.push(wanted) },
    tellRuling: (link, id, ruling) => void told.push([`${link} ${id}`, ruling]),
    logNothing: ({ name, origin }, { status }) => void nothing.push([name, origin, status]),
    metrics: {
      questioned: met => void counted.push(met),
      ruled: (origin, ruling) => void counted.push(`${origin} ${ruling}`),
    },
    now: () => at,
  })
  let commands = 0
  return {
    rulings,
    asked,
    counted,
    nothing,
    told: () => told.splice(0),
    question: (given: { key?: string; messageId?: string; from?: string; data?: string } = {}, link = 'a') => {
      const { data = '{"n":1.0}', ...message } = { key: 'room:1', from: 'ann', messageId: ID, ...given }
      rulings.onCommand(link, String(++commands), { ...message, data: Buffer.from(data) })
    },
    answer(status: number | undefined, body?: string, index = asked.length - 1) {
      const reply: Reply = { status, message: `it was ${status}`, sentAt: at, retryAfterMs: undefined }
      asked[index].done({ ...reply, body: body === undefined ? undefined : Buffer.from(body) })
    },
    pass: (ms: number) => {
      at += ms
    },
  }
}

test('a message about which nobody was asked, because so many wait, is asked about anew, also with otherwise: take', () => {
  const { question, asked, told } = setup({ otherwise: 'take' })
  for (const times of [1, 2]) {
    question()
    expect(asked).toHaveLength(times)
    asked[times - 1].done({ status: undefined, message: 'too many', sentAt: 0, retryAfterMs: 1_000, isCrowded: true })
    expect(told()).toMatchObject([[`a ${times}`, { ruling: 'crowded', message: 'too many', retryAfterMs: 1_000 }]])
  }
})

test('a backend that refuses everything without a reason is logged, until it takes a message', () => {
  const { question, answer, nothing } = setup()
  for (const [status, body] of [
    [403, ''],
    [403, '{"reason":"banned"}'],
    [422, ''],
    [204, ''],
    [403, ''],
  ] as const) {
    question({ messageId: undefined })
    answer(status, body)
  }
  expect(nothing).toEqual([['room', 'http://h/{id}', 403]])
})

test('a backend is sent who, where, what and its id, as it would publish it, with the headers of the namespace', () => {
  const { question, asked } = setup()
  question()
  expect(asked[0]).toMatchObject({
    key: 'room:1',
    namespace: 'room',
    url: 'http://h/1',
    method: 'POST',
    timeoutMs: 500,
  })
  expect(asked[0].headers).toEqual({ 'x-key': 'k' })
  expect(String(asked[0].body)).toBe(`{"key":"room:1","messageId":"${ID}","from":"ann","data":{"n":1.0}}`)
  question({ from: '', messageId: undefined })
  expect(String(asked[1].body)).toBe('{"key":"room:1","data":{"n":1.0}}')
})

const deep = (depth: number) => `${'['.repeat(depth)}${']'.repeat(depth)}`

test.each([
  ['204', 204, '', { ruling: 'take' }],
  ['200 with an empty object', 200, '{}', { ruling: 'take' }],
  ['200 with other fields', 200, '{"ok":true}', { ruling: 'take' }],
  ['200 with other data', 200, ' {"data": {"n":1.00} } ', { ruling: 'take', data: Buffer.from('{"n":1.00}') }],
  ['200 with data that is null', 200, '{"data":null}', { ruling: 'take', data: Buffer.from('null') }],
  ['403', 403, '', { ruling: 'refuse' }],
  ['422 with a reason', 422, '{"reason":"profanity"}', { ruling: 'refuse', reason: 'profanity' }],
  ['403 with a reason that is no code', 403, '{"reason":"<b>no</b>"}', { ruling: 'refuse' }],
  ['403 with a long reason', 403, `{"reason":"${'x'.repeat(65)}"}`, { ruling: 'refuse' }],
  ['403 with a page', 403, '<html>', { ruling: 'refuse' }],
])('%s means what it says', (_, status, body, ruling) => {
  const { question, answer, told } = setup()
  question()
  answer(status, body)
  expect(told()).toEqual([['a 1', ruling]])
})

test.each([
  ['a page', 200, '<html>'],
  ['a list', 200, '[1]'],
  ['null', 200, 'null'],
  ['JSON that breaks off', 200, '{"data":'],
  ['data that is too long', 200, `{"data":"${'x'.repeat(100)}"}`],
  ['data that is nested too deep', 200, `{"data":${deep(65)}}`],
  ['a body that broke off', 200, undefined],
  ['another status', 500, ''],
  ['that nobody is logged in', 401, ''],
  ['no status', undefined, undefined],
])('%s is no answer of use', (_, status, body) => {
  const { question, answer, told, counted } = setup()
  question()
  answer(status, body)
  expect(told()).toEqual([['a 1', { ruling: 'none', message: expect.stringContaining(`it was ${status}`) }]])
  expect(counted).toEqual(['asked', 'http://h none'])
})

test('a message that comes again is answered as before, for as long as a journal knows its id at least', () => {
  const { question, answer, told, asked, pass, counted } = setup()
  question()
  question({}, 'b')
  answer(200, '{"data":2}')
  const changed = { ruling: 'take', data: Buffer.from('2') }
  expect(told()).toEqual([
    ['a 1', changed],
    ['b 2', changed],
  ])
  pass(KEPT_MS)
  question({}, 'b')
  expect(told()).toEqual([['b 3', changed]])
  expect(asked).toHaveLength(1)
  expect(counted).toEqual(['asked', 'coalesced', 'http://h changed', 'memory'])
  pass(1)
  question()
  expect(asked).toHaveLength(2)
})

test('another message is asked about, whatever part of it is another, and so is each that has no id', () => {
  const { question, answer, asked } = setup()
  const others = [
    {},
    { data: '2' },
    { from: 'bob' },
    { key: 'room:2' },
    { messageId: undefined },
    { messageId: undefined },
  ]
  for (const other of others) {
    question(other)
    answer(204, '')
  }
  expect(asked).toHaveLength(others.length)
})

test('a message that was refused without an answer is asked about again; one that was taken so is not', () => {
  for (const [otherwise, times] of [
    ['refuse', 2],
    ['take', 1],
  ] as const) {
    const { question, answer, asked, told } = setup({ otherwise })
    question()
    answer(500)
    question()
    expect(asked).toHaveLength(times)
    expect(told()[0][1]).toMatchObject({ ruling: 'none' })
  }
})

test('what is remembered is bounded, in number and in bytes', () => {
  for (const [size, times, held] of [
    [1, 60_000, 50_000],
    [2 ** 20, 20, 16],
  ]) {
    const { question, answer, rulings } = setup({ bytesMax: 2 ** 20 })
    const data = `{"data":${'1'.repeat(size)}}`
    for (let n = 0; n < times; n++) {
      question({ data: String(n) })
      answer(200, data)
    }
    expect(rulings.kept()).toEqual({ count: held, bytes: held * size })
  }
})

test('a gateway with another configuration is told so', () => {
  const { question, told, asked } = setup()
  for (const key of ['open:1', 'none:1', 'room:1 2', 'no key', 'room:a/b']) question({ key })
  expect(told().map(([, ruling]) => ruling.ruling)).toEqual(Array(5).fill('none'))
  expect(asked).toEqual([])
})

test('the Retry-After of a backend holds, up to a minute', () => {
  const ask = { urlFor: (id: string) => `http://h/${id}`, origin: 'http://h', pattern: '', timeoutMs: 500, headers: {} }
  const namespaces = { names: ['room'], get: () => ({ ask, bytesMax: 100 }) } as unknown as JournalNamespaces
  const leased: Ask[] = []
  const questions = createQuestions({
    kind: rulingQuestions(namespaces),
    pool: { hasCredit: () => true, lease: (_, ask: any) => leased.push(ask) },
    cap: 1,
    inTurns() {},
    metrics: { asked() {} },
    failureLog: { failed() {}, succeeded() {}, troubles: new Map() },
    now: realWorld.now,
    after: realWorld.after,
  })
  const told: Ruling[] = []
  const rulings = createRulings({
    namespaces,
    questions,
    tellRuling: (_link, _id, ruling) => void told.push(ruling),
    logNothing() {},
    metrics: { questioned() {}, ruled() {} },
    now: realWorld.now,
  })
  for (const retryAfterMs of [7_000, 2 ** 41]) {
    rulings.onCommand('a', '1', { key: 'room:1', from: 'ann', messageId: undefined, data: Buffer.from('1') })
    questions.ended(leased.pop() as Ask, { kind: 'status', status: 503, retryAfterMs }, undefined)
  }
  expect(told).toMatchObject([
    { ruling: 'none', retryAfterMs: 7_000 },
    { ruling: 'none', retryAfterMs: 60_000 },
  ])
})
