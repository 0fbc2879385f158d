// Parts of a JSON text as the bytes that they are. Parsed and written anew, a long number would be another one, and each
// value would differ from what its backend sent.

const QUOTE = 0x22
const COMMA = 0x2c
const OPEN_LIST = 0x5b
const BACKSLASH = 0x5c
const CLOSE_LIST = 0x5d
const OPEN_MAP = 0x7b
const CLOSE_MAP = 0x7d

const isSpace = (byte: number) => byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09

/**
 * The value that a pointer leads to (RFC 6901).
 *
 * @param json that parses
 * @returns without space around it; `undefined` where nothing is there
 */
export function pointed(json: Buffer, pointer: string): Buffer | undefined {
  const names = pointer
    .split('/')
    .slice(1)
    .map(name => name.replaceAll('~1', '/').replaceAll('~0', '~'))
  let value: Buffer | undefined = json.subarray(afterSpace(json, 0))
  for (const name of names) value = value && memberOf(value, name)
  return value?.subarray(0, endOf(value, 0))
}

/** @param json from its first byte on */
export const isList = (json: Buffer): boolean => json[0] === OPEN_LIST

/** One at a time: all of `[0,0,0…]` take sixty times the room of its text. @param json a list, from its first byte on */
export function* elementsOf(json: Buffer): Generator<Buffer, void> {
  for (let at = afterSpace(json, 1); json[at] !== CLOSE_LIST; ) {
    const end = endOf(json, at)
    yield json.subarray(at, end)
    at = afterSpace(json, end)
    if (json[at] === COMMA) at = afterSpace(json, at + 1)
  }
}

/** @param json from its first byte on */
function memberOf(json: Buffer, name: string): Buffer | undefined {
  if (isList(json)) return /^(0|[1-9]\d*)$/.test(name) ? elementOf(json, Number(name)) : undefined
  if (json[0] !== OPEN_MAP) return undefined
  for (let at = afterSpace(json, 1); json[at] !== CLOSE_MAP; ) {
    const nameEnd = endOf(json, at)
    const start = afterSpace(json, afterSpace(json, nameEnd) + 1) // past the colon
    const end = endOf(json, start)
    if (JSON.parse(json.toString('utf8', at, nameEnd)) === name) return json.subarray(start, end)
    at = afterSpace(json, end)
    if (json[at] === COMMA) at = afterSpace(json, at + 1)
  }
  return undefined
}

function elementOf(json: Buffer, index: number): Buffer | undefined {
  let left = index
  for (const element of elementsOf(json)) if (left-- === 0) return element
  return undefined
}

function afterSpace(json: Buffer, from: number) {
  let at = from
  while (isSpace(json[at])) at++
  return at
}

/** @param from where a value begins @returns where it ends */
function endOf(json: Buffer, from: number): number {
  if (json[from] === QUOTE) return endOfText(json, from)
  if (json[from] !== OPEN_LIST && json[from] !== OPEN_MAP) return endOfWord(json, from)
  let depth = 0
  for (let at = from; ; ) {
    const byte = json[at]
    if (byte === QUOTE) {
      at = endOfText(json, at)
      continue
    }
    at++
    if (byte === OPEN_LIST || byte === OPEN_MAP) depth++
    else if ((byte === CLOSE_LIST || byte === CLOSE_MAP) && --depth === 0) return at
  }
}

function endOfText(json: Buffer, from: number) {
  for (let at = from + 1; ; at++) {
    if (json[at] === BACKSLASH) at++
    else if (json[at] === QUOTE) return at + 1
  }
}

/** A number, or true, false, null. */
function endOfWord(json: Buffer, from: number) {
  let at = from
  while (
    at < json.length &&
    !isSpace(json[at]) &&
    json[at] !== COMMA &&
    json[at] !== CLOSE_LIST &&
    json[at] !== CLOSE_MAP
  )
    at++
  return at
}
