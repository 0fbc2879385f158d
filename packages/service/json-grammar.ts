// Whether bytes are JSON (RFC 8259), without making anything of them. Of 4 MiB of brackets, or of maps whose members all
// have other names, `JSON.parse` makes 200 MB in a second; of 64 MiB it takes half a minute, and the process with it.

const COMMA = 0x2c
const COLON = 0x3a
const LIST = 0x5b
const LIST_END = 0x5d
const MAP = 0x7b
const MAP_END = 0x7d

/** @returns a table of bytes */
const tableOf = (characters: string) => {
  const table = new Uint8Array(256)
  for (const byte of Buffer.from(characters)) table[byte] = 1
  return table
}

const spaces = tableOf(' \t\n\r')
const digits = tableOf('0123456789')
const hexDigits = tableOf('0123456789abcdefABCDEF')
/** They may follow a backslash, beside `u`. */
const escaped = tableOf('"\\/bfnrt')

/** @param bytes in UTF-8: what is beyond ASCII may stand in any text */
export function isJson(bytes: Buffer): boolean {
  const { length } = bytes
  /** The byte that ends each list and map that is open. */
  let ends = new Uint8Array(64)
  let depth = 0

  // Each returns where that ends, or -1. A byte beyond the last is `undefined`, and in no table.
  for (let at = afterSpace(bytes, 0); ; ) {
    const byte = bytes[at]
    if (byte === LIST || byte === MAP) {
      if (depth === ends.length) {
        const longer = new Uint8Array(2 * depth)
        longer.set(ends)
        ends = longer
      }
      ends[depth++] = byte + (LIST_END - LIST)
      at = afterSpace(bytes, at + 1)
      if (bytes[at] !== ends[depth - 1]) {
        if (byte === MAP) at = afterName(bytes, at)
        if (at === -1) return false
        continue
      }
    } else {
      at = afterScalar(bytes, at)
      if (at === -1) return false
      at = afterSpace(bytes, at)
    }
    // A value is over, and with it those around it that end here.
    while (depth > 0 && bytes[at] === ends[depth - 1]) {
      depth--
      at = afterSpace(bytes, at + 1)
    }
    if (depth === 0) return at === length
    if (bytes[at] !== COMMA) return false
    at = afterSpace(bytes, at + 1)
    if (ends[depth - 1] === MAP_END) at = afterName(bytes, at)
    if (at === -1) return false
  }
}

function afterSpace(bytes: Buffer, from: number) {
  let at = from
  while (spaces[bytes[at]]) at++
  return at
}

/** @returns where the value of a member begins */
function afterName(bytes: Buffer, from: number) {
  const end = afterText(bytes, from)
  if (end === -1) return -1
  const colon = afterSpace(bytes, end)
  return bytes[colon] === COLON ? afterSpace(bytes, colon + 1) : -1
}

function afterScalar(bytes: Buffer, from: number) {
  switch (bytes[from]) {
    case 0x22:
      return afterText(bytes, from)
    case 0x66:
      return afterWord(bytes, from, 'false')
    case 0x6e:
      return afterWord(bytes, from, 'null')
    case 0x74:
      return afterWord(bytes, from, 'true')
    default:
      return afterNumber(bytes, from)
  }
}

const afterWord = (bytes: Buffer, from: number, word: string) =>
  bytes.toString('latin1', from, from + word.length) === word ? from + word.length : -1

function afterText(bytes: Buffer, from: number) {
  if (bytes[from] !== 0x22) return -1
  const { length } = bytes
  for (let at = from + 1; at < length; at++) {
    const byte = bytes[at]
    if (byte === 0x22) return at + 1
    if (byte < 0x20) return -1
    if (byte !== 0x5c) continue
    at++
    if (escaped[bytes[at]]) continue
    if (bytes[at] !== 0x75) return -1
    for (const end = at + 4; at < end; ) if (!hexDigits[bytes[++at]]) return -1
  }
  return -1
}

function afterNumber(bytes: Buffer, from: number) {
  let at = bytes[from] === 0x2d ? from + 1 : from
  at = bytes[at] === 0x30 ? at + 1 : afterDigits(bytes, at)
  if (at !== -1 && bytes[at] === 0x2e) at = afterDigits(bytes, at + 1)
  if (at === -1 || (bytes[at] !== 0x65 && bytes[at] !== 0x45)) return at
  at++
  return afterDigits(bytes, bytes[at] === 0x2b || bytes[at] === 0x2d ? at + 1 : at)
}

/** @returns -1 where there is none */
function afterDigits(bytes: Buffer, from: number) {
  let at = from
  while (digits[bytes[at]]) at++
  return at > from ? at : -1
}
