// The rights of a session: rules of keycast.yaml and of its token, added up and compiled. The gate asks for a request
// whether they admit its key.
import type { Problem } from '@keycast/protocol'
import { ANY, fillUser, grantedByRead, mapVerbs, type Pattern, type Rule, type Verb, verbs } from './rule.ts'

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
     * @param asked a key that has passed `keyProblem`; its query does not count
     * @returns whether one of the patterns stands for it
     */
    admits(asked: string): boolean {
      const query = asked.indexOf('?')
      const key = query === -1 ? asked : asked.slice(0, query)
      if (exact.has(key)) return true
      return !isFlat && leads(root, segmentsOf(key), 0)
    },
  }
}

type PatternSet = ReturnType<typeof createPatternSet>

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
