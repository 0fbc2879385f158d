// Patterns of keys, `namespace:id`: their grammar, their meaning, and sets of them that answer at once.
import { excerpt, namespaceProblem } from '@keycast/protocol'

/** Longest pattern. Keys may be longer: `*` and `**` stand for as much as there is. */
export const PATTERN_CHARACTERS_MAX = 256

/** Patterns of one rule, its verbs together. With the limit above it bounds the text of a rule to 256 KB. */
export const PATTERNS_MAX = 1_000

/** One whole segment, whatever it is; in place of the namespace, any namespace. No literal segment holds the character. */
const ANY = '*'

/** The last segment of a pattern: one segment or more. */
const REST = '**'

/** The user's name, which is put in as text. */
const SUB = '{sub}'

const segmentGrammar = /^[A-Za-z0-9._~-]+$/

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
    if (segment === '') return 'a segment of the id is empty'
    if (segment.includes(ANY)) return '* stands for a whole segment'
    if (segment.includes(SUB) && !user) return '{sub} has no name to stand for: an anonymous session has no user'
    const literal = segment.replaceAll(SUB, 'x')
    if (!segmentGrammar.test(literal)) return 'a segment is A-Z a-z 0-9 . _ ~ - with or without {sub}, or * or **'
    // No key has one, so the pattern would admit nothing and say nothing.
    if (segment === '.' || segment === '..') return 'no key has a "." or ".." segment'
  }
  return undefined
}

/** Puts a user's name in. The result is text to compare with, whatever the name holds. */
export function fillUser(pattern: Pattern, user: string): Pattern {
  if (!pattern.namesUser) return pattern
  const escaped = escapeUser(user)
  return { ...pattern, segments: pattern.segments.map(each => each.replaceAll(SUB, () => escaped)), namesUser: false }
}

/**
 * A user's name as it stands in a key: what is outside `A-Z a-z 0-9 . _ -` is written `~HH`, a byte of UTF-8 each. `~`
 * itself is, too, so that no two names look alike.
 *
 * @param user well-formed Unicode
 */
export function escapeUser(user: string) {
  return user.replace(/[^A-Za-z0-9._-]/gu, character =>
    Array.from(Buffer.from(character), byte => `~${byte.toString(16).toUpperCase().padStart(2, '0')}`).join(''),
  )
}

/** A segment of a pattern, and the segments that may follow it. */
interface Step {
  literal: Map<string, Step> | undefined
  any: Step | undefined
  /** Whether a pattern ends here. */
  ends: boolean
  /** Whether a pattern takes all that follows. */
  rest: boolean
}

const createStep = (): Step => ({ literal: undefined, any: undefined, ends: false, rest: false })

/**
 * Patterns compiled to be asked often. One without `*` costs a look into a set. The others share a tree, in which a key
 * takes each step at most once: asking costs no more than reading key and patterns once, and mostly far less.
 *
 * @param patterns with users' names filled in
 */
export function createPatternSet(patterns: Iterable<Pattern>) {
  const exact = new Set<string>()
  const root = createStep()
  for (const pattern of patterns) {
    if (pattern.rest || pattern.segments.includes(ANY)) grow(root, pattern)
    else exact.add(`${pattern.segments[0]}:${pattern.segments.slice(1).join('/')}`)
  }
  const isFlat = !root.literal && !root.any

  return {
    /**
     * @param key has passed `keyProblem`
     * @returns whether one of the patterns stands for it
     */
    admits(key: string): boolean {
      if (exact.has(key)) return true
      return !isFlat && leads(root, segmentsOf(key), 0)
    },
  }
}

export type PatternSet = ReturnType<typeof createPatternSet>

function grow(step: Step, { segments, rest }: Pattern) {
  for (const segment of segments) {
    if (segment === ANY) {
      step.any ??= createStep()
      step = step.any
      continue
    }
    step.literal ??= new Map()
    let next = step.literal.get(segment)
    if (!next) {
      next = createStep()
      step.literal.set(segment, next)
    }
    step = next
  }
  if (rest) step.rest = true
  else step.ends = true
}

function segmentsOf(key: string) {
  const colon = key.indexOf(':')
  return [key.slice(0, colon), ...key.slice(colon + 1).split('/')]
}

/** Whether the segments from `index` on lead to the end of a pattern. As deep as a key has segments. */
function leads(step: Step, segments: string[], index: number): boolean {
  if (index === segments.length) return step.ends
  if (step.rest) return true
  const literal = step.literal?.get(segments[index])
  if (literal && leads(literal, segments, index + 1)) return true
  return step.any !== undefined && leads(step.any, segments, index + 1)
}
