import { type Codec, WireError } from './codec.ts'
import { decodeBeat, decodeFromHub, decodeRequest, encodeAnswers, encodeMessage, encodeRequest } from './envelope.ts'
import { valuesCodec } from './values-codec.ts'

const bytes = (message: unknown) => encodeMessage(message as any)
const { wire } = valuesCodec

/** A codec whose answers and commands are a word each, with any number of parts. */
const words: Codec<any> = {
  wire: 'words/1.0',
  readPosition: head => head,
  readPayload: head => head,
  encodeAnswer: ({ key, parts }) => ({ head: { key }, parts }),
  decodeAnswer: ({ key }, parts) => (key === 'unknown' ? undefined : { key, parts }),
  decodeCommand: ({ word }, parts) => (word === 'unknown' ? undefined : { word, parts }),
  readResult: head => head,
}
const envelope = { link: 'L', number: 4, reached: 2 }

test('requests arrive as they were sent', () => {
  const watch = {
    type: 'watch' as const,
    wants: [{ key: 'a:1', position: { at: 7 }, payload: { all: true } }],
  }
  expect(decodeRequest(encodeRequest('L', 1, watch), words)).toEqual({ link: 'L', number: 1, body: watch })
  const unwatch = { type: 'unwatch' as const, keys: ['a:1'] }
  expect(decodeRequest(encodeRequest('L', 2, unwatch), words)).toEqual({ link: 'L', number: 2, body: unwatch })
  const left = { ...unwatch, left: true }
  expect(decodeRequest(encodeRequest('L', 3, left), words)).toEqual({ link: 'L', number: 3, body: left })
})

test('each command arrives with its own parts, one of an unknown kind as nothing, results with their ids', () => {
  const [a, b, c] = ['a', 'b', 'c'].map(text => Buffer.from(text))
  const commands = [
    { id: 'c1', encoded: { head: { word: 'one' }, parts: [a] }, leftMs: 5_000 },
    { id: 'c2', encoded: { head: { word: 'unknown' }, parts: [b] }, leftMs: 1 },
    { id: 'c3', encoded: { head: { word: 'three' }, parts: [b, c] }, leftMs: 0 },
  ]
  const parts = encodeRequest('L', 1, { type: 'command', commands })
  expect(parts.map(String)).toEqual([expect.stringContaining('"joined":[1,1,1,1]'), 'abbc'])
  expect(decodeRequest(parts, words).body).toEqual({
    type: 'command',
    commands: [
      { id: 'c1', command: { word: 'one', parts: [a] }, leftMs: 5_000 },
      { id: 'c2', command: undefined, leftMs: 1 },
      { id: 'c3', command: { word: 'three', parts: [b, c] }, leftMs: 0 },
    ],
  })

  const results = [
    { id: 'c1', result: { seq: 1 } },
    { id: 'c2', isRefused: true as const },
  ]
  expect(decodeFromHub(encodeAnswers(envelope, [], results), words)).toMatchObject({ answers: [], results })
})

test('the parts of a single command are not copied, and joined ones must have the sizes that were said', () => {
  const a = Buffer.from('a')
  const command = (parts: Buffer[]) => ({ id: 'c', encoded: { head: { word: 'one' }, parts }, leftMs: 1 })
  expect(encodeRequest('L', 1, { type: 'command', commands: [command([a])] })[1]).toBe(a)

  const [head, whole] = encodeRequest('L', 1, { type: 'command', commands: [command([a]), command([a])] })
  for (const broken of [
    [head],
    [head, whole, whole],
    [head, Buffer.from('abc')],
    [head, a],
    [Buffer.from(String(head).replace('"joined":[1,1]', '"joined":[3,-1]')), whole],
    [Buffer.from(String(head).replace('"joined":[1,1]', '"joined":1')), whole],
  ]) {
    expect(() => decodeRequest(broken, words)).toThrow(WireError)
  }
})

test('a gateway of an older release does not say how long it waits for a command, and no other says nonsense', () => {
  const commandWith = (leftMs: unknown) => {
    const commands = [{ id: 'c', command: { word: 'one' }, leftMs }]
    return decodeRequest([bytes({ type: 'command', link: 'L', number: 1, commands, parts: [0] })], words).body
  }
  expect(commandWith(undefined)).toMatchObject({ commands: [{ id: 'c', leftMs: undefined }] })
  for (const wrong of [-1, 0.5, '1', null]) expect(() => commandWith(wrong)).toThrow('"leftMs" is not a count')
})

test('each answer arrives with its own parts, uncopied on the way out; one of an unknown kind is skipped with its own', () => {
  const [a, b, c] = ['a', 'b', 'c'].map(text => Buffer.from(text))
  const answers = [
    { key: 'one', parts: [a] },
    { key: 'unknown', parts: [b, b] },
    { key: 'none', parts: [] },
    { key: 'two', parts: [b, c] },
  ]
  const parts = encodeAnswers(envelope, answers.map(words.encodeAnswer), [])
  expect(parts[1]).toBe(a)
  expect(decodeFromHub(parts, words)).toEqual({
    ...envelope,
    type: 'answers',
    answers: answers.map(answer => (answer.key === 'unknown' ? undefined : answer)),
    results: [],
  })
})

test('a request of an unknown type keeps its place in the count', () => {
  expect(decodeRequest([bytes({ type: 'hum', link: 'L', number: 3, tune: 'any' })], words)).toEqual({
    link: 'L',
    number: 3,
    body: { type: 'unknown', kind: 'hum' },
  })
})

test.each([
  ['not JSON', Buffer.from('{')],
  ['null', Buffer.from('null')],
  ['no link', bytes({ type: 'unwatch', number: 1, keys: [] })],
  ['a link that is no name', bytes({ type: 'unwatch', link: 'x'.repeat(65), number: 1, keys: [] })],
  ['no number', bytes({ type: 'unwatch', link: 'L', keys: [] })],
  ['a number below zero', bytes({ type: 'unwatch', link: 'L', number: -1, keys: [] })],
  ['no type', bytes({ link: 'L', number: 1, keys: [] })],
  ['no keys', bytes({ type: 'unwatch', link: 'L', number: 1 })],
  ['a key that is no string', bytes({ type: 'unwatch', link: 'L', number: 1, keys: [1] })],
  ['a position that is null', bytes({ type: 'get', link: 'L', number: 1, wants: [{ key: 'a:1', position: null }] })],
  ['no notice', bytes({ type: 'notice', link: 'L', number: 1 })],
  [
    'a command without an id',
    bytes({ type: 'command', link: 'L', number: 1, commands: [{ command: {} }], parts: [0] }),
  ],
  ['a want that is null', bytes({ type: 'watch', link: 'L', number: 1, wants: [null] })],
  [
    'an age that is none',
    bytes({ type: 'watch', link: 'L', number: 1, wants: [{ key: 'a:1', position: { version: 'v', ageMs: -1 } }] }),
  ],
])('a request with %s is refused', (_, part) => {
  expect(() => decodeRequest([part], valuesCodec)).toThrow(WireError)
})

test('beats are checked like everything else', () => {
  const beat = { type: 'beat', link: 'L', number: 1, taken: 2 }
  expect(decodeBeat(bytes({ ...beat, wire, somethingNew: 1 }), wire)).toEqual(beat)
  expect(decodeBeat(bytes({ type: 'bye', link: 'L' }), wire)).toEqual({ type: 'bye', link: 'L' })
  expect(() => decodeBeat(bytes({ type: 'beat', link: 'L', wire, number: 1 }), wire)).toThrow(WireError)
  expect(() => decodeBeat(bytes({ type: 'resync', link: 'L', taken: 1 }), wire)).toThrow(WireError)
})

test('how far a log is goes with a beat of its node and with results, and a gateway can say that it was further', () => {
  const fromHub = { type: 'beat', link: 'L', wire: words.wire, reached: 1, answered: 2, log: 'A', logAt: 7 }
  expect(decodeFromHub([bytes(fromHub)], words)).toMatchObject({ log: 'A', logAt: 7 })
  const results = [{ id: 'c1', result: {} }]
  expect(decodeFromHub(encodeAnswers({ ...envelope, logAt: 8 }, [], results), words)).toMatchObject({ logAt: 8 })
  const beat = { type: 'beat', link: 'L', number: 1, taken: 2, log: 'A', logAt: 7 }
  expect(decodeBeat(bytes({ ...beat, wire }), wire)).toEqual(beat)
  for (const logAt of [-1, 1.5, '7', null]) {
    expect(() => decodeBeat(bytes({ ...beat, wire, logAt }), wire)).toThrow(WireError)
    expect(() => decodeFromHub([bytes({ ...fromHub, logAt })], words)).toThrow(WireError)
  }
})

test('a newer minor version is compatible; of another major, name or none at all only link and version are read', () => {
  const beat = { type: 'beat', link: 'L', number: 1, taken: 2 }
  expect(decodeBeat(bytes({ ...beat, wire: 'values/2.99' }), wire)).toEqual(beat)
  for (const other of ['values/1.7', 'values/3.0', 'values/20.0', 'journal/1.0', undefined]) {
    const incompatible = { type: 'incompatible', link: 'L', wire: other }
    expect(decodeBeat(bytes({ type: 'beat', link: 'L', wire: other }), wire)).toEqual(incompatible)
    expect(decodeFromHub([bytes({ type: 'beat', link: 'L', wire: other })], valuesCodec)).toEqual(incompatible)
  }
})

test.each([
  ['a part missing', { answers: [{ key: 'a' }], parts: [1] }, []],
  ['a part too many', { answers: [], parts: [] }, [Buffer.from('x')]],
  ['a count missing', { answers: [{ key: 'a' }, { key: 'b' }], parts: [0] }, []],
  ['a count that is none', { answers: [{ key: 'a' }], parts: [-1] }, []],
  ['an answer that is none', { answers: [null], parts: [0] }, []],
  ['no counts', { answers: [] }, []],
  ['a result that is none', { answers: [], parts: [], results: [{ id: 'c1' }] }, []],
  ['a result without an id', { answers: [], parts: [], results: [{ result: 1 }] }, []],
])('answers with %s are refused', (_, fields, parts) => {
  const head = bytes({ type: 'answers', link: 'L', number: 1, reached: 1, ...fields })
  expect(() => decodeFromHub([head, ...parts], words)).toThrow(WireError)
})

describe('what is nested 100,000 levels deep is a damaged message, and nothing worse', () => {
  const deep = '['.repeat(100_000) + ']'.repeat(100_000)
  /** @param name of the field that is deep instead */
  const withDeep = (fields: Record<string, unknown>, name: string) => {
    const text = JSON.stringify({ link: 'L', ...fields, [name]: 'HERE' })
    return Buffer.from(text.replace('"HERE"', deep))
  }

  test.each(['type', 'number'])('a request: "%s"', name => {
    const head = withDeep({ type: 'unwatch', number: 1, keys: ['a:1'] }, name)
    expect(() => decodeRequest([head], words)).toThrow(WireError)
  })

  test('a key', () => {
    const head = Buffer.from(`{"type":"unwatch","link":"L","number":1,"keys":[${deep}]}`)
    expect(() => decodeRequest([head], words)).toThrow(WireError)
  })

  test.each(['type', 'number', 'taken'])('a beat of a gateway: "%s"', name => {
    expect(() => decodeBeat(withDeep({ type: 'beat', wire, number: 1, taken: 1 }, name), wire)).toThrow(WireError)
  })

  test.each(['type', 'number', 'reached', 'answers', 'parts', 'results'])('answers: "%s"', name => {
    const fields = { type: 'answers', number: 1, reached: 1, answers: [], parts: [], results: [] }
    expect(() => decodeFromHub([withDeep(fields, name)], words)).toThrow(WireError)
  })

  test.each(['reached', 'answered'])('a beat of a hub: "%s"', name => {
    const fields = { type: 'beat', wire: words.wire, reached: 1, answered: 1 }
    expect(() => decodeFromHub([withDeep(fields, name)], words)).toThrow(WireError)
  })
})
