import { VALUE_TAIL, valueHead, versionOf } from '@keycast/protocol'
import { type ReadValue, readContent, utf8Of, withoutBom } from './content.ts'

const read = (
  content: string | number[],
  contentType?: string,
  { version, bytesMax = 1_000 }: { version?: string; bytesMax?: number } = {},
) => readContent(Buffer.from(content as string), { contentType, version, bytesMax })

const bom = '\ufeff'

test.each([
  ['application/json', 'application/json'],
  ['Application/JSON; charset=UTF-8', 'application/json'],
  ['application/json; charset=iso-8859-1', 'application/json'],
  ['application/ld+json; profile="a b"', 'application/ld+json;profile="a b"'],
  ['text/json', 'text/json'],
])('%s is JSON, and always UTF-8', (declared, contentType) => {
  const body = Buffer.from('{"a":"é"}')
  expect(read('{"a":"é"}', declared)).toEqual({
    kind: 'value',
    version: versionOf(body, contentType),
    contentType,
    format: 'json',
    body,
  })
})

test.each([
  ['empty', ''],
  ['white space alone', ' \n'],
  ['cut short', '{"a":'],
  ['two values', '1 2'],
  ['a value that something follows', '{}}'],
  ['a value that closes what it is put into', '1},"key":"another:1","x":{}'],
  ['a value and a comma', '1,'],
  ['a control character in a string', '"\n"'],
  ['a byte of zero', '1\0'],
  ['a comment', '1 // one'],
  ['NaN', 'NaN'],
  ['two BOMs', `${bom}${bom}1`],
  ['a BOM at the end', `1${bom}`],
  ['white space that is not of JSON', '\u00a01'],
  ['Latin-1', [0x22, 0xe9, 0x22]],
  ['UTF-16', [0xff, 0xfe, 0x31, 0x00]],
  ['UTF-16 without a BOM', [0x31, 0x00]],
  ['a lone surrogate in bytes', [0x22, 0xed, 0xa0, 0x80, 0x22]],
  ['an overlong slash', [0x22, 0xc0, 0xaf, 0x22]],
])('JSON that is %s is invalid', (_, content) => {
  expect(read(content, 'application/json')).toEqual({
    kind: 'failed',
    code: 'invalid_content',
    message: expect.any(String),
  })
})

test('JSON is valid exactly where its characters parse, wherever it is damaged', () => {
  const whole = Buffer.from('[{"é\u2028": -1.5e+3, "a\\\\\\"b": ["\\ud83d", "😀", true, null]} ]')
  for (let at = 0; at < whole.length; at += 1) {
    for (const byte of [0x00, 0x0a, 0x20, 0x22, 0x2c, 0x30, 0x5c, 0x5d, 0x7d, 0x7f, 0x85, 0xa0, 0xc2, 0xe9]) {
      const damaged = Buffer.from(whole)
      damaged[at] = byte
      expect([damaged.toString(), read([...damaged], 'application/json').kind]).toEqual([
        damaged.toString(),
        parses(damaged) ? 'value' : 'failed',
      ])
    }
  }
})

function parses(bytes: Buffer) {
  try {
    JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes))
    return true
  } catch {
    return false
  }
}

test('the message about invalid JSON does not quote it', () => {
  expect(JSON.stringify(read('{"password": hunter2}', 'application/json'))).not.toContain('hunter2')
})

test.each([
  'null',
  '0',
  '-1.5e+300',
  '"text"',
  ' \t\r\n[1]\n ',
  '{"a":1,"a":2}',
  '{"__proto__":{"key":"x"}}',
  '"\u2028\u2029"',
  '"\\ud800"',
  '"\\u0000"',
  '"\u007f\ufffe\u{1f600}"',
  '1e999',
  `${'['.repeat(400)}${']'.repeat(400)}`,
])('the JSON %j can be spliced into a message as it is', body => {
  const value = read(body, 'application/json')
  if (value.kind !== 'value') throw new Error(value.kind)

  const frame = Buffer.concat([
    Buffer.from(valueHead({ key: 'a:1', version: value.version, contentType: value.contentType, format: 'json' })),
    value.body,
    Buffer.from(VALUE_TAIL),
  ])

  const text = new TextDecoder('utf-8', { fatal: true }).decode(frame)
  expect(JSON.parse(text)).toEqual({ type: 'value', key: 'a:1', version: value.version, data: JSON.parse(body) })
})

test('a BOM before JSON or text is cut before anything else is made of them', () => {
  for (const type of ['application/json', 'text/plain']) {
    expect(read(`${bom}{}`, type)).toEqual(read('{}', type))
  }
})

test('the content of the version held ends there, valid or not', () => {
  const version = versionOf(Buffer.from('{'))
  expect(read('{', 'application/json', { version })).toEqual({ kind: 'current' })
  expect(read(`${bom}{`, 'application/json', { version })).toEqual({ kind: 'current' })
})

test('the same bytes under another content type are another version, which is told to those who hold the first', () => {
  const types = ['application/json', 'application/ld+json', 'text/plain', 'text/html', 'application/octet-stream']
  const values = types.map(type => read('{}', type) as ReadValue)
  expect(new Set(values.map(({ version }) => version)).size).toBe(types.length)
  const { version } = values[2]
  expect(read('{}', 'text/html', { version })).toMatchObject({ kind: 'value', contentType: 'text/html;charset=utf-8' })
  expect(read('{}', 'Text/Plain; Charset="UTF-8"', { version })).toEqual({ kind: 'current' })
})

test.each([
  ['text/html', 'text/html;charset=utf-8'],
  ['text/html; charset=UTF-8; x=y', 'text/html;charset=utf-8;x=y'],
  ['application/xml', 'application/xml;charset=utf-8'],
  ['image/svg+xml', 'image/svg+xml;charset=utf-8'],
  ['application/javascript', 'application/javascript;charset=utf-8'],
])('%s is text', (declared, contentType) => {
  const value = read('é', declared)
  expect(value).toMatchObject({ kind: 'value', format: 'text', contentType })
})

test('text in another charset becomes UTF-8, and its version is that of the content passed on', () => {
  const value = read([0xe9], 'text/plain; charset=iso-8859-1')
  expect(value).toMatchObject({
    format: 'text',
    contentType: 'text/plain;charset=utf-8',
    body: Buffer.from('é'),
    version: versionOf(Buffer.from('é'), 'text/plain;charset=utf-8'),
  })
  const version = versionOf(Buffer.from('é'), 'text/plain;charset=utf-8')
  expect(read([0xe9], 'text/plain; charset=latin1', { version })).toEqual({ kind: 'current' })
})

test('text that is over the cap only once transcoded is too large', () => {
  const latin1 = Array.from({ length: 600 }, () => 0xe9)
  expect(read(latin1, 'text/plain; charset=iso-8859-1')).toMatchObject({ kind: 'failed', code: 'too_large' })
})

test('text that does not decode stays bytes, under the type it came with', () => {
  expect(read([0xe9], 'text/plain; charset=UTF-8')).toMatchObject({
    format: 'base64',
    contentType: 'text/plain;charset=UTF-8',
    body: Buffer.from([0xe9]),
  })
})

test.each([
  ['image/png', 'image/png'],
  [undefined, 'application/octet-stream'],
  ['', 'application/octet-stream'],
  ['json', 'application/octet-stream'],
  ['text/\nplain', 'application/octet-stream'],
  [`text/plain; x=${'x'.repeat(600)}`, 'application/octet-stream'],
])('content of the type %j is bytes, BOM and all', (declared, contentType) => {
  expect(read(`${bom}{}`, declared)).toMatchObject({ format: 'base64', contentType, body: Buffer.from(`${bom}{}`) })
})

test('empty content is a value where its type can be empty', () => {
  expect(read('', 'text/plain')).toMatchObject({ format: 'text', body: Buffer.alloc(0) })
  expect(read('', 'image/png')).toMatchObject({ format: 'base64', body: Buffer.alloc(0) })
})

const decode = (bytes: number[], charset: string | null = null) => utf8Of(Buffer.from(bytes), charset)?.toString()

test.each([
  ['nothing', [0x68, 0x69, 0xc3, 0xa9], null, 'hié'],
  ['utf-8', [0xc3, 0xa9], 'UTF-8', 'é'],
  ['utf-8 with a BOM', [0xef, 0xbb, 0xbf, 0xc3, 0xa9], 'utf-8', 'é'],
  ['a charset that its UTF-8 BOM belies', [0xef, 0xbb, 0xbf, 0xc3, 0xa9], 'iso-8859-1', 'é'],
  ['a charset that its UTF-16 BOM belies', [0xff, 0xfe, 0xe9, 0x00], 'utf-8', 'é'],
  ['a UTF-16 BOM alone', [0xfe, 0xff, 0x00, 0xe9], null, 'é'],
  ['utf-16le without a BOM', [0xe9, 0x00], 'utf-16le', 'é'],
  ['iso-8859-1', [0xe9], 'ISO-8859-1', 'é'],
  ['iso-8859-15', [0xa4], 'iso-8859-15', '€'],
  ['shift_jis', [0x82, 0xa0], 'shift_jis', 'あ'],
  ['koi8-r', [0xc1], 'koi8-r', 'а'],
])('text that declares %s is decoded', (_, bytes, charset, expected) => {
  expect(decode(bytes, charset)).toBe(expected)
})

// https://encoding.spec.whatwg.org/#index-windows-1252
test('all of windows-1252 is decoded as browsers do', () => {
  const bytes = Array.from({ length: 256 }, (_, byte) => byte)
  const points = [...(decode(bytes, 'windows-1252') ?? '')].map(character => character.codePointAt(0))
  expect(points).toHaveLength(256)
  expect(points.slice(0, 0x80)).toEqual(bytes.slice(0, 0x80))
  expect(points.slice(0xa0)).toEqual(bytes.slice(0xa0))
  const encoded = Object.entries({ 128: '€', 130: '‚', 133: '…', 138: 'Š', 146: '’', 147: '“', 150: '–', 159: 'Ÿ' })
  for (const [byte, character] of encoded) expect(points[Number(byte)]).toBe(character.codePointAt(0))
  for (const unassigned of [0x81, 0x8d, 0x8f, 0x90, 0x9d]) expect(points[unassigned]).toBe(unassigned)
})

test.each([
  ['undeclared bytes that are not UTF-8', [0xe9], null],
  ['declared UTF-8 that is none', [0xe9], 'utf-8'],
  ['a lone surrogate in UTF-8', [0xed, 0xa0, 0x80], 'utf-8'],
  ['a lone surrogate in UTF-16', [0xff, 0xfe, 0x00, 0xd8], null],
  ['half a character', [0x82], 'shift_jis'],
  ['a charset nobody knows', [0x61], 'x-klingon'],
  ['utf-7, which browsers refuse', [0x61], 'utf-7'],
])('%s: no text', (_, bytes, charset) => {
  expect(decode(bytes, charset)).toBeUndefined()
})

test('UTF-8 is not copied', () => {
  const received = Buffer.from('é')
  expect(utf8Of(received, null)).toBe(received)
})

test('only one BOM is cut, and only at the start', () => {
  expect(withoutBom(Buffer.from('\ufeff\ufeffa\ufeff')).toString()).toBe('\ufeffa\ufeff')
  expect(withoutBom(Buffer.from([0xef, 0xbb]))).toHaveLength(2)
  expect(withoutBom(Buffer.alloc(0))).toHaveLength(0)
})
