// Rules as keycast.yaml and tokens hold them: patterns of keys, `namespace:id`, by verb. rights.ts decides by them.
import { excerpt, namespaceProblem } from '@keycast/protocol'

/** Longest pattern. Keys may be longer: `*` and `**` stand for as much as there is. */
export const PATTERN_CHARACTERS_MAX = 256

/** Patterns of one rule, its verbs together. With the limit above it bounds the text of a rule to 256 KB. */
const PATTERNS_MAX = 1_000

/** One whole segment, whatever it is; in place of the namespace, any namespace. No literal segment holds the character. */
export const ANY = '*'

/** The last segment of a pattern: one segment or more. */
const REST = '**'

/** The user's name, which is put in as text. */
const SUB = '{sub}'

/** The characters of a segment: those of keys, see packages/protocol/keys.js. */
const segmentGrammar = /^[A-Za-z0-9._~@:+,=!$'() \p{L}\p{M}\p{N}-]+$/u

/**
 * The verbs that can be granted. Getting and subscribing are `read`, of a room from now on; what was before is `history`,
 * and to be told who is there `members`.
 */
export const verbs = Object.freeze(['read', 'history', 'members', 'publish', 'join'] as const)

/** The verbs that `read` grants as well, unless keycast.yaml names them. */
export const grantedByRead: readonly Verb[] = Object.freeze(['history', 'members'])

export type Verb = (typeof verbs)[number]

/** Patterns by verb. */
export type Rule = Record<Verb, Pattern[]>

export interface Pattern {
  /** As it was written. */
  text: string
  /** The namespace, then those of the id; `*` is any one. */
  segments: readonly string[]
  /** Whether one segment or more must follow. */
  rest: boolean
  /** Whether `{sub}` is still to be filled in. */
  namesUser: boolean
}

/**
 * Reads a pattern as an operator or a token writes it.
 *
 * @param options whether there is a user whose name `{sub}` can stand for
 * @returns a problem names the pattern, shortened where it is long
 */
export function readPattern(text: unknown, { user }: { user: boolean }): Pattern | { problem: string } {
  if (typeof text !== 'string') return { problem: `${excerpt(text)} is no pattern: write text, as in "room:*"` }
  if (text.length > PATTERN_CHARACTERS_MAX) {
    return { problem: `${excerpt(text)} is longer than ${PATTERN_CHARACTERS_MAX} characters` }
  }
  const colon = text.indexOf(':')
  if (colon === -1) return { problem: `${excerpt(text)} has no namespace: write namespace:id, as in "room:*"` }
  const namespace = text.slice(0, colon)
  const ids = text.slice(colon + 1).split('/')
  const problem = namespaceTrouble(namespace) ?? idTrouble(ids, user)
  if (problem) return { problem: `${excerpt(text)}: ${problem}` }

  const rest = ids.at(-1) === REST
  if (rest) ids.pop()
  return { text, segments: [namespace, ...ids], rest, namesUser: ids.some(segment => segment.includes(SUB)) }
}

function namespaceTrouble(namespace: string) {
  if (namespace === ANY) return undefined
  if (namespace.includes(SUB)) return 'a namespace cannot hold {sub}'
  if (namespace.includes(ANY)) return '* stands for the whole namespace'
  return namespaceProblem(namespace)
}

/** @param segments of the id */
function idTrouble(segments: string[], user: boolean) {
  for (const [index, segment] of segments.entries()) {
    if (segment === ANY) continue
    if (segment === REST) {
      if (index === segments.length - 1) continue
      return '** stands at the end only'
    }
    if (segment === '') {
      if (segments.length === 1) continue
      return 'a segment of the id is empty'
    }
    if (segment.includes(ANY)) return '* stands for a whole segment'
    if (segment.includes(SUB) && !user) return '{sub} has no name to stand for: an anonymous session has no user'
    const literal = segment.replaceAll(SUB, 'x')
    if (!segmentGrammar.test(literal))
      return 'a segment has the characters of keys with or without {sub}, or is * or **'
    if (literal !== literal.normalize()) return 'letters with marks are written as one character (Unicode form NFC)'
    // No key has one, so the pattern would admit nothing and say nothing.
    if (segment === '.' || segment === '..') return 'no key has a "." or ".." segment'
  }
  return undefined
}

/**
 * Reads patterns by verb, as keycast.yaml and tokens hold them.
 *
 * @param options `user`: whether `{sub}` has a name to stand for; `strict`: an unknown verb is a problem. In a token it
 *   is not: a newer gateway may know it
 * @returns the paths lead into `written`
 */
export function readRule(
  written: unknown,
  { user, strict }: { user: boolean; strict: boolean },
): { rule: Rule; problems: { path: (string | number)[]; problem: string }[] } {
  const rule: Rule = mapVerbs(() => [])
  const problems: { path: (string | number)[]; problem: string }[] = []
  if (typeof written !== 'object' || written === null || Array.isArray(written)) {
    problems.push({
      path: [],
      problem: 'must map read, history, members, publish or join to patterns, as in { read: ["room:*"] }',
    })
    return { rule, problems }
  }
  let count = 0
  for (const [verb, patterns] of Object.entries(written)) {
    if (!isVerb(verb)) {
      if (strict) problems.push({ path: [verb], problem: `unknown: the rights are ${verbs.join(', ')}` })
      continue
    }
    if (!Array.isArray(patterns)) {
      problems.push({ path: [verb], problem: 'must be a list of patterns, as in ["room:*"]' })
      continue
    }
    count += patterns.length
    // Not read: a problem for each of very many would be told.
    if (count > PATTERNS_MAX) continue
    for (const [index, text] of patterns.entries()) {
      const pattern = readPattern(text, { user })
      if ('problem' in pattern) problems.push({ path: [verb, index], problem: pattern.problem })
      else rule[verb].push(pattern)
    }
  }
  if (count > PATTERNS_MAX) {
    problems.push({ path: [], problem: `has ${count} patterns: at most ${PATTERNS_MAX} are read` })
  }
  return { rule, problems }
}

function isVerb(verb: string): verb is Verb {
  return (verbs as readonly string[]).includes(verb)
}

/** Puts a user's name in. The result is text to compare with, whatever the name holds. */
export function fillUser(pattern: Pattern, user: string): Pattern {
  if (!pattern.namesUser) return pattern
  const escaped = escapeUser(user)
  return { ...pattern, segments: pattern.segments.map(each => each.replaceAll(SUB, () => escaped)), namesUser: false }
}

const outside = /[^A-Za-z0-9._@:+,=!$'() \p{L}\p{M}\p{N}-]/gu
const outsideAscii = /[^A-Za-z0-9._@:+,=!$'() -]/gu

/**
 * A user's name as it stands in a key: a character that no segment has is written `~HH`, a byte of UTF-8 each. `~` itself
 * is, too, so that no two names look alike; of a name that is not in Unicode's form NFC all beyond ASCII is.
 *
 * @param user well-formed Unicode
 */
export function escapeUser(user: string) {
  return user.replace(user === user.normalize() ? outside : outsideAscii, character =>
    Array.from(Buffer.from(character), byte => `~${byte.toString(16).toUpperCase().padStart(2, '0')}`).join(''),
  )
}

export function mapVerbs<T>(make: (verb: Verb) => T): Record<Verb, T> {
  return Object.fromEntries(verbs.map(verb => [verb, make(verb)])) as Record<Verb, T>
}
