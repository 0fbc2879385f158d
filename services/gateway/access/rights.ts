// The rights of a session: rules of keycast.yaml and of its token, added up. the gate asks for a request whether they
// admit its key.
import { createPatternSet, fillUser, PATTERNS_MAX, readPattern } from './pattern.ts'

/** The verbs that can be granted. Getting, subscribing and reading a history are all `read`. */
export const verbs = Object.freeze(/** @type {const} */ (['read', 'publish', 'join']))

/**
 * @typedef {typeof verbs[number]} Verb
 * @typedef {Record<Verb, import('./pattern.ts').Pattern[]>} Rule patterns by verb
 *
 * @typedef {Record<Verb, import('./pattern.ts').PatternSet>} Grant the keys that one rule admits
 *
 * @typedef {object} Rights
 * @property {string | undefined} user `undefined` for an anonymous session
 * @property {readonly Grant[]} grants
 *
 * @typedef {object} AccessRefusal
 * @property {'unauthenticated' | 'forbidden'} code `unauthenticated`: a token might help
 * @property {string} message for the client: the same whether the key exists or not
 */

/** Clients read this text. It says nothing about the key: an absent one and a forbidden one answer the same. */
const messages = Object.freeze({
  unauthenticated: 'this needs a token, or there is no such key',
  forbidden: 'the token does not grant this, or there is no such key',
})

/**
 * Reads patterns by verb, as keycast.yaml and tokens hold them.
 *
 * @param {unknown} written
 * @param {{ user: boolean, strict: boolean }} options `user`: whether `{sub}` has a name to stand for; `strict`: an
 *   unknown verb is a problem. In a token it is not: a newer gateway may know it
 * @returns {{ rule: Rule, problems: { path: (string | number)[], problem: string }[] }} the paths lead into `written`
 */
export function readRule(written, { user, strict }) {
  /** @type {Rule} */
  const rule = { read: [], publish: [], join: [] }
  /** @type {{ path: (string | number)[], problem: string }[]} */
  const problems = []
  if (typeof written !== 'object' || written === null || Array.isArray(written)) {
    problems.push({ path: [], problem: 'must map read, publish or join to patterns, as in { read: ["room:*"] }' })
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

/** @param {string} verb @returns {verb is Verb} */
function isVerb(verb) {
  return /** @type {readonly string[]} */ (verbs).includes(verb)
}

/**
 * @param {object} policy
 * @param {Rule} policy.anonymous the rights of any session
 * @param {Rule} policy.everyone further rights of a session with a valid token
 */
export function createRights({ anonymous, everyone }) {
  const forAll = createGrant(anonymous)
  // Compiled once for all users: only what names the user is made for each.
  const forEveryone = createGrant(pick(everyone, pattern => !pattern.namesUser))
  const named = pick(everyone, pattern => pattern.namesUser)
  const hasNamed = verbs.some(verb => named[verb].length > 0)

  /** @type {Rights} */
  const ofAnonymous = { user: undefined, grants: [forAll] }

  return {
    /** Of a session without a token. */
    anonymous: ofAnonymous,

    /** Whether a session without a token may do anything at all; else it has to send `auth` in time. */
    anonymousMayAct: verbs.some(verb => anonymous[verb].length > 0),

    /**
     * Of a session with a token, and of all that bring the same one: made when the token is verified.
     *
     * @param {string} user
     * @param {Rule} [granted] by the token
     * @returns {Rights}
     */
    of(user, granted) {
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
 * @param {Rights} rights
 * @param {Verb} verb
 * @param {string} key has passed `keyProblem`
 * @returns {AccessRefusal | undefined} `undefined`: allowed
 */
export function decide({ user, grants }, verb, key) {
  for (const grant of grants) if (grant[verb].admits(key)) return undefined
  const code = user === undefined ? 'unauthenticated' : 'forbidden'
  return { code, message: messages[code] }
}

/** @param {Rule} rule @returns {Grant} */
function createGrant(rule) {
  return mapVerbs(verb => createPatternSet(rule[verb]))
}

/** @param {Rule} rule @param {(pattern: import('./pattern.ts').Pattern) => boolean} takes @returns {Rule} */
function pick(rule, takes) {
  return mapVerbs(verb => rule[verb].filter(takes))
}

/** @param {Rule} rule @param {string} user @returns {Rule} */
function fillIn(rule, user) {
  return mapVerbs(verb => rule[verb].map(pattern => fillUser(pattern, user)))
}

/** @template T @param {(verb: Verb) => T} make @returns {Record<Verb, T>} */
export function mapVerbs(make) {
  return { read: make('read'), publish: make('publish'), join: make('join') }
}
