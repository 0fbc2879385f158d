// The key grammar: `namespace:id`. Every service reads keys through this file and nowhere else.

/** Longest namespace, in characters. Operators name namespaces in keycast.yaml; they are no data. */
const NAMESPACE_CHARACTERS_MAX = 32

/** Longest id, in characters: it becomes part of a URL, and many servers limit URLs to about 2,000 bytes. */
const ID_CHARACTERS_MAX = 255

const namespaceGrammar = /^[a-z][a-z0-9-]*$/
const segmentGrammar = /^[A-Za-z0-9._~-]+$/ // RFC 3986 section 2.3, the unreserved characters

/**
 * The reason why a text cannot name a namespace, or `undefined` if it can.
 *
 * @param {string} namespace
 * @returns {string | undefined} a clause for a person to read
 */
export function namespaceProblem(namespace) {
  if (namespace.length === 0) return 'the namespace is empty'
  if (namespace.length > NAMESPACE_CHARACTERS_MAX) {
    return `the namespace is longer than ${NAMESPACE_CHARACTERS_MAX} characters`
  }
  if (!namespaceGrammar.test(namespace)) return 'a namespace is a-z, 0-9 and "-", starting with a letter'
  return undefined
}

/**
 * The reason why a text is no key, or `undefined` if it is one.
 *
 * @param {string} key
 * @returns {string | undefined} a clause for a person to read
 */
export function keyProblem(key) {
  const colon = key.indexOf(':')
  if (colon === -1) return 'a key is namespace:id'
  const problem = namespaceProblem(key.slice(0, colon))
  if (problem) return problem
  const id = key.slice(colon + 1)
  if (id.length === 0) return 'the id is empty'
  if (id.length > ID_CHARACTERS_MAX) return `the id is longer than ${ID_CHARACTERS_MAX} characters`
  for (const segment of id.split('/')) {
    if (segment.length === 0) return 'the id has an empty segment'
    // Dot segments are resolved away by URL parsers (RFC 3986 section 5.2.4): they could leave the namespace's path.
    if (segment === '.' || segment === '..') return 'the id has a "." or ".." segment'
    if (!segmentGrammar.test(segment)) return 'an id is made of A-Z a-z 0-9 . _ ~ - and / between segments'
  }
  return undefined
}

/**
 * The namespace a key belongs to. The key must have passed {@link keyProblem}.
 *
 * @param {string} key
 */
export function namespaceOf(key) {
  return key.slice(0, key.indexOf(':'))
}

/**
 * The id within its namespace. The key must have passed {@link keyProblem}.
 *
 * @param {string} key
 */
export function idOf(key) {
  return key.slice(key.indexOf(':') + 1)
}
