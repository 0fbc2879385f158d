// Reads keycast.yaml: the source of each kind of key, and how fresh it is kept.
import { Misconfigured } from '../misconfigured.ts'
import { readYaml } from '../yaml-file.ts'
import { journalNamespaceOf } from './journal-schema.ts'
import { describe, file } from './schema.ts'
import { substituteVariables } from './variables.ts'

export { quantity } from './fields.ts'

/**
 * @typedef {object} Namespace
 * @property {string} name
 * @property {'http'} source
 * @property {(id: string) => string} urlFor the URL of an id; throws a RangeError for one that would leave the path
 * @property {string} origin scheme, host and port of every URL of the namespace
 * @property {Record<string, string>} headers sent with each request, names in lower case. Secret: never log them
 * @property {number} maxAgeMs a get is answered from memory up to this age
 * @property {number} refreshMs asked again this often while somebody watches; 0: only after a refresh call
 * @property {number} timeoutMs
 * @property {number} bytesMax
 * @property {number} [idSegmentsMax] the most segments that an id may have, 1 unless given; see id-problem.ts
 * @property {Authorize} [authorize] the backend is asked whether a viewer may read a key
 * @property {boolean} [isPerUser] each user has a value of their own, fetched with their own token
 *
 * Where the backend is asked with the viewer's own token, and for how long what it said holds.
 * @typedef {{ urlFor: (id: string) => string, origin: string, method: 'HEAD' | 'GET', keepMs: number }} Authorize
 *
 * @typedef {{ get: (name: string) => Namespace | undefined, names: string[] }} Namespaces those of values
 *
 * What is asked of a namespace, of values or of rooms, whose backend may decide.
 * @typedef {Pick<Namespace, 'name' | 'authorize' | 'idSegmentsMax'> & { timeoutMs?: number }} Deciding
 * @typedef {{ get: (name: string) => import('./journal-schema.ts').JournalNamespace | undefined, names: string[] }} JournalNamespaces
 *   those of messages
 */

/** keycast.yaml cannot be used. The message names every bad field. */
export class NamespacesError extends Misconfigured {
  /** @param {string} path @param {string[]} problems */
  constructor(path, problems) {
    super(`Invalid namespaces in ${path}:\n${problems.map(problem => `  ${problem}`).join('\n')}`)
    this.name = 'NamespacesError'
    this.problems = problems
  }
}

/**
 * @param {object} options
 * @param {string} options.path of keycast.yaml
 * @param {NodeJS.ProcessEnv} [options.env] supplies `${NAME}`
 * @param {boolean} [options.headers] false: `headers` are left out, so that a gateway, which asks no backend, needs
 *   none of the variables in them
 * @param {boolean} [options.authorize] false: `authorize` is left out likewise, for a journal, which need not know who
 *   decides
 * @returns {Namespaces & { journal: JournalNamespaces }}
 * @throws {NamespacesError}
 */
export function readNamespaces({
  path,
  env = process.env,
  headers: withHeaders = true,
  authorize: withAuthorize = true,
}) {
  /** @param {string[]} problems */
  const refuse = problems => new NamespacesError(path, problems)
  const { value: whole, lineAt } = readYaml(path, refuse)
  const written = withoutAccess(whole)
  const left = [...(withHeaders ? [] : ['headers']), ...(withAuthorize ? [] : ['authorize'])]
  const document = withoutFields(written, left)
  // Substituted after parsing, so that a variable's value is text whatever it holds, never YAML.
  const { value, problems } = substituteVariables(document, env)
  if (problems.length > 0) throw refuse(problems)
  const parsed = file.safeParse(value)
  if (!parsed.success) throw refuse(parsed.error.issues.flatMap(issue => describe(issue, lineAt)))

  /** @type {Map<string, Namespace>} */
  const values = new Map()
  /** @type {Map<string, import('./journal-schema.ts').JournalNamespace>} */
  const rooms = new Map()
  for (const [name, read] of Object.entries(parsed.data.namespaces)) {
    if (read.source === 'journal') rooms.set(name, journalNamespaceOf(name, read))
    else values.set(name, httpNamespaceOf(name, read))
  }
  return { ...lookUp(values), journal: lookUp(rooms) }
}

/** @template N @param {Map<string, N>} named */
const lookUp = named => ({ get: (/** @type {string} */ name) => named.get(name), names: [...named.keys()] })

/** @param {string} name @param {import('./schema.ts').HttpNamespace} parsed @returns {Namespace} */
function httpNamespaceOf(name, { source, url, per, authorize, headers, maxAge, refresh, timeout, maxBytes, ids }) {
  return {
    name,
    source,
    ...url,
    headers,
    maxAgeMs: maxAge,
    refreshMs: refresh,
    timeoutMs: timeout,
    bytesMax: maxBytes,
    idSegmentsMax: ids.segments,
    ...(per && { isPerUser: true }),
    ...(authorize && { authorize: { ...authorize.url, method: authorize.method, keepMs: authorize.keep } }),
  }
}

/** Access rights are for gateways: other services need none of their variables. @param {unknown} document not yet checked */
function withoutAccess(document) {
  if (typeof document !== 'object' || document === null || !('access' in document)) return document
  const { access: _, ...rest } = document
  return rest
}

/** @param {unknown} document not yet checked @param {string[]} fields of namespaces */
function withoutFields(document, fields) {
  const { namespaces } = /** @type {{ namespaces?: Record<string, unknown> }} */ (document ?? {})
  for (const namespace of Object.values(namespaces ?? {})) {
    if (typeof namespace !== 'object' || namespace === null) continue
    for (const field of fields) delete (/** @type {Record<string, unknown>} */ (namespace)[field])
  }
  return document
}
