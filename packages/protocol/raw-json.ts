// Finds the text of one member in the text of a JSON object, so that the member is passed on as it was written. Text
// made from the parsed value would lose digits of numbers, and members named twice.

/**
 * The text of a member, and how deep its value is nested: 0 for a scalar, 1 for `[]`. Of a member named twice the last
 * counts, as for `JSON.parse`.
 *
 * @param {string} text of a JSON object, which `JSON.parse` takes
 * @param {string} name
 * @returns {{ text: string, depth: number } | undefined} `undefined` if there is none
 */
export function rawMember(text, name) {
  /** @type {{ text: string, depth: number } | undefined} */
  let found
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

/** @param {string} literal @param {string} name */
const isName = (literal, name) => (literal.includes('\\') ? JSON.parse(literal) : literal.slice(1, -1)) === name

/** @param {string} text @param {number} at @returns {number} */
function skipSpace(text, at) {
  while (' \t\n\r'.includes(text[at]) && at < text.length) at++
  return at
}

/** @param {string} text @param {number} start of its quotation mark @returns {number} after its last one */
function endOfString(text, start) {
  let end = start
  do end = text.indexOf('"', end + 1)
  while (isEscaped(text, end))
  return end + 1
}

/** Whether an odd number of backslashes stands before it. @param {string} text @param {number} at */
function isEscaped(text, at) {
  let first = at
  while (text[first - 1] === '\\') first--
  return (at - first) % 2 === 1
}

/** @param {string} text @param {number} start @returns {{ end: number, depth: number }} */
function endOfValue(text, start) {
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
