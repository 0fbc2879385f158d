// From the bytes a backend sent, or handed over, to the content that every gateway and client gets.
import { isUtf8 } from 'node:buffer'
import { MIMEType } from 'node:util'
import { type ErrorCode, versionOf } from '@keycast/protocol'
import { utf8Of, withoutBom } from './text.ts'

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

interface Context {
  /** As the backend declared it. */
  contentType: string | undefined
  /** Held already: content of that version is not looked at further. */
  version: string | undefined
  /** Transcoding may make a body up to three times as long. */
  bytesMax: number
}

/**
 * The version is made from the body as it is passed on, after a BOM is cut and text is transcoded, and from its type:
 * whoever holds that content, on whatever node, knows its version.
 */
export function readContent(
  received: Buffer,
  { contentType: declared, version: held, bytesMax }: Context,
): ReadContent {
  const mediaType = readMediaType(declared)
  const kind = kindOf(mediaType)
  const text = kind === 'text' ? utf8Of(received, mediaType.params.get('charset')) : undefined
  const body = kind === 'json' ? withoutBom(received) : (text ?? received)
  if (body.length > bytesMax) {
    return { kind: 'failed', code: 'too_large', message: `the content is over ${bytesMax} bytes in UTF-8` }
  }
  if (kind === 'json') mediaType.params.delete('charset') // means nothing for JSON (RFC 8259 section 11), and may be wrong
  if (text) mediaType.params.set('charset', 'utf-8')
  const contentType = String(mediaType)

  const version = versionOf(body, contentType)
  if (version === held) return { kind: 'current' }

  const problem = kind === 'json' ? jsonProblem(body) : undefined
  if (problem) return { kind: 'failed', code: 'invalid_content', message: problem }
  return { kind: 'value', version, contentType, format: kind === 'json' ? 'json' : text ? 'text' : 'base64', body }
}

/** Nothing is guessed from the bytes: content without a type that can be read is just bytes. */
function readMediaType(written = 'application/octet-stream') {
  try {
    if (written.length <= CONTENT_TYPE_CHARACTERS_MAX) return new MIMEType(written)
  } catch {
    // no type at all: as if there were none
  }
  return new MIMEType('application/octet-stream')
}

/** Whether content of a declared type is JSON. */
export const isJsonType = (declared: string) => kindOf(readMediaType(declared)) === 'json'

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
  try {
    // As Latin-1: the bytes of JSON's grammar are all ASCII, and whatever else stands in a string is allowed there, so
    // UTF-8 parses in either reading. This one needs no decoding, which costs more than the parsing itself.
    JSON.parse(body.toString('latin1'))
    return undefined
  } catch {
    // Not the parser's own words: they quote the content.
    return 'the JSON does not parse'
  }
}
