import { utf8Of, withoutBom } from './text.ts'

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
