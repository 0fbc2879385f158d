// Reads keycast.yaml: the source of each kind of key, and how fresh it is kept.
import { Misconfigured } from '../misconfigured.ts'
import { readYaml } from '../yaml-file.ts'
import { bySource } from './by-source.ts'
import { type Authorize, authorizeOf } from './fields.ts'
import type { Ids } from './id-problem.ts'
import { type JournalNamespace, journalNamespaceOf } from './journal-schema.ts'
import { type Notify, notifyOf } from './notify-schema.ts'
import { type PushedNamespace, pushedNamespaceOf } from './pushed-schema.ts'
import { describe, file, type HttpNamespace, idsOf, REFRESH_MS_DEFAULT, urlOf } from './schema.ts'
import type { BatchUrl } from './url-template.ts'
import { substituteVariables } from './variables.ts'

export { type Authorize, quantity } from './fields.ts'
export { BODY_BYTES_MAX } from './schema.ts'
export { strictMap, unknownFields } from './strict-map.ts'

/** Below the 30 s after which many a proxy gives a request up. */
const WAIT_MS = 20_000

/** A namespace of values, wherever they come from. */
export interface ValueNamespace {
  name: string
  source: 'http' | 'pushed'
  /** A get is answered from memory up to this age. */
  maxAgeMs: number
  /** Asked again this often while somebody watches; 0: only after a refresh call, or as `changes` say. */
  refreshMs: number
  /** The backend may wait this long for a change, and is asked to instead of each `refreshMs`. */
  waitMs?: number
  /** The backend's stream of events that tells what changed. */
  changes?: Changes
  timeoutMs: number
  bytesMax: number
  /** How many segments an id has, one unless given; see id-problem.ts. */
  ids?: Ids
  /** What a key may carry as its query. `names`: in their order; `headers`: those sent so, by name. */
  query?: { names: string[]; headers: Record<string, string> }
  /** The backend is asked whether a viewer may read a key. */
  authorize?: Authorize
  /** Each user has a value of their own, fetched with their own token. */
  isPerUser?: boolean
}

/** Whose values are fetched. */
export interface Namespace extends ValueNamespace {
  source: 'http'
  /** The URL of an id, with its query; throws a RangeError for one that would leave its place. */
  urlFor: (id: string) => string
  /** The body of a POST, as JSON; without it the backend is asked by GET. */
  bodyFor?: (id: string) => string
  /** Scheme, host and port of every URL of the namespace. */
  origin: string
  /** Sent with each request, names in lower case. Secret: never log them. */
  headers: Record<string, string>
  /** With which the backend is asked, besides the headers. Secret. */
  token?: ServiceToken
  /** Redirects are followed that stay at the origin. */
  followsRedirects?: boolean
  /** It is asked for many keys at once. */
  batch?: Batch
  /** The backend is told which keys have viewers. */
  notify?: Notify
}

/** `pollMs`: while the stream is down all watched keys are asked this often; 0: they are not. */
export interface Changes {
  url: string
  origin: string
  pollMs: number
}

/** Pointers are JSON's (RFC 6901). */
export interface Batch extends Omit<BatchUrl, 'origin'> {
  /** Keys in a request at most. */
  max: number
  /** Where the list of items is in the response. */
  items: string
  /** Where an item has its id. */
  id: string
}

/** A bearer token: in a file that is read again, or of a token endpoint (RFC 6749 section 4.4). */
export type ServiceToken = { file: string } | { url: string; client: string; secret: string; scope?: string }

/** Namespaces of a kind, by their names. */
export interface Named<N> {
  get: (name: string) => N | undefined
  readonly names: string[]
}

/** Those of values that are fetched. */
export type Namespaces = Named<Namespace>

/** Those of values that are handed over. */
export type PushedNamespaces = Named<PushedNamespace>

/** Those of values. */
export type ValueNamespaces = Named<ValueNamespace>

/** What is asked of a namespace, of values or of rooms, whose backend may decide. */
export type Deciding = Pick<ValueNamespace, 'name' | 'authorize' | 'ids' | 'query'> & { timeoutMs?: number }

/** Those of messages. */
export type JournalNamespaces = Named<JournalNamespace>

/** keycast.yaml cannot be used. The message names every bad field. */
export class NamespacesError extends Misconfigured {
  readonly problems: string[]

  constructor(path: string, problems: string[]) {
    super(`Invalid namespaces in ${path}:\n${problems.map(problem => `  ${problem}`).join('\n')}`)
    this.name = 'NamespacesError'
    this.problems = problems
  }
}

/** Of whatever source. */
export type AnyNamespace = Namespace | PushedNamespace | JournalNamespace

/** Those of one keycast.yaml. `values`: those that are fetched, and those that are handed over. */
export interface AllNamespaces {
  all: Named<AnyNamespace>
  values: ValueNamespaces
  fetched: Namespaces
  pushed: PushedNamespaces
  journal: JournalNamespaces
}

/** `written`: what stands in the file of a namespace, variables filled in. It tells what another file changes. Secret. */
export type ReadNamespaces = AllNamespaces & { written: (name: string) => Readonly<Record<string, unknown>> }

interface Options {
  /** Of keycast.yaml. */
  path: string
  /** Its text, where that was read already. */
  text?: string
  /** Supplies `${NAME}`. */
  env?: NodeJS.ProcessEnv
  /** false: `headers` and `token` are left out, so that a gateway, which asks no backend, needs none of the variables in them. */
  headers?: boolean
  /** false: `authorize`, and `publish` where it says who is asked, are left out likewise, for a journal, which asks nobody. */
  authorize?: boolean
}

/** @throws {NamespacesError} */
export function readNamespaces({
  path,
  text,
  env,
  headers: withHeaders = true,
  authorize: withAuthorize = true,
}: Options): ReadNamespaces {
  const refuse = (problems: string[]) => new NamespacesError(path, problems)
  const { value: whole, lineAt } = readYaml(path, refuse, text)
  const written = withoutAccess(whole)
  const left = [...(withHeaders ? [] : ['headers', 'token']), ...(withAuthorize ? [] : ['authorize', 'publish.ask'])]
  const document = withoutFields(written, left)
  // Substituted after parsing, so that a variable's value is text whatever it holds, never YAML.
  const { value, problems } = substituteVariables(document, env)
  if (problems.length > 0) throw refuse(problems)
  const parsed = file.safeParse(value)
  if (!parsed.success) throw refuse(parsed.error.issues.flatMap(issue => describe(issue, lineAt)))

  const named = new Map<string, AnyNamespace>()
  for (const [name, read] of Object.entries(parsed.data.namespaces)) {
    if (read.source === 'journal') named.set(name, journalNamespaceOf(name, read))
    else if (read.source === 'pushed') named.set(name, pushedNamespaceOf(name, read))
    else named.set(name, httpNamespaceOf(name, read))
  }
  const { namespaces } = value as { namespaces: Record<string, Record<string, unknown>> }
  return {
    ...bySource(named),
    written: name => (Object.hasOwn(namespaces, name) ? namespaces[name] : {}),
  }
}

function httpNamespaceOf(name: string, written: HttpNamespace): Namespace {
  const { source, body, per, authorize, headers, token, maxAge, refresh, timeout, maxBytes, redirects } = written
  const { query: names, asHeaders, batch, changes, notify } = written
  const url = urlOf(written)
  const notInUrl = Object.keys(asHeaders)
  const periodMs = refresh === 'wait' ? REFRESH_MS_DEFAULT : refresh
  return {
    name,
    source,
    urlFor: id => url.urlFor(id, notInUrl),
    ...(body && { bodyFor: body.bodyFor }),
    origin: url.origin,
    headers,
    ...(token && { token }),
    maxAgeMs: maxAge,
    refreshMs: changes ? 0 : periodMs,
    ...(refresh === 'wait' && { waitMs: WAIT_MS }),
    ...(changes && { changes: { ...changes.sse, pollMs: periodMs } }),
    timeoutMs: timeout,
    bytesMax: maxBytes,
    ...(redirects === 'same-origin' && { followsRedirects: true }),
    ids: idsOf(written),
    ...(names.length > 0 && { query: { names, headers: asHeaders } }),
    ...(batch && { batch: { ...batch.url, max: batch.max, items: batch.items, id: batch.id } }),
    ...(per && { isPerUser: true }),
    ...(notify && { notify: notifyOf(notify) }),
    ...(authorize && { authorize: authorizeOf(authorize, notInUrl) }),
  }
}

/** Access rights are for gateways: other services need none of their variables. @param document not yet checked */
function withoutAccess(document: unknown) {
  if (typeof document !== 'object' || document === null || !('access' in document)) return document
  const { access: _, ...rest } = document
  return rest
}

/** @param document not yet checked @param fields of namespaces; with a point, where they are maps that have it */
function withoutFields(document: unknown, fields: string[]) {
  const { namespaces } = (document ?? {}) as { namespaces?: Record<string, unknown> }
  for (const namespace of Object.values(namespaces ?? {})) {
    if (typeof namespace !== 'object' || namespace === null) continue
    const written = namespace as Record<string, unknown>
    for (const field of fields) {
      const [name, within] = field.split('.')
      if (within === undefined || Object.hasOwn(Object(written[name]), within)) delete written[name]
    }
  }
  return document
}
