// Text of any charset to UTF-8, the only one that travels further.
import { isUtf8 } from 'node:buffer'

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
