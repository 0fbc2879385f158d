import { errorCodes } from '@keycast/protocol'
import { decodeFromHub, decodeRequest, encodeAnswers, encodeMessage, encodeRequest } from './envelope.ts'
import { type Answer, historyKey, readHistoryKey, roomsCodec } from './rooms-codec.ts'

const envelope = { link: 'L', number: 1, reached: 1 }

const passed = (...answers: Answer[]) => {
  const parts = encodeAnswers(envelope, answers.map(roomsCodec.encodeAnswer), [])
  const decoded = decodeFromHub(
    parts.map(part => Buffer.from(part)),
    roomsCodec,
  )
  return decoded.type === 'answers' ? decoded.answers : undefined
}

const message = (seq: number, text: string, messageId = undefined) => ({
  seq,
  at: 1_700_000_000_000 + seq,
  from: 'ann',
  messageId,
  data: Buffer.from(text),
})

test('every answer comes out as it went in, with the bytes of each message', () => {
  const answers: Answer[] = [
    { type: 'head', key: 'room:1', epoch: 'E', seq: 9, oldest: 3, after: 7 },
    { type: 'messages', key: 'room:1', epoch: 'E', messages: [message(8, '{"a": 1}'), message(9, '"grüße"')] },
    { type: 'gap', key: 'room:2', epoch: 'E', seq: 4, oldest: 5, reason: 'trimmed' },
    {
      type: 'history',
      key: 'room:1 - after 0 50',
      epoch: 'E',
      oldest: 3,
      newest: 9,
      messages: [message(3, '""')],
      more: true,
      truncated: true,
    },
    { type: 'failed', key: 'room:3', code: 'journal_unavailable', message: 'later', retryAfterMs: 1_000 },
  ]
  expect(passed(...answers)).toEqual(answers)
})

test('what was deleted, and what tells of it, comes out as it went in; of a part that is none the whole is damaged', () => {
  const messages = (...deletes: [number, number][]): Answer => ({
    type: 'messages',
    key: 'room:1',
    epoch: 'E',
    messages: [
      { ...message(8, 'null'), from: '', deleted: true },
      { ...message(9, 'null'), from: '', deletes },
    ],
  })
  expect(passed(messages([1, 3], [8, 8]))).toEqual([messages([1, 3], [8, 8])])
  for (const part of [[1], [1, 2, 3], [-1, 2], ['1', 2], 7, null]) {
    expect(() => passed(messages(part as never))).toThrow('is incomplete')
  }
})

test.each([
  { type: 'delete', room: 'room:1', seqs: [1, 9] },
  { type: 'delete', room: 'room:1', seqs: undefined },
  { type: 'delete', user: 'ann' },
] as const)('a deletion comes out as it went in: %j', command => {
  const encoded = roomsCodec.encodeCommand?.(command as never)
  expect(roomsCodec.decodeCommand?.(JSON.parse(JSON.stringify(encoded?.head)), [])).toEqual(command)
})

test('a deletion that says not what is damaged, and its result is a number of messages', () => {
  for (const head of [{}, { room: 7 }, { room: 'room:1', seqs: 7 }, { room: 'room:1', seqs: [-1] }, { user: null }]) {
    expect(() => roomsCodec.decodeCommand?.({ type: 'delete', ...head }, [])).toThrow('a deletion is incomplete')
  }
  expect(roomsCodec.readResult?.({ messages: 3 })).toEqual({ messages: 3 })
})

test('an empty part of a history is one', () => {
  const empty: Answer = {
    type: 'history',
    key: 'k',
    epoch: 'E',
    oldest: 1,
    newest: 0,
    messages: [],
    more: false,
    truncated: false,
  }
  expect(passed(empty)).toEqual([empty])
})

test('a publish carries its data as a part of its own', () => {
  const command = {
    type: 'publish' as const,
    room: 'room:1',
    messageId: 'm',
    from: '',
    data: Buffer.from('1'),
  }
  const encoded = (roomsCodec.encodeCommand as any)(command)
  const parts = encodeRequest('L', 1, { type: 'command', commands: [{ id: 'c1', encoded, leftMs: 9 }] })
  expect(decodeRequest(parts, roomsCodec).body).toEqual({
    type: 'command',
    commands: [{ id: 'c1', command, leftMs: 9 }],
  })
})

test.each([
  ['a head without an epoch', { type: 'head', key: 'k', seq: 1, oldest: 1, after: 1 }, []],
  ['a head with a seq that is no count', { type: 'head', key: 'k', epoch: 'E', seq: -1, oldest: 1, after: 1 }, []],
  ['messages without their part', { type: 'messages', key: 'k', epoch: 'E', first: 1, messages: [{}] }, []],
  ['no messages', { type: 'messages', key: 'k', epoch: 'E', first: 1, messages: [] }, ['']],
  [
    'messages longer than their part',
    { type: 'messages', key: 'k', epoch: 'E', first: 1, messages: [{ at: 1, from: '', bytes: 5 }] },
    ['abcd'],
  ],
  [
    'messages shorter than their part',
    { type: 'messages', key: 'k', epoch: 'E', first: 1, messages: [{ at: 1, from: '', bytes: 3 }] },
    ['abcd'],
  ],
  ['a failure without a code', { type: 'failed', key: 'k' }, []],
  ['an answer without a key', { type: 'gap', epoch: 'E', seq: 1, oldest: 1 }, []],
])('%s is damaged', (_, head, texts) => {
  const parts = texts.map(text => Buffer.from(text))
  expect(() => roomsCodec.decodeAnswer(head, parts)).toThrow()
})

test('unknown codes and reasons of a newer journal are read as general ones, unknown kinds are skipped', () => {
  const { decodeAnswer, readResult } = roomsCodec
  expect(decodeAnswer({ type: 'failed', key: 'k', code: 'new', message: 'm' }, [])).toMatchObject({
    code: 'journal_unavailable',
    message: 'm',
  })
  expect(decodeAnswer({ type: 'gap', key: 'k', epoch: 'E', seq: 1, oldest: 1, reason: 'new' }, [])).toMatchObject({
    reason: 'trimmed',
  })
  expect(decodeAnswer({ type: 'new', key: 'k' }, [])).toBeUndefined()
  expect(readResult?.({ error: 'new' })).toMatchObject({
    code: 'journal_unavailable',
    message: errorCodes.journal_unavailable,
  })
  expect(roomsCodec.decodeCommand?.({ type: 'new' }, [])).toBeUndefined()
})

test('heads come with a beat', () => {
  const beat = (heads: unknown) =>
    decodeFromHub(
      [encodeMessage({ type: 'beat', link: 'L', wire: roomsCodec.wire, reached: 0, answered: 0, heads })],
      roomsCodec,
    )
  expect(beat([{ key: 'room:1', epoch: 'E', seq: 3 }])).toMatchObject({
    heads: [{ key: 'room:1', epoch: 'E', seq: 3 }],
  })
  for (const wrong of [{}, [null], [{ key: 'room:1', epoch: 'E', seq: 'x' }]]) expect(() => beat(wrong)).toThrow()
})

test('the key of a get names the room and the part, and nothing else is one', () => {
  for (const range of [
    { after: 3, limit: 50 },
    { epoch: 'E_-1', before: 100, limit: 500 },
  ]) {
    expect(readHistoryKey(historyKey('room:1', range))).toEqual({ room: 'room:1', range })
  }
  expect(historyKey('room:1', { after: 0, limit: 9_999 })).toBe('room:1 - after 0 500')
  for (const wrong of [
    'room:1',
    'room:1 - after 0 501',
    'room:1 - after 0 0',
    'room:1 - after x 5',
    'a b - after 0 5',
  ]) {
    expect(readHistoryKey(wrong)).toBeUndefined()
  }
})
