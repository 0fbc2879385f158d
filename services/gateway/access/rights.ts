// The rights of a session: rules of keycast.yaml and of its token, added up and compiled. The gate asks for a request
// whether they admit its key.
import type { Problem } from '@keycast/protocol'
import { ANY, fillUser, grantedByRead, mapVerbs, type Pattern, type Rule, type Verb, verbs } from './rule.ts'

/** The keys that one rule admits. */
type Grant = Record<Verb, PatternSet>

export interface Rights {
  /** `undefined` for an anonymous session. */
  readonly user: string | undefined
  /** By the rules in force: another list once these changed. */
  readonly grants: readonly Grant[]
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

/** @param policy whose rules may change: {@link renew} must be called then */
export function createRights(policy: Policy) {
  /** All that is compiled once for all sessions. */
  let common = compile()

  function compile() {
    const { anonymous, everyone, byRead = grantedByRead } = policy
    const createGrant = (rule: Rule) => grantOf(rule, byRead)
    const named = pick(everyone, pattern => pattern.namesUser)
    return {
      createGrant,
      forAll: createGrant(anonymous),
      // Only what names the user is made for each.
      forEveryone: createGrant(pick(everyone, pattern => !pattern.namesUser)),
      named: verbs.some(verb => named[verb].length > 0) ? named : undefined,
      anonymousMayAct: verbs.some(verb => anonymous[verb].length > 0),
    }
  }

  function grantsOf(user: string | undefined, granted: Rule | undefined) {
    const { createGrant, forAll, forEveryone, named } = common
    if (user === undefined) return [forAll]
    const grants = [forAll, forEveryone]
    if (named) grants.push(createGrant(fillIn(named, user)))
    if (granted) grants.push(createGrant(fillIn(granted, user)))
    return grants
  }

  /** One object for as long as its session lasts, whatever becomes of the rules. */
  class Held implements Rights {
    readonly user: string | undefined
    readonly #granted: Rule | undefined
    #by = common
    #grants: readonly Grant[]

    constructor(user: string | undefined, granted: Rule | undefined) {
      this.user = user
      this.#granted = granted
      this.#grants = grantsOf(user, granted)
    }

    get grants() {
      if (this.#by !== common) {
        this.#by = common
        this.#grants = grantsOf(this.user, this.#granted)
      }
      return this.#grants
    }
  }

  return {
    /** Of a session without a token. */
    anonymous: new Held(undefined, undefined) as Rights,

    /** Whether a session without a token may do anything at all; else it has to send `auth` in time. */
    get anonymousMayAct() {
      return common.anonymousMayAct
    },

    /**
     * Of a session with a token, and of all that bring the same one: made when the token is verified.
     *
     * @param granted by the token
     */
    of: (user: string, granted?: Rule): Rights => new Held(user, granted),

    /** The policy has other rules from now on. */
    renew() {
      common = compile()
    },
  }
}

function grantOf(rule: Rule, byRead: readonly Verb[]): Grant {
  const read = createPatternSet(rule.read)
  return mapVerbs(verb => {
    if (verb === 'read') return read
    if (!byRead.includes(verb)) return createPatternSet(rule[verb])
    return rule[verb].length === 0 ? read : createPatternSet([...rule.read, ...rule[verb]])
  })
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
      return !isFlat && leads(root, key, 0)
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

/**
 * Whether the segments from `start` on, a place in the key, lead to the end of a pattern. As deep as a key has segments, and
 * without a list of them: each key of each request comes here.
 */
function leads(step: Step, key: string, start: number): boolean {
  if (start > key.length) return step.ends
  if (step.rest) return true
  // The namespace ends at the first colon; an id may have others.
  const found = key.indexOf(start === 0 ? ':' : '/', start)
  const end = found === -1 ? key.length : found
  const literal = step.literal?.get(key.slice(start, end))
  if (literal && leads(literal, key, end + 1)) return true
  return step.any !== undefined && leads(step.any, key, end + 1)
}
