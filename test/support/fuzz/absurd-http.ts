// Makes one part of an HTTP message absurd: its first line, a field of its head, its body, or the bytes as a whole.
import fc from 'fast-check'
import { Absurd, absurdBytes, absurdText, type Named } from './absurd.ts'

/** A request or a response before it is written. Fields that say how the body is framed are added to it. */
export interface HttpMessage {
  first: string
  fields: [name: string, value: string][]
  body: Buffer
}

/** The bytes of a message. */
export function written({ first, fields, body }: HttpMessage): Buffer {
  const head = [first, ...fields.map(([name, value]) => `${name}: ${value}`), '', ''].join('\r\n')
  return Buffer.concat([Buffer.from(head, 'latin1'), body])
}

const withLength = (message: HttpMessage): HttpMessage => ({
  ...message,
  fields: [...message.fields, ['content-length', String(message.body.length)]],
})

/** Fields that decide where a message ends, or how it is read. */
const framing: [name: string, value: string][] = [
  ['content-length', '-1'],
  ['content-length', '0'],
  ['content-length', '99999999999999999999'],
  ['content-length', '5, 5'],
  ['content-length', '0x10'],
  ['transfer-encoding', 'chunked'],
  ['transfer-encoding', 'chunked, chunked'],
  ['transfer-encoding', 'gzip, chunked'],
  ['transfer-encoding', 'identity'],
  ['connection', 'close, upgrade, keep-alive'],
  ['connection', 'upgrade'],
  ['upgrade', 'websocket'],
  ['upgrade', 'h2c'],
  ['keep-alive', 'timeout=99999999999, max=-1'],
  ['expect', '100-continue'],
  ['expect', 'the unexpected'],
  ['trailer', 'content-length'],
  ['content-encoding', 'gzip'],
  ['content-encoding', 'br, gzip, deflate'],
  ['content-type', 'constructor'],
  ['content-type', `text/plain; charset=${'x'.repeat(300)}`],
  ['host', ''],
  [' folded', 'a\r\n b\r\n\tc'],
  ['no-colon\r\nx', 'a'],
  ['x', 'a\u0000b'],
  ['x', '\u00ff\u0080'],
  ['__proto__', 'a'],
  ['constructor', 'a'],
  ['x', 'y'.repeat(70_000)],
]

const chunked = [
  '5\r\nhello\r\n0\r\n\r\n',
  'fffffffff\r\nhello\r\n0\r\n\r\n',
  '-1\r\nhello',
  '5;a=b;c="d\r\nhello\r\n0\r\nx: y\r\n\r\n',
  'zz\r\n',
  `${'1\r\na\r\n'.repeat(10_000)}0\r\n\r\n`,
  `0\r\n${'x: y\r\n'.repeat(2_000)}\r\n`,
]

const choice = fc.nat({ max: 2 ** 20 })

/** @param firsts first lines that are no good */
export function absurdHttp(valid: Named<HttpMessage>[], firsts: string[]): fc.Arbitrary<Absurd> {
  const message = fc.constantFrom(...valid)
  /** @param whole whether the length of the body is written as it is */
  const made = (name: string, what: string, changed: HttpMessage, whole = true) =>
    new Absurd(name, what, [written(whole ? withLength(changed) : changed)])
  const values = absurdText(valid.flatMap(([, { fields }]) => fields.map(([, value]) => value)))
  return fc.oneof(
    fc.tuple(message, choice, values).map(([[name, each], n, value]) => {
      const at = n % (each.fields.length || 1)
      const fields = each.fields.map(([field, old], place): [string, string] => [field, place === at ? value : old])
      return made(name, `the field ${each.fields[at]?.[0]} other`, { ...each, fields })
    }),
    fc
      .tuple(message, fc.constantFrom(...framing), fc.boolean())
      .map(([[name, each], field, whole]) =>
        made(name, `${field[0]}: ${field[1].slice(0, 50)}`, { ...each, fields: [field, ...each.fields] }, whole),
      ),
    fc
      .tuple(message, fc.constantFrom(...chunked))
      .map(([[name, each], body]) =>
        made(
          name,
          'in chunks',
          { ...each, fields: [...each.fields, ['transfer-encoding', 'chunked']], body: Buffer.from(body) },
          false,
        ),
      ),
    fc.tuple(message, fc.constantFrom(...firsts)).map(([[name, each], first]) => made(name, first, { ...each, first })),
    fc.tuple(message, fc.constantFrom(100, 3_000)).map(([[name, each], times]) => {
      const fields = Array.from({ length: times }, (_, n): [string, string] => [`x-${n}`, 'a'])
      return made(name, `${times} fields`, { ...each, fields: [...fields, ...each.fields] })
    }),
    message.map(([name, each]) =>
      made(name, 'each field twice', { ...each, fields: [...each.fields, ...each.fields] }),
    ),
    message.map(([name, each]) => made(name, 'no length', each, false)),
    message.map(([name, each]) => {
      const text = written(withLength(each)).toString('latin1').replaceAll('\r\n', '\n')
      return new Absurd(name, 'lines end with LF', [Buffer.from(text, 'latin1')])
    }),
    absurdBytes(valid.map(([name, each]) => [name, written(withLength(each))])),
  )
}
