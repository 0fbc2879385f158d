// From the bytes a backend sent, or handed over, to the content that every gateway and client gets. Text of any
// charset becomes UTF-8, the only one that travels further.
import { isUtf8 } from 'node:buffer'
import { MIMEType } from 'node:util'
import { type ErrorCode, versionOf } from '@keycast/protocol'
import { createRecent } from './collections/recent.ts'
import { isJson } from './json-grammar.ts'

/**
 * How a body is to be shown: `json` and `text` bodies are UTF-8, `base64` marks bytes that are no text. The body is
 * always the content itself, never its encoding.
 */
export type Format = 'json' | 'text' | 'base64'

/** What is said of a body. `version`: a hash of both. */
export interface Content {
  version: string
  contentType: string
  format: Format
}

/** `body`: JSON and text in UTF-8 without a BOM. */
export type ReadValue = { kind: 'value'; body: Buffer } & Content

type ReadContent = ReadValue | { kind: 'current' } | { kind: 'failed'; code: ErrorCode; message: string }

/** Longest content type that is read: it is kept with each value. The names in it have 127 characters each (RFC 6838). */
const CONTENT_TYPE_CHARACTERS_MAX = 512

const BYTES_TYPE = 'application/octet-stream'

interface Context {
  /** As the backend declared it. */
  contentType: string | undefined
  /** Held already: content of that version is not looked at further. */
  version: string | undefined
  /** Transcoding may make a body up to three times as long. */
  bytesMax: number
  /** It is a part of JSON that was parsed. */
  isParsed?: boolean
}

/**
 * The version is made from the body as it is passed on, after a BOM is cut and text is transcoded, and from its type:
 * whoever holds that content, on whatever node, knows its version.
 */
export function readContent(
  received: Buffer,
  { contentType: declared, version: held, bytesMax, isParsed = false }: Context,
): ReadContent {
  const { kind, charset, passedOn, passedOnAsText } = mediaTypeOf(declared)
  const text = kind === 'text' ? utf8Of(received, charset) : undefined
  const body = kind === 'json' ? withoutBom(received) : (text ?? received)
  if (body.length > bytesMax) {
    return { kind: 'failed', code: 'too_large', message: `the content is over ${bytesMax} bytes in UTF-8` }
  }
  const contentType = text ? passedOnAsText : passedOn

  const version = versionOf(body, contentType)
  if (version === held) return { kind: 'current' }

  const problem = kind === 'json' && !isParsed ? jsonProblem(body) : undefined
  if (problem) return { kind: 'failed', code: 'invalid_content', message: problem }
  return { kind: 'value', version, contentType, format: kind === 'json' ? 'json' : text ? 'text' : 'base64', body }
}

/** `passedOn`: the type that content has from here on; `passedOnAsText`: once it was decoded. */
interface MediaType {
  kind: 'json' | 'text' | 'bytes'
  charset: string | null
  passedOn: string
  passedOnAsText: string
}

/** Node takes 1.5 µs to read a type, and backends use few. */
const mediaTypes = createRecent<string, MediaType>(64)

function mediaTypeOf(written = BYTES_TYPE): MediaType {
  if (written.length > CONTENT_TYPE_CHARACTERS_MAX) return mediaTypeOf()
  const known = mediaTypes.use(written)
  if (known) return known
  const read = readMediaType(written)
  const kind = kindOf(read)
  const charset = read.params.get('charset')
  if (kind === 'json') read.params.delete('charset') // means nothing for JSON (RFC 8259 section 11), and may be wrong
  const passedOn = String(read)
  read.params.set('charset', 'utf-8')
  const mediaType = { kind, charset, passedOn, passedOnAsText: String(read) }
  mediaTypes.set(written, mediaType)
  return mediaType
}

/** Nothing is guessed from the bytes: content without a type that can be read is just bytes. */
function readMediaType(written: string) {
  try {
    return new MIMEType(written)
  } catch {
    return new MIMEType(BYTES_TYPE)
  }
}

/** Whether content of a declared type is JSON. */
export const isJsonType = (declared: string) => mediaTypeOf(declared).kind === 'json'

function kindOf({ type, subtype, essence }: MIMEType): 'json' | 'text' | 'bytes' {
  if (essence === 'application/json' || essence === 'text/json' || subtype.endsWith('+json')) return 'json'
  const isText = type === 'text' || essence === 'application/xml' || essence === 'application/javascript'
  return isText || subtype.endsWith('+xml') ? 'text' : 'bytes'
}

/**
 * The reason why a body is no JSON (RFC 8259), or `undefined` if it is. Gateways splice it into a message as it came,
 * so it must be one whole value and nothing else.
 */
export function jsonProblem(body: Buffer) {
  if (body.length === 0) return 'the content is empty, which no JSON is'
  if (!isUtf8(body)) return 'the JSON is not in UTF-8'
  return isJson(body) ? undefined : 'the JSON does not parse'
}

const utf8Bom = Buffer.from([0xef, 0xbb, 0xbf])
const utf16LittleEndianBom = Buffer.from([0xff, 0xfe])
const utf16BigEndianBom = Buffer.from([0xfe, 0xff])

/**
 * The characters of windows-1252 in place of the control characters 0x80 to 0x9f
 * (https://encoding.spec.whatwg.org/#index-windows-1252).
 */
const windows1252Specials =
  '\u20ac\x81\u201a\u0192\u201e\u2026\u2020\u2021\u02c6\u2030\u0160\u2039\u0152\x8d\u017d\x8f' +
  '\x90\u2018\u2019\u201c\u201d\u2022\u2013\u2014\u02dc\u2122\u0161\u203a\u0153\x9d\u017e\u0178'

/**
 * The text in UTF-8 without a BOM, or `undefined` if it does not decode. A BOM counts for more than the declared
 * character set (https://encoding.spec.whatwg.org/#decode). With neither, text must be UTF-8.
 *
 * @param charset as declared, by any of its names
 * @returns the very bytes received, or a part of them, where they are UTF-8
 */
export function utf8Of(received: Buffer, charset: string | null): Buffer | undefined {
  try {
    const decoder = new TextDecoder(charsetOfBom(received) ?? charset ?? 'utf-8', { fatal: true })
    if (decoder.encoding === 'windows-1252') return Buffer.from(decodeWindows1252(received))
    if (decoder.encoding !== 'utf-8') return Buffer.from(decoder.decode(received))
  } catch {
    return undefined // bytes that are not of this charset, or a charset nobody here knows
  }
  const body = withoutBom(received)
  return isUtf8(body) ? body : undefined
}

/** The bytes without the UTF-8 BOM they may start with. */
export function withoutBom(bytes: Buffer) {
  return startsWith(bytes, utf8Bom) ? bytes.subarray(utf8Bom.length) : bytes
}

function charsetOfBom(bytes: Buffer) {
  if (startsWith(bytes, utf8Bom)) return 'utf-8'
  if (startsWith(bytes, utf16LittleEndianBom)) return 'utf-16le'
  if (startsWith(bytes, utf16BigEndianBom)) return 'utf-16be'
  return undefined
}

function startsWith(bytes: Buffer, start: Buffer) {
  return bytes.length >= start.length && start.compare(bytes, 0, start.length) === 0
}

/**
 * windows-1252, which ISO-8859-1 and US-ASCII are other names of. Node's own decoder gives control characters in place
 * of quotes, dashes and the euro in several releases (nodejs/node issue 60888), so nodes would disagree on a version.
 */
function decodeWindows1252(bytes: Buffer) {
  return bytes.toString('latin1').replace(/[\x80-\x9f]/g, control => windows1252Specials[control.charCodeAt(0) - 0x80])
}
