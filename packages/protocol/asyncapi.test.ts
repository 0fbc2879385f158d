// docs/asyncapi.yaml against the code. When a message changes, `tsc` demands the change of its sample (samples.fixture.ts),
// and then the test demands it in the document.
import { readFileSync } from 'node:fs'
import { Parser } from '@asyncapi/parser'
import { Ajv } from 'ajv'
import { applyDelta } from 'fossil-delta'
import { parse } from 'yaml'
import { REQUEST_ID_CHARACTERS_MAX } from './fields.ts'
import {
  BYTES_SUBPROTOCOL,
  deltaLine,
  encode,
  errorCodes,
  JSON_SUBPROTOCOL,
  keyProblem,
  readClientMessage,
  VALUE_TAIL,
  valueHead,
  valueLine,
  versionOf,
} from './index.ts'
import type { ControlMessage } from './messages.ts'
import {
  deltaBytes,
  fromClients,
  fromGateways,
  historyAnswer,
  key,
  message,
  value,
  valueBytes,
  version,
} from './samples.fixture.ts'
import { VERSION_CHARACTERS_MAX } from './version.js'

const text = readFileSync(new URL('../../docs/asyncapi.yaml', import.meta.url), 'utf8')

interface Document {
  components: Record<'messages' | 'schemas', Record<string, any>>
  channels: Record<string, any>
  operations: Record<string, any>
}
const read = (): Document => parse(text)

const schemas = new Ajv({ strict: false, allErrors: true, validateFormats: false }).addSchema({
  $id: 'asyncapi',
  components: read().components,
})

/**
 * The problem of a sample, or `undefined`.
 *
 * @param message of the document
 */
function problemOf(message: string, part: 'payload' | 'headers', sample: unknown) {
  const validate = schemas.getSchema(`asyncapi#/components/messages/${message}/${part}`)
  if (!validate) throw new Error(`the document has no ${part} of ${message}`)
  return validate(sample) ? undefined : JSON.stringify(validate.errors)
}

test('a public parser accepts the document', async () => {
  const { document, diagnostics } = await new Parser().parse(text)
  // Errors and warnings; that there is a newer AsyncAPI is neither.
  expect(diagnostics.filter(({ severity }) => severity <= 1)).toEqual([])
  expect(document?.allMessages().length).toBeGreaterThan(0)
})

test('every message the code makes or reads is one of the document', () => {
  for (const [type, sample] of Object.entries({ ...fromClients, ...fromGateways })) {
    const sent = JSON.parse(encode(sample as ControlMessage))
    expect(problemOf(type, 'payload', sent)).toBeUndefined()
  }
  for (const format of ['json', 'text', 'base64'] as const) {
    const head = valueHead({ id: 'x', key, version, contentType: 'text/plain', format })
    expect(problemOf('value', 'payload', JSON.parse(`${head}"AA=="${VALUE_TAIL}`))).toBeUndefined()
  }
  expect(problemOf('message', 'payload', message)).toBeUndefined()
  expect(problemOf('historyPart', 'payload', historyAnswer)).toBeUndefined()
  expect(problemOf('valueBytes', 'headers', JSON.parse(valueLine(valueBytes)))).toBeUndefined()
  expect(problemOf('deltaBytes', 'headers', JSON.parse(deltaLine(deltaBytes)))).toBeUndefined()
})

test('every example of the document is one of its messages', () => {
  for (const [name, { examples, headers }] of Object.entries(read().components.messages)) {
    for (const example of examples) {
      expect(problemOf(name, 'payload', example.payload)).toBeUndefined()
      if (headers) expect(problemOf(name, 'headers', example.headers)).toBeUndefined()
    }
  }
})

test('what is not in the document is found', () => {
  expect(problemOf('pong', 'payload', { type: 'pong', count: 1, mood: 'fine' })).toContain('mood')
  expect(problemOf('deltaBytes', 'headers', { type: 'delta', key })).toContain('from')
  expect(problemOf('error', 'payload', { type: 'error', code: 'bad_mood', message: '' })).toContain('code')
  expect(problemOf('value', 'payload', { ...value, data: undefined })).toContain('oneOf')
})

test('the messages and their fields are those of the code, no more and no fewer', () => {
  const { messages } = read().components
  const samples = { ...fromClients, ...fromGateways, value, message, historyPart: historyAnswer }
  const fields = Object.fromEntries(Object.entries(samples).map(([type, sample]) => [type, Object.keys(sample).sort()]))
  const { valueBytes: documentedValue, deltaBytes: documentedDelta, ...documented } = messages
  const documentedFields = Object.entries(documented).map(([type, { payload }]) => {
    expect(payload.properties.type).toEqual({ const: type === 'historyPart' ? 'history' : type })
    return [type, Object.keys(payload.properties).sort()]
  })
  expect(Object.fromEntries(documentedFields)).toEqual(fields)
  expect(Object.keys(messages.welcome.payload.properties.limits.properties)).toEqual(
    Object.keys(fromGateways.welcome.limits),
  )
  expect(Object.keys(documentedValue.headers.properties)).toEqual(Object.keys(valueBytes))
  expect(Object.keys(documentedDelta.headers.properties)).toEqual(Object.keys(deltaBytes))
})

test('each channel has every message of its subprotocol, and each message its operation', () => {
  const { channels, operations } = read()
  expect(Object.values(channels).map(({ title }) => title)).toEqual([JSON_SUBPROTOCOL, BYTES_SUBPROTOCOL])
  const inBoth = [...Object.keys(fromClients), ...Object.keys(fromGateways), 'value', 'message', 'historyPart']
  for (const [name, subprotocol, types] of [
    ['json', JSON_SUBPROTOCOL, inBoth],
    ['bytes', BYTES_SUBPROTOCOL, [...inBoth, 'delta']],
  ] as const) {
    const { messages, bindings } = channels[name]
    expect(bindings.ws.headers.properties['Sec-WebSocket-Protocol'].const).toBe(subprotocol)
    expect(Object.keys(messages).sort()).toEqual([...types].sort())
    const used = Object.values(operations)
      .filter(({ channel }) => channel.$ref === `#/channels/${name}`)
      .flatMap(({ messages, reply }) => [...messages, ...(reply?.messages ?? [])])
      .map(({ $ref }) => $ref.split('/').at(-1))
    expect([...new Set(used)].sort()).toEqual([...types].sort())
  }
  const received = Object.values(operations).filter(({ action }) => action === 'receive')
  const requests = received.flatMap(({ messages }) => messages.map(({ $ref }: any) => $ref.split('/').at(-1)))
  expect([...new Set(requests)].sort()).toEqual(Object.keys(fromClients).sort())
})

test('what the document shows a client to send is what the code reads', () => {
  const { messages } = read().components
  for (const type of Object.keys(fromClients)) {
    for (const { payload } of messages[type].examples) {
      const { keys, data, ...rest } = payload
      const written = JSON.stringify(payload)
      expect(readClientMessage(written)).toMatchObject(keys && type !== 'subscribe' ? payload : rest)
      if (data !== undefined) expect(readClientMessage(written)).toMatchObject({ data: JSON.stringify(data) })
    }
  }
})

test('its example of a delta makes what it says out of its example of a value', () => {
  const { valueBytes, deltaBytes } = read().components.messages
  const [value] = valueBytes.examples
  const [delta] = deltaBytes.examples
  expect(versionOf(Buffer.from(value.payload))).toBe(value.headers.version)
  expect(delta.headers.from).toBe(value.headers.version)
  const made = applyDelta(Buffer.from(value.payload), Buffer.from(delta.payload))
  expect(versionOf(Buffer.from(made))).toBe(delta.headers.version)
})

test('codes and limits are those of the code', () => {
  const { errorCode, requestId, heldVersion, version: ours } = read().components.schemas
  expect(errorCode.enum).toEqual(Object.keys(errorCodes))
  expect(requestId.oneOf[1].maxLength).toBe(REQUEST_ID_CHARACTERS_MAX)
  expect(heldVersion.maxLength).toBe(VERSION_CHARACTERS_MAX)
  expect(version).toMatch(new RegExp(ours.pattern))
})

test.each([
  'conversation:42',
  'a:b/c',
  'a:..b',
  'a:b/...',
  'a:.',
  'a:b/..',
  'a:b//c',
  'a:/b',
  'a:b/',
  'A:1',
  'a:',
  'a:b c',
  'a:b|c',
  'a:?b=c',
  'a:b?c=d/e&f[g]=h',
  'a:../b?c=d',
  'a:..?c=d',
  'a:b?c',
  'a:b?c=',
  'a:b?c=d?e=f',
  "a:é@:+,=!$'()",
  `${'n'.repeat(33)}:1`,
  `a:${'x'.repeat(255)}`,
  `a:${'x'.repeat(256)}`,
])('its pattern takes %s for a key where the code does', candidate => {
  const { pattern } = read().components.schemas.key
  expect(new RegExp(pattern, 'u').test(candidate)).toBe(keyProblem(candidate) === undefined)
})
