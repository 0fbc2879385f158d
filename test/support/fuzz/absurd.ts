// Makes one part of a valid message absurd, and says which. A failure shrinks to an earlier message, an outer part and a
// plainer absurdity.
import fc from 'fast-check'

/** A message, or something else that is valid, and what to call it. */
export type Named<T> = [name: string, message: T]

/** What a stranger sends. Printed as the message it was, what was done to it, and the beginning of what it became. */
export class Absurd {
  readonly name: string
  readonly what: string
  /** Most messages have one. */
  readonly parts: Buffer[]

  constructor(name: string, what: string, parts: Buffer[]) {
    this.name = name
    this.what = what
    this.parts = parts
  }

  get bytes() {
    return this.parts[0] ?? Buffer.alloc(0)
  }

  /** The bytes as text: what is no character is another one there. */
  get text() {
    return this.bytes.toString()
  }

  [fc.toStringMethod]() {
    const shown = this.parts.map(part => `${JSON.stringify(part.toString('utf8', 0, 300))} (${part.length} bytes)`)
    return `${this.name}, ${this.what}: ${shown.join(' + ')}`
  }
}

/** Above what most fields may have, and below what a WebSocket message may. */
const LONG = 200_000

/** Recursion ends at some 10,000 levels in JavaScript, and at 1,000 in Python. */
const nested = (open: string, inner: string, close: string, levels: number) =>
  open.repeat(levels) + inner + close.repeat(levels)

/** JSON texts to stand in the place of any value, and a few that are none. */
const values: Named<string>[] = [
  ['null', 'null'],
  ['false', 'false'],
  ['an empty text', '""'],
  ['an empty list', '[]'],
  ['an empty object', '{}'],
  ['0', '0'],
  ['-0', '-0'],
  ['-1', '-1'],
  ['a half', '0.5'],
  ['2^31', '2147483648'],
  ['2^32', '4294967296'],
  ['2^53 - 1', '9007199254740991'],
  ['2^53', '9007199254740992'],
  ['-2^53', '-9007199254740992'],
  ['1e308', '1e308'],
  ['-1e308', '-1e308'],
  ['beyond numbers', '1e999'],
  ['5e-324', '5e-324'],
  ['a number of 400 digits', '9'.repeat(400)],
  ['NaN', 'NaN'],
  ['NaN in quotes', '"NaN"'],
  ['Infinity in quotes', '"Infinity"'],
  ['a number in quotes', '"1e3"'],
  ['__proto__', '"__proto__"'],
  ['constructor', '"constructor"'],
  ['toString', '"toString"'],
  ['a lone surrogate', '"\\ud800"'],
  ['surrogates the wrong way round', '"\\udc00\\ud800"'],
  ['a control character', '"\\u0000"'],
  ['a line break', '"a\\r\\nb: c"'],
  ['combining characters', `"${'e\u0301\u0323'.repeat(50)}"`],
  ['an invisible character', '"a\\u202eb\\u200b"'],
  ['a path upwards', '"../../etc/passwd"'],
  ['a variable', `"\${HOME}"`],
  ['colons', '"a:b:c"'],
  ['lists of lists', '[[],[[]],{}]'],
  ['an object with a prototype', '{"__proto__":{"isPolluted":true}}'],
  ['an object with a constructor', '{"constructor":{"prototype":{"isPolluted":true}}}'],
  ['an object that cannot be text', '{"toString":1,"valueOf":1,"toJSON":1}'],
  ['an object like a list', '{"length":1e9,"0":1}'],
  ['an object like a promise', '{"then":1}'],
]

/** Of these fewer are sent: each takes as long as a hundred others. */
const large: Named<string>[] = [
  ['a list 65 deep', nested('[', '', ']', 65)],
  ['a list 5,000 deep', nested('[', '', ']', 5_000)],
  ['an object 5,000 deep', nested('{"a":', '1', '}', 5_000)],
  ['a list 100,000 deep', nested('[', '', ']', 100_000)],
  ['an object 30,000 deep', nested('{"a":', '1', '}', 30_000)],
  ['a long text', `"${'x'.repeat(LONG)}"`],
  ['a long text of escapes', `"${'\\u0001'.repeat(LONG / 6)}"`],
  ['a long text of quotes', `"${'\\"'.repeat(LONG / 2)}"`],
  ['a long text of spaces', `"${' '.repeat(LONG)}"`],
  ['a long list', `[${'0,'.repeat(LONG / 2)}0]`],
  ['a long list of texts', `[${'"a",'.repeat(LONG / 4)}"a"]`],
  ['a long list of objects', `[${'{},'.repeat(LONG / 3)}{}]`],
  ['an object of many fields', `{${Array.from({ length: 10_000 }, (_, n) => `"f${n}":0`)}}`],
]

/** Names that objects have by themselves, or that are read as numbers. */
const names = ['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'then', 'length', '0', '', '\ud800', '\u0000']

/** Gives the JSON text in the place of a part of a message; `n` chooses among what the part has. */
type Change = (part: unknown, n: number) => string

const changes: Named<Change>[] = [
  ...values.map(([what, json]): Named<Change> => [what, () => json]),
  ['in a list', part => `[${JSON.stringify(part)}]`],
  ['in quotes', part => JSON.stringify(JSON.stringify(part))],
  ['in an object', part => `{"a":${JSON.stringify(part)}}`],
  ['repeated', part => repeated(part)],
  ['with a character more', (part, n) => JSON.stringify(withCharacter(String(part), n))],
  ['shortened', (part, n) => JSON.stringify(String(part).slice(0, n % (String(part).length + 1)))],
  ['in capitals', part => JSON.stringify(String(part).toUpperCase())],
  ['one more', part => String(Number(part) + 1)],
  ['negative', part => String(-Number(part) - 1)],
  ['a field missing', (part, n) => withFields(part, fields => fields.toSpliced(n % (fields.length + 1), 1))],
  ['a field twice, the second absurd', (part, n) => withFields(part, fields => [...fields, absurdField(fields, n)])],
  ['a field twice, the first absurd', (part, n) => withFields(part, fields => [absurdField(fields, n), ...fields])],
  ['a field more', (part, n) => withFields(part, fields => [...fields, [names[n % names.length], valueAt(n)]])],
  ['a field of another name', (part, n) => withFields(part, fields => renamed(fields, n))],
  ['its fields backwards', part => withFields(part, fields => fields.toReversed())],
]

function valueAt(n: number) {
  const all = n % 8 === 0 ? large : values
  return all[(n >> 4) % all.length][1]
}

/** The name of a field, and its value as JSON. */
type Field = [name: string, json: string]

const absurdField = (fields: Field[], n: number): Field => [fields[n % (fields.length || 1)]?.[0] ?? 'a', valueAt(n)]

const renamed = (fields: Field[], n: number) =>
  fields.map(([name, json], at): Field => [at === n % fields.length ? names[(n >> 4) % names.length] : name, json])

function repeated(part: unknown) {
  if (typeof part === 'string') return JSON.stringify(part.repeat(1_000))
  const json = JSON.stringify(part)
  const times = Math.max(2, Math.min(1_000, Math.floor(LONG / json.length)))
  const each = Array.isArray(part) ? json.slice(1, -1) : json
  return `[${Array.from({ length: times }, () => each).filter(Boolean)}]`
}

const characters = [
  '\u0000',
  '\n',
  ' ',
  '"',
  '\\',
  '/',
  ':',
  '*',
  '.',
  '\u007f',
  '\u00e9',
  '\u2028',
  '\ud83d',
  '%',
  '{',
]

function withCharacter(text: string, n: number) {
  const at = (n >> 4) % (text.length + 1)
  return text.slice(0, at) + characters[n % characters.length] + text.slice(at)
}

/** What is no object becomes the only field of one. */
function withFields(part: unknown, change: (fields: Field[]) => Field[]) {
  const isObject = typeof part === 'object' && part !== null && !Array.isArray(part)
  const fields = Object.entries(isObject ? part : { a: part }).map(
    ([name, value]): Field => [name, JSON.stringify(value)],
  )
  return `{${change(fields).map(([name, json]) => `${JSON.stringify(name)}:${json}`)}}`
}

/** The JSON text of a value whose part number `at`, in the order of writing, is written by `write`. */
function textWith(value: unknown, at: number, write: (part: unknown) => string) {
  let written = 0
  const textOf = (part: unknown): string => {
    if (written++ === at) return write(part)
    if (Array.isArray(part)) return `[${part.map(textOf)}]`
    if (typeof part !== 'object' || part === null) return JSON.stringify(part)
    return `{${Object.entries(part).map(([name, inner]) => `${JSON.stringify(name)}:${textOf(inner)}`)}}`
  }
  return textOf(value)
}

function partsIn(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 1
  return Object.values(value).reduce((sum: number, inner) => sum + partsIn(inner), 1)
}

/** Bytes of no character in UTF-8: an overlong one, and a surrogate. */
const noCharacter = Buffer.of(0xc0, 0xaf, 0xed, 0xa0, 0x80)

const putIn = (bytes: Buffer, at: number, more: Buffer) =>
  Buffer.concat([bytes.subarray(0, at % (bytes.length + 1)), more, bytes.subarray(at % (bytes.length + 1))])

/** Changes of a message's bytes, whatever they mean. */
const cuts: Named<(bytes: Buffer, n: number) => Buffer>[] = [
  ['cut', (bytes, n) => bytes.subarray(0, n % (bytes.length + 1))],
  ['cut at the front', (bytes, n) => bytes.subarray(n % (bytes.length + 1))],
  ['nothing', () => Buffer.alloc(0)],
  ['one byte other', (bytes, n) => Buffer.from(bytes.map((byte, at) => (at === n % bytes.length ? n >> 8 : byte)))],
  ['a byte more', (bytes, n) => putIn(bytes, n, Buffer.of(n >> 8))],
  ['bytes of no character in it', (bytes, n) => putIn(bytes, n, noCharacter)],
  ['a mark of byte order before it', bytes => Buffer.concat([Buffer.of(0xef, 0xbb, 0xbf), bytes])],
  ['much space before it', bytes => Buffer.concat([Buffer.alloc(LONG, ' '), bytes])],
  ['much space behind it', bytes => Buffer.concat([bytes, Buffer.alloc(LONG, '\n')])],
  ['twice', bytes => Buffer.concat([bytes, bytes])],
  ['repeated', bytes => Buffer.concat(Array.from({ length: Math.ceil(LONG / (bytes.length || 1)) }, () => bytes))],
  ['zeros instead', bytes => Buffer.alloc(bytes.length)],
]

const anyChange = fc.oneof(
  { weight: 9, arbitrary: fc.constantFrom(...changes) },
  { weight: 1, arbitrary: fc.constantFrom(...large).map(([what, json]): Named<Change> => [what, () => json]) },
)

/** Chooses a part, and of it what a change needs. */
const choice = fc.nat({ max: 2 ** 20 })

/** Makes one part of any message absurd. */
export type Twist = (name: string, message: unknown) => Absurd

export const twists: fc.Arbitrary<Twist> = fc.tuple(choice, anyChange, choice).map(([at, [what, change], n]) => {
  return (name, message) => {
    const place = at % partsIn(message)
    const text = textWith(message, place, part => change(part, n))
    return new Absurd(name, `part ${place}: ${what}`, [Buffer.from(text)])
  }
})

/** The JSON of a message, in which one part is absurd; now and then the bytes as a whole. */
export function absurdJson(valid: Named<unknown>[]): fc.Arbitrary<Absurd> {
  const inside = fc.tuple(fc.constantFrom(...valid), twists).map(([[name, value], twist]) => twist(name, value))
  const whole = absurdBytes(valid.map(([name, value]) => [name, Buffer.from(JSON.stringify(value))]))
  return fc.oneof({ weight: 9, arbitrary: inside }, { weight: 1, arbitrary: whole })
}

export function absurdBytes(valid: Named<Buffer>[]): fc.Arbitrary<Absurd> {
  return fc
    .tuple(fc.constantFrom(...valid), fc.constantFrom(...cuts), choice)
    .map(([[name, bytes], [what, cut], n]) => new Absurd(name, what, [cut(bytes, n)]))
}

/** Text that is not JSON, such as a key or a header. */
export function absurdText(valid: string[]): fc.Arbitrary<string> {
  const text = fc.constantFrom(...valid)
  const unquoted = [...values, ...large].map(([, json]) => (json.startsWith('"') ? (JSON.parse(json) as string) : json))
  return fc.oneof(
    fc.constantFrom(...unquoted),
    fc.tuple(text, choice).map(([text, n]) => withCharacter(text, n)),
    fc.tuple(text, choice).map(([text, n]) => text.slice(0, n % (text.length + 1))),
    fc.tuple(text, choice).map(([text, n]) => text.slice(n % (text.length + 1))),
    text.map(text => text + text),
    text.map(text => text.repeat(Math.ceil(LONG / (text.length || 1)))),
    fc.string({ unit: 'binary', maxLength: 300 }),
  )
}

const partCuts: Named<(parts: Buffer[]) => Buffer[]>[] = [
  ['no part', () => []],
  ['an empty part', () => [Buffer.alloc(0)]],
  ['the last part missing', parts => parts.slice(0, -1)],
  ['the first part missing', parts => parts.slice(1)],
  ['a part more', parts => [...parts, Buffer.from('more')]],
  ['a hundred parts more', parts => [...parts, ...Array.from({ length: 100 }, () => Buffer.from('more'))]],
  ['the last part longer', parts => [...parts.slice(0, -1), Buffer.concat([...parts.slice(-1), Buffer.from('more')])]],
  ['the last part shorter', parts => [...parts.slice(0, -1), ...parts.slice(-1).map(part => part.subarray(1))]],
  ['the parts backwards', parts => parts.toReversed()],
]

/** A message of several parts, of which the first is JSON: that is absurd, or what is behind it. */
export function absurdParts(valid: Named<Buffer[]>[]): fc.Arbitrary<Absurd> {
  const behind = new Map(valid.map(([name, [, ...rest]]) => [name, rest]))
  const head = absurdJson(valid.map(([name, [head]]) => [name, JSON.parse(head.toString())])).map(
    ({ name, what, parts }) => new Absurd(name, what, [...parts, ...(behind.get(name) ?? [])]),
  )
  const parts = fc
    .tuple(fc.constantFrom(...valid), fc.constantFrom(...partCuts))
    .map(([[name, parts], [what, cut]]) => new Absurd(name, what, cut(parts)))
  return fc.oneof({ weight: 4, arbitrary: head }, { weight: 1, arbitrary: parts })
}
