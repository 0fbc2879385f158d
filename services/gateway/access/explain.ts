// Answers an operator who asks why a user may or may not use a key: rule by rule, by the rules and key sets in force.
// Clients are never told as much.
import { type Problem, problemText } from '@keycast/protocol'
import type { AnyNamespace, Named, World } from '@keycast/service'
import { decodeJwt } from 'jose/jwt/decode'
import type { Policy } from './policy-file.ts'
import { createPatternSet, decide, type Rights } from './rights.ts'
import { fillUser, mapVerbs, type Rule, readRule, type Verb, verbs } from './rule.ts'
import { type RefusalReason, refusalTexts } from './tokens/refusal.ts'
import type { Checked } from './tokens/tokens.ts'

/** Patterns of a rule that an answer lists: a token may hold 1,000. */
const PATTERNS_SHOWN_MAX = 10

/** Attempts to check a token are counted by address; this one is no client's. */
const ADDRESS = 'the operator'

/**
 * For whom a key is asked: a token as a client would send it, a user as if with a valid token, or a client without one.
 */
type Viewer = { token: string } | { sub: string; keys?: unknown } | Record<string, never>

export interface Verdict {
  allowed: boolean
  /** The pattern that admits the key. */
  pattern?: string
  /** The rule that holds it: `anonymous`, `everyone`, `token keys`. */
  rule?: string
  /** The rules that do not admit it. */
  asked?: { rule: string; patterns: string[]; more: number }[]
}

export interface Explanation {
  key: string
  /** `null`: a client without a token. */
  user: string | null
  /** Of the token. */
  expiresInMs?: number
  /** Tokens of the user issued before it are refused, in Unix seconds. */
  revokedBefore?: number
  /** The token is; then nothing is granted. */
  refused?: { reason: RefusalReason; message: string }
  /** The request that asks the backend as well, where the key may be read. */
  backendDecides?: string
  /** The problem of the key itself, whoever asks. */
  keyProblem?: string
  /** Without those that `read` grants as well. */
  verbs: Partial<Record<Verb, Verdict>>
}

export type Explain = ReturnType<typeof createExplain>

interface Deps extends Pick<World, 'wallNow'> {
  policy: Policy
  rights: { anonymous: Rights; of(user: string, granted?: Rule): Rights }
  tokens: { verify(token: string, from: { address: string }): Promise<Checked> }
  revocations: { revokedBefore(user: string): number | undefined }
  problemOf: (key: string) => Problem | undefined
  namespaces: Pick<Named<AnyNamespace>, 'get'>
}

export function createExplain({ policy, rights, tokens, revocations, problemOf, namespaces, wallNow }: Deps) {
  const eachVerb = <T>(make: (verb: Verb) => T) =>
    Object.fromEntries(verbs.filter(verb => !policy.byRead.includes(verb)).map(verb => [verb, make(verb)]))

  /** @param key anything an operator sent */
  async function explain(key: string, viewer: Viewer): Promise<Explanation | { problem: string }> {
    const { anonymous, claim } = policy
    const problem = problemOf(key)
    const keyProblem = problem && problemText(problem)
    const backendDecides = keyProblem === undefined ? requestOf(key) : undefined
    if ('token' in viewer) {
      const result = await tokens.verify(viewer.token, { address: ADDRESS })
      if ('refused' in result) {
        const { reason } = result.refused
        const asked = { key, user: null, refused: { reason, message: refusalTexts[reason] }, keyProblem }
        return { ...asked, verbs: eachVerb(() => ({ allowed: false, asked: [] })) }
      }
      const { user, expiresAtMs, rights: held } = result.verified
      // Not kept with the rights: of many thousand sessions nobody asks why.
      const granted = readRule(decodeJwt(viewer.token)[claim] ?? {}, { user: true, strict: false }).rule
      const rules = rulesOf(user, granted)
      return { ...describe(key, user, held, rules), expiresInMs: expiresAtMs - wallNow(), keyProblem, backendDecides }
    }
    if ('sub' in viewer) {
      const { rule: granted, problems } = readRule(viewer.keys ?? {}, { user: true, strict: true })
      if (problems.length > 0) {
        return { problem: problems.map(({ path, problem }) => [...path, problem].join(' ')).join('; ') }
      }
      const { sub } = viewer
      const described = describe(key, sub, rights.of(sub, granted), rulesOf(sub, granted))
      return { ...described, revokedBefore: revocations.revokedBefore(sub), keyProblem, backendDecides }
    }
    const described = describe(key, undefined, rights.anonymous, [{ name: 'anonymous', rule: anonymous }])
    return { ...described, keyProblem, backendDecides }
  }

  /** The request that asks the backend who may read. */
  function requestOf(key: string) {
    const colon = key.indexOf(':')
    const id = key.slice(colon + 1)
    const name = key.slice(0, colon)
    const namespace = namespaces.get(name)
    if (namespace?.authorize) return `${namespace.authorize.method} ${namespace.authorize.urlFor(id)}`
    // With the user's own token: what it answers to that is the value, or that there is none for them.
    return namespace?.source === 'http' && namespace.isPerUser ? `GET ${namespace.urlFor(id)}` : undefined
  }

  function rulesOf(user: string, granted: Rule) {
    const { anonymous, everyone, claim } = policy
    const filled = (rule: Rule) =>
      mapVerbs(verb => rule[verb].map(pattern => ({ ...fillUser(pattern, user), text: pattern.text })))
    return [
      { name: 'anonymous', rule: anonymous },
      { name: 'everyone', rule: filled(everyone) },
      { name: `token ${claim}`, rule: filled(granted) },
    ]
  }

  /**
   * @param held the rights of a session of the user, which decide
   * @param rules it was made of
   */
  function describe(
    key: string,
    user: string | undefined,
    held: Rights,
    rules: { name: string; rule: Rule }[],
  ): Explanation {
    return {
      key,
      user: user ?? null,
      verbs: eachVerb(verb => {
        if (decide(held, verb, key)) return { allowed: false, asked: rules.map(each => show(each, verb)) }
        for (const { name, rule } of rules) {
          const pattern = rule[verb].find(each => createPatternSet([each]).admits(key))
          if (pattern) return { allowed: true, rule: name, pattern: pattern.text }
        }
        return { allowed: true }
      }),
    }
  }

  return explain
}

function show({ name, rule }: { name: string; rule: Rule }, verb: Verb) {
  const patterns = rule[verb].map(({ text }) => text)
  const shown = patterns.slice(0, PATTERNS_SHOWN_MAX)
  return { rule: name, patterns: shown, more: patterns.length - shown.length }
}
