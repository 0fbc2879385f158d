// Finds the text of one member in the text of a JSON object, so that the member is passed on as it was written. Text
// made from the parsed value would lose digits of numbers, and members named twice.

/**
 * The text of a member, and how deep its value is nested: 0 for a scalar, 1 for `[]`. Of a member named twice the last
 * counts, as for `JSON.parse`.
 *
 * @param text of a JSON object, which `JSON.parse` takes
 * @returns `undefined` if there is none
 */
export function rawMember(text: string, name: string): { text: string; depth: number } | undefined {
  let found: { text: string; depth: number } | undefined
  let at = skipSpace(text, skipSpace(text, 0) + 1)
  while (text[at] === '"') {
    const nameEnd = endOfString(text, at)
    const start = skipSpace(text, skipSpace(text, nameEnd) + 1)
    const { end, depth } = endOfValue(text, start)
    if (isName(text.slice(at, nameEnd), name)) found = { text: text.slice(start, end), depth }
    at = skipSpace(text, end)
    if (text[at] === ',') at = skipSpace(text, at + 1)
  }
  return found
}

const isName = (literal: string, name: string) =>
  (literal.includes('\\') ? JSON.parse(literal) : literal.slice(1, -1)) === name

function skipSpace(text: string, at: number): number {
  while (' \t\n\r'.includes(text[at]) && at < text.length) at++
  return at
}

/** @param start of its quotation mark @returns after its last one */
function endOfString(text: string, start: number): number {
  let end = start
  do end = text.indexOf('"', end + 1)
  while (isEscaped(text, end))
  return end + 1
}

/** Whether an odd number of backslashes stands before it. */
function isEscaped(text: string, at: number) {
  let first = at
  while (text[first - 1] === '\\') first--
  return (at - first) % 2 === 1
}

function endOfValue(text: string, start: number): { end: number; depth: number } {
  let open = 0
  let depth = 0
  let at = start
  do {
    switch (text[at]) {
      case '"':
        at = endOfString(text, at)
        break
      case '{':
      case '[':
        depth = Math.max(depth, ++open)
        at++
        break
      case '}':
      case ']':
        open--
        at++
        break
      default:
        at++
    }
  } while (open > 0)
  // A number or a word: it ends before what cannot be of one.
  if (depth === 0 && text[start] !== '"') while (/[\w.+-]/.test(text[at])) at++
  return { end: at, depth }
}
