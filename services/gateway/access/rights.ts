// The rights of a session: rules of keycast.yaml and of its token, added up. the gate asks for a request whether they
// admit its key.
import type { Problem } from '@keycast/protocol'
import { createPatternSet, fillUser, PATTERNS_MAX, type Pattern, type PatternSet, readPattern } from './pattern.ts'

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

/** The keys that one rule admits. */
type Grant = Record<Verb, PatternSet>

export interface Rights {
  /** `undefined` for an anonymous session. */
  user: string | undefined
  grants: readonly Grant[]
}

/** Clients read this text. It says nothing about the key: an absent one and a forbidden one answer the same. */
const messages = Object.freeze({
  unauthenticated: 'this needs a token, or there is no such key',
  forbidden: 'the token does not grant this, or there is no such key',
})

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
      if (strict) problems.push({ path: [verb], problem: `unknown: write ${verbs.join(', ')}` })
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

interface Policy {
  /** The rights of any session. */
  anonymous: Rule
  /** Further rights of a session with a valid token. */
  everyone: Rule
  /** The verbs that `read` grants as well. */
  byRead?: readonly Verb[]
}

export function createRights({ anonymous, everyone, byRead = grantedByRead }: Policy) {
  function createGrant(rule: Rule): Grant {
    const read = createPatternSet(rule.read)
    return mapVerbs(verb => {
      if (verb === 'read') return read
      if (!byRead.includes(verb)) return createPatternSet(rule[verb])
      return rule[verb].length === 0 ? read : createPatternSet([...rule.read, ...rule[verb]])
    })
  }

  const forAll = createGrant(anonymous)
  // Compiled once for all users: only what names the user is made for each.
  const forEveryone = createGrant(pick(everyone, pattern => !pattern.namesUser))
  const named = pick(everyone, pattern => pattern.namesUser)
  const hasNamed = verbs.some(verb => named[verb].length > 0)

  const ofAnonymous: Rights = { user: undefined, grants: [forAll] }

  return {
    /** Of a session without a token. */
    anonymous: ofAnonymous,

    /** Whether a session without a token may do anything at all; else it has to send `auth` in time. */
    anonymousMayAct: verbs.some(verb => anonymous[verb].length > 0),

    /**
     * Of a session with a token, and of all that bring the same one: made when the token is verified.
     *
     * @param granted by the token
     */
    of(user: string, granted?: Rule): Rights {
      const grants = [forAll, forEveryone]
      if (hasNamed) grants.push(createGrant(fillIn(named, user)))
      if (granted) grants.push(createGrant(fillIn(granted, user)))
      return { user, grants }
    },
  }
}

/**
 * Decides. To be asked before anything is looked up, so that neither an answer nor its time tells whether a key exists.
 *
 * @param key has passed `keyProblem`
 * @returns `undefined`: allowed
 */
export function decide({ user, grants }: Rights, verb: Verb, key: string): Problem | undefined {
  for (const grant of grants) if (grant[verb].admits(key)) return undefined
  const code = user === undefined ? 'unauthenticated' : 'forbidden'
  return { code, message: messages[code] }
}

function pick(rule: Rule, takes: (pattern: Pattern) => boolean): Rule {
  return mapVerbs(verb => rule[verb].filter(takes))
}

function fillIn(rule: Rule, user: string): Rule {
  return mapVerbs(verb => rule[verb].map(pattern => fillUser(pattern, user)))
}

export function mapVerbs<T>(make: (verb: Verb) => T): Record<Verb, T> {
  return Object.fromEntries(verbs.map(verb => [verb, make(verb)])) as Record<Verb, T>
}
