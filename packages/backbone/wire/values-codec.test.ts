import { errorCodes } from '@keycast/protocol'
import type { Answer, Ruling, Taken } from '../backbone.ts'
import { WireError } from './codec.ts'
import { type AskCommand, type PutCommand, positionOf, valuesCodec } from './values-codec.ts'

const { encodeAnswer, decodeAnswer, readNotice, readPosition } = valuesCodec

const head = {
  type: 'value',
  key: 'a:1',
  version: 'v',
  ageMs: 3,
  maxAgeMs: 1_000,
  store: true,
  contentType: 'application/json',
  format: 'json',
} as const
const body = Buffer.from('[1,2]')
const current = {
  type: 'current',
  key: 'a:2',
  version: 'w',
  ageMs: 0,
  maxAgeMs: 0,
  store: false,
} as const
const failed = { type: 'failed', key: 'a:3', code: 'not_found', message: 'gone', ageMs: 1 } as const

const kept = { type: 'kept', key: 'a:4', version: 'k', next: { inMs: 5, everyMs: 60_000 } } as const

function cross(answer: Answer) {
  const { head, parts } = encodeAnswer(answer)
  return decodeAnswer(JSON.parse(JSON.stringify(head)), parts)
}

test('answers arrive as they were sent, and bodies are not copied on the way out', () => {
  const withDelta = { ...head, delayMs: 7, body, delta: { from: 'u', bytes: Buffer.from('delta') } }
  const keptForNow = { type: kept.type, key: kept.key, version: kept.version }
  const forbidden = { ...failed, code: 'forbidden' as const, tokenDigest: 'd' }
  for (const answer of [{ ...head, body }, withDelta, current, kept, keptForNow, failed, forbidden]) {
    expect(cross(answer)).toEqual(answer)
  }
  expect(encodeAnswer({ ...head, body }).parts[0]).toBe(body)
})

test('a code, a format or a kind of a newer release never breaks a link', () => {
  expect(decodeAnswer({ ...failed, code: 'backend_on_fire' }, [])).toEqual({ ...failed, code: 'backend_error' })
  expect(decodeAnswer({ ...failed, code: 'toString' }, [])).toEqual({ ...failed, code: 'backend_error' })
  expect(decodeAnswer({ ...head, format: 'cbor' }, [body])).toEqual({ ...head, format: 'base64', body })
  expect(decodeAnswer({ ...head, delayMs: 'long' }, [body])).toEqual({ ...head, body })
  expect(decodeAnswer({ ...failed, tokenDigest: 7 }, [])).toEqual(failed)
  expect(decodeAnswer({ ...head, mood: 'new' }, [body, body])).toMatchObject({ ...head, body })
  expect(decodeAnswer({ type: 'hologram', key: 'a:1' }, [body])).toBeUndefined()
  expect(readNotice?.({ type: 'rumour' })).toBeUndefined()
})

test.each([
  ['a key missing', { ...head, key: undefined }, [body]],
  ['a body missing', head, []],
  ['a delta missing', { ...head, deltaFrom: 'u' }, [body]],
  ['a delta from nowhere', { ...head, deltaFrom: 1 }, [body, body]],
  ['a version missing', { ...head, version: undefined }, [body]],
  ['a format missing', { ...head, format: undefined }, [body]],
  ['a code missing', { ...failed, code: undefined }, []],
  ['a time that is none', { ...failed, retryAfterMs: [] }, []],
  ['an age missing', { ...current, ageMs: undefined }, []],
  ['a period of nothing', { ...kept, next: { inMs: 5, everyMs: 0 } }, []],
])('an answer with %s is refused', (_, answer, parts) => {
  expect(() => decodeAnswer(answer, parts)).toThrow(WireError)
})

test('what a damaged answer holds is said back as an excerpt', () => {
  const key = `a:${'x'.repeat(1_000_000)}`
  expect(() => decodeAnswer({ ...current, key, ageMs: undefined }, [])).toThrow(
    /^the answer "current" for "a:x+…" is incomplete$/,
  )
})

test('the message of a failure, which goes on to clients, is always a text', () => {
  const message = JSON.parse('['.repeat(100_000) + ']'.repeat(100_000))
  expect(decodeAnswer({ ...failed, message }, [])).toMatchObject({ message: errorCodes.not_found })
})

test('positions and refreshes are read with the fields they need', () => {
  expect(readPosition({ version: 'v', ageMs: 5, mood: 'new' })).toEqual({ version: 'v', ageMs: 5 })
  const planned = { version: 'v', ageMs: 5, plan: { inMs: 0, maxAgeMs: 1, askedAgoMs: 7 } }
  expect(readPosition(planned)).toEqual(planned)
  for (const plan of [{ inMs: -1, maxAgeMs: 1, askedAgoMs: 7 }, { inMs: 0, maxAgeMs: 1 }, null]) {
    expect(() => readPosition({ ...planned, plan })).toThrow(WireError)
  }
  for (const position of [{}, { version: 'v' }, { ageMs: 5 }]) expect(() => readPosition(position)).toThrow(WireError)
  const absent = { version: undefined, ageMs: 5 }
  expect(readPosition(JSON.parse(JSON.stringify(positionOf(absent))))).toEqual(absent)
  expect(readNotice?.({ type: 'refresh', keys: ['a:1'] })).toEqual({ type: 'refresh', keys: ['a:1'] })
  expect(() => readNotice?.({ type: 'refresh', keys: [1] })).toThrow(WireError)
})

test('a decision of a newer fetcher admits nobody', () => {
  expect(valuesCodec.readResult?.({ verdict: 'perhaps', message: 'm' })).toMatchObject({ verdict: 'failed' })
  expect(() => valuesCodec.readResult?.({ verdict: 'admitted', message: 'm' })).toThrow('no age')
  expect(() => valuesCodec.readResult?.({ verdict: 'failed', retryAfterMs: 'soon' })).toThrow('incomplete')
})

test('a want is read with the credentials of its viewer, all of them or none', () => {
  const { readPayload } = valuesCodec
  expect(readPayload?.({ quiet: true })).toEqual({ quiet: true })
  expect(readPayload?.({ authorization: 'Bearer t', expiresAt: 5 })).toEqual({
    quiet: false,
    authorization: 'Bearer t',
    expiresAt: 5,
  })
  expect(() => readPayload?.({ authorization: 'Bearer s3cret' })).toThrow(/^the credentials are incomplete$/)
})

test('no error about credentials repeats them', () => {
  const command = { type: 'authorize', key: 'doc:1|anonymous', authorization: 'Bearer s3cret', expiresAt: 'soon' }
  expect(() => valuesCodec.decodeCommand?.(command, [])).toThrow(/^the credentials are incomplete$/)
  expect(valuesCodec.decodeCommand?.({ type: 'publish', key: 'a' }, [])).toBeUndefined()
})

test.each([
  ['a line break', 'Bearer a\r\nx-admin: 1'],
  ['a character that no header has', 'Bearer \u{e4}'],
  ['nothing', ''],
  ['more than a token', `Bearer ${'x'.repeat(10_000)}`],
])('credentials with %s reach no request, and no log', (_, authorization) => {
  const said = { authorization, expiresAt: 5 }
  expect(() => valuesCodec.readPayload?.(said)).toThrow(/^the credentials fit into no header$/)
  const command = { type: 'authorize', key: 'doc:1|anonymous', ...said }
  expect(() => valuesCodec.decodeCommand?.(command, [])).toThrow(/^the credentials fit into no header$/)
})

test('a question may say how old its answer may be', () => {
  const command = { type: 'authorize', key: 'doc:1|anonymous' }
  expect(valuesCodec.decodeCommand?.({ ...command, maxAgeMs: 0.5 }, [])).toEqual({ ...command, maxAgeMs: 0.5 })
  for (const maxAgeMs of [-1, 'soon', null]) {
    expect(() => valuesCodec.decodeCommand?.({ ...command, maxAgeMs }, [])).toThrow('no age')
  }
})

describe('a value that is handed over', () => {
  const { encodeCommand, decodeCommand, encodeResult, readResult } = valuesCodec
  const content = { version: 'v', contentType: 'text/plain', format: 'text' as const, body: Buffer.alloc(0) }
  const put = { type: 'put', key: 'a:1', content, rank: 7 } as const

  function crossed(command: PutCommand) {
    const { head, parts } = encodeCommand?.(command) ?? { head: undefined, parts: [] }
    return decodeCommand?.(JSON.parse(JSON.stringify(head)), parts)
  }

  test('arrives as it was sent, also if it is empty or none', () => {
    const repeated = { ...put, isRepeated: true }
    for (const command of [put, repeated, { ...put, content: undefined }, { ...put, rank: undefined }]) {
      expect(crossed(command)).toEqual(command)
    }
  })

  test('a format of a newer release is bytes', () => {
    const { head, parts } = encodeCommand?.(put) ?? { head: {}, parts: [] }
    expect(decodeCommand?.({ ...(head as object), format: 'cbor' }, parts)).toMatchObject({
      content: { format: 'base64' },
    })
  })

  test.each([
    ['without a body', { type: 'put', key: 'a:1', version: 'v', contentType: 'x/y', format: 'text' }],
    ['without a type', { type: 'put', key: 'a:1', version: 'v' }],
    ['with a rank that is no number', { type: 'put', key: 'a:1', rank: 'high' }],
    ['without a key', { type: 'put' }],
  ])('%s breaks the wire format', (_, head) => {
    expect(() => decodeCommand?.(head, [])).toThrow(WireError)
  })

  test('what became of it arrives, and of an unknown code that it failed', () => {
    const problem = { code: 'capacity', message: 'full', retryAfterMs: 5 } as const
    for (const taken of [{ outcome: 'taken' }, { outcome: 'older', rank: 9 }, problem] as Taken[]) {
      expect(readResult?.(encodeResult ? encodeResult(taken) : taken)).toEqual(taken)
    }
    expect(readResult?.({ code: 'node_on_fire', message: 'hot' })).toMatchObject({ code: 'backend_error' })
    expect(() => readResult?.({ outcome: 'older' })).toThrow(WireError)
  })
})

describe('a message that is asked about', () => {
  const { encodeCommand, decodeCommand, encodeResult, readResult } = valuesCodec
  const ask: AskCommand = { type: 'ask', key: 'room:1', from: 'ann', messageId: 'm', data: Buffer.from('{"n":1.0}') }
  const overTheWire = (head: unknown) => JSON.parse(JSON.stringify(head))

  test('arrives as it was sent, also without an id', () => {
    for (const command of [ask, { ...ask, messageId: undefined }]) {
      const { head, parts } = encodeCommand?.(command) ?? { head: undefined, parts: [] }
      expect(decodeCommand?.(overTheWire(head), parts)).toEqual(command)
    }
  })

  test.each([
    ['without data', { type: 'ask', key: 'room:1', from: '' }, []],
    ['without a publisher', { type: 'ask', key: 'room:1' }, [Buffer.from('1')]],
    ['without a key', { type: 'ask', from: '' }, [Buffer.from('1')]],
    ['with an id that is no text', { type: 'ask', key: 'room:1', from: '', messageId: 7 }, [Buffer.from('1')]],
  ])('%s breaks the wire format', (_, head, parts) => {
    expect(() => decodeCommand?.(head, parts)).toThrow(WireError)
  })

  test('its ruling arrives, and one that is not known here says nothing', () => {
    for (const ruling of [
      { ruling: 'take' },
      { ruling: 'take', data: Buffer.from('{"n":1.0}') },
      { ruling: 'refuse' },
      { ruling: 'refuse', reason: 'profanity' },
      { ruling: 'none', message: 'no answer' },
      { ruling: 'none', message: 'no answer', retryAfterMs: 5 },
      { ruling: 'crowded', message: 'too many wait', retryAfterMs: 5 },
    ] as Ruling[]) {
      expect(readResult?.(overTheWire(encodeResult?.(ruling)))).toEqual(ruling)
    }
    expect(readResult?.({ ruling: 'maybe' })).toEqual({ ruling: 'none', message: '' })
  })
})
