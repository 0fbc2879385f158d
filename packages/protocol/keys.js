// The key grammar: `namespace:id`, where an id may end in a query: `namespace:id?name=value&name=value`. Every service
// reads keys through this file and nowhere else. A namespace narrows it: packages/service/namespaces/id-problem.ts.

/** Longest namespace, in characters. Operators name namespaces in keycast.yaml; they are no data. */
const NAMESPACE_CHARACTERS_MAX = 32

/** Longest id with its query, in bytes of UTF-8: it becomes part of a URL, where a byte may take three. */
const ID_BYTES_MAX = 255

const namespaceGrammar = /^[a-z][a-z0-9-]*$/

// The unreserved characters of URLs (RFC 3986 section 2.3), and what people put into names. Outside stand the characters
// that separate parts of a key (`/ ? &`), those of patterns (`* {}`), and the mark between a key and its viewer (`|`).
const idGrammar = /^[A-Za-z0-9._~@:+,=!$'() /-]*$/
const wideIdGrammar = /^[A-Za-z0-9._~@:+,=!$'() /\p{L}\p{M}\p{N}-]*$/u
const parameterGrammar = /^([A-Za-z0-9._~[\]-]+)=([A-Za-z0-9._~@:+,=!$'() /\p{L}\p{M}\p{N}-]+)$/u

/** Empty, or resolved away by URL parsers (RFC 3986 section 5.2.4): it could leave the namespace's path. */
const badSegment = /(?:^|\/)(\.{0,2})(?:\/|$)/

const CHARACTERS = "an id is made of letters, digits, spaces and . _ ~ - @ : + , = ! $ ' ( ), with / between segments"

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
 * The reason why a text is no key, or `undefined` if it is one. Some namespaces have keys without an id; whether this
 * one has, only the namespace says.
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
  // A character has three bytes at most for each of its places in a text.
  if (id.length > ID_BYTES_MAX / 3 && bytesOf(id) > ID_BYTES_MAX) return `the id is longer than ${ID_BYTES_MAX} bytes`
  const mark = id.indexOf('?')
  return mark === -1 ? idProblem(id) : (idProblem(id.slice(0, mark)) ?? queryProblem(id.slice(mark + 1)))
}

/** @param {string} id without its query */
function idProblem(id) {
  if (!idGrammar.test(id)) {
    if (!wideIdGrammar.test(id)) return CHARACTERS
    if (id !== id.normalize()) return NOT_COMPOSED
  }
  const [, dots] = (id !== '' && badSegment.exec(id)) || []
  if (dots === undefined) return undefined
  return dots === '' ? 'the id has an empty segment' : 'the id has a "." or ".." segment'
}

/** @param {string} query */
function queryProblem(query) {
  for (const parameter of query.split('&')) {
    if (!parameterGrammar.test(parameter)) return 'a query is name=value&name=value, of the characters of an id'
  }
  return query === query.normalize() ? undefined : NOT_COMPOSED
}

/** Two ways to write the same letter would be two keys that nobody can tell apart. */
const NOT_COMPOSED = 'letters with marks are written as one character where there is one (Unicode form NFC)'

const encoder = new TextEncoder()

/** @param {string} text */
const bytesOf = text => encoder.encode(text).length

/**
 * The namespace a key belongs to. The key must have passed {@link keyProblem}.
 *
 * @param {string} key
 */
export function namespaceOf(key) {
  return key.slice(0, key.indexOf(':'))
}

/**
 * The id within its namespace, with its query. The key must have passed {@link keyProblem}.
 *
 * @param {string} key
 */
export function idOf(key) {
  return key.slice(key.indexOf(':') + 1)
}

/**
 * The segments of an id, none of an empty one, and its parameters in their order.
 *
 * @param {string} id of a key that has passed {@link keyProblem}
 * @returns {{ segments: string[], parameters: [name: string, value: string][] }}
 */
export function partsOf(id) {
  const [path, query] = id.split('?')
  return {
    segments: path === '' ? [] : path.split('/'),
    parameters: query === undefined ? [] : query.split('&').map(parameterOf),
  }
}

/** @param {string} text @returns {[string, string]} */
function parameterOf(text) {
  const equals = text.indexOf('=')
  return [text.slice(0, equals), text.slice(equals + 1)]
}
