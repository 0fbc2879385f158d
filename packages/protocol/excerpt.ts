// The text by which an error or a log line shows a thing that somebody sent: short, whatever the thing is.

/** Characters of an excerpt without its mark that more follows. */
const CHARACTERS_MAX = 60

/**
 * A thing that came from outside, for a message. A list or an object is shown without what is in it, so the time taken
 * does not depend on the size or depth of the thing: `JSON.stringify` fails on what is nested some thousand levels deep,
 * and so would any function that calls itself for each level.
 *
 * @param thing as parsed from JSON or YAML
 * @returns of at most some 60 characters and well-formed Unicode; a text is in quotes
 */
export function excerpt(thing: unknown): string {
  if (typeof thing === 'string') return quoted(thing)
  if (Array.isArray(thing)) return thing.length === 0 ? '[]' : '[…]'
  return typeof thing === 'object' && thing !== null ? '{…}' : shortened(String(thing))
}

function quoted(text: string) {
  // Cut first: a text of megabytes is not copied. Cut again, because escapes are longer than what they stand for.
  const literal = JSON.stringify(text.slice(0, CHARACTERS_MAX + 1))
  return text.length <= CHARACTERS_MAX && literal.length <= CHARACTERS_MAX + 2 ? literal : `${shortened(literal)}"`
}

/** The start of a text, without quotes. */
export function shortened(text: string) {
  if (text.length <= CHARACTERS_MAX) return text
  // Half of a pair, at the cut, would be no character.
  return `${text.slice(0, CHARACTERS_MAX).replace(/[\ud800-\udbff]$/, '')}…`
}
