// Finds the text of one member in the text of a JSON object, so that the member is passed on as it was written. Text
// made from the parsed value would lose digits of numbers, and members named twice.

/** The text of a member, and how deep its value is nested: 0 for a scalar, 1 for `[]`. */
interface Raw {
  text: string
  depth: number
}

/**
 * Of a member named twice the last counts, as for `JSON.parse`.
 *
 * @param text of a JSON object, which `JSON.parse` takes
 * @returns `undefined` if there is none
 */
export function rawMember(text: string, name: string): Raw | undefined {
  return rawMembers(text, each => each === name).get(name)
}

/** The same of all whose names are meant, by name. */
export function rawMembers(text: string, isMeant: (name: string) => boolean): Map<string, Raw> {
  const found = new Map<string, Raw>()
  let at = skipSpace(text, skipSpace(text, 0) + 1)
  while (text[at] === '"') {
    const nameEnd = endOfString(text, at)
    const start = skipSpace(text, skipSpace(text, nameEnd) + 1)
    const { end, depth } = endOfValue(text, start)
    const name = nameIn(text.slice(at, nameEnd))
    if (isMeant(name)) found.set(name, { text: text.slice(start, end), depth })
    at = skipSpace(text, end)
    if (text[at] === ',') at = skipSpace(text, at + 1)
  }
  return found
}

const nameIn = (literal: string): string => (literal.includes('\\') ? JSON.parse(literal) : literal.slice(1, -1))

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
