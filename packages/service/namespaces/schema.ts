// The schema of `namespaces` in keycast.yaml: every field with its default, its bounds and the error for a value that
// does not fit. Only gateways read `access`: services/gateway/access/policy-file.ts.
import { keyProblem, namespaceProblem } from '@keycast/protocol'
import { type core, z } from 'zod'
import { duration, size } from '../quantities.cjs'
import { readBodyTemplate } from './body-template.ts'
import {
  authorize,
  beyondProblem,
  chosenBy,
  DURATION_MS_MAX,
  headerProblem,
  headers,
  ids,
  quantity,
  readBy,
  url,
  urlOfAll,
} from './fields.ts'
import { type Ids, ONE_SEGMENT } from './id-problem.ts'
import { journalNamespace } from './journal-schema.ts'
import { notifyOfValues } from './notify-schema.ts'
import { pushedFields } from './pushed-schema.ts'
import { RESERVED_PREFIX } from './reserved.ts'
import { strictMap, unknownFields } from './strict-map.ts'
import { readBatchUrl, type UrlTemplate } from './url-template.ts'

/** A shorter period would load the backend for a change that no viewer sees. */
const REFRESH_MS_MIN = 50

export const REFRESH_MS_DEFAULT = 1_000

/** Every process between backend and client holds a value whole, and several times while it changes. */
export const BODY_BYTES_MAX = 64 * 1_024 ** 2

/** A primary takes the results of one request at a stretch: 30 µs each. */
const BATCH_KEYS_MAX = 500

/** Else anybody could ask in another's name. */
const credentialHeaders = new Set([
  'authorization',
  'cookie',
  'forwarded',
  'host',
  'proxy-authorization',
  'x-forwarded-for',
])

const tokenError = 'must be { file: PATH }, or { url, client, secret } and perhaps scope'
const text = z.string({ error: 'must be text' }).refine(written => written !== '', 'is empty')
const token = z.union(
  [
    strictMap({ file: text }),
    strictMap({
      url: text.refine(isHttpUrl, 'must be a URL'),
      client: text,
      secret: text,
      scope: text.optional(),
    }),
  ],
  { error: tokenError },
)

const refresh = z.union(
  [z.literal('wait'), quantity(duration({ minMs: REFRESH_MS_MIN, maxMs: DURATION_MS_MAX, zero: 'only when told' }))],
  { error: 'must be a duration, or wait' },
)

const changes = strictMap(
  {
    sse: urlOfAll('must hold no {id}: one stream tells of all keys'),
  },
  { error: 'must be a map with sse' },
)

const listError = `must be a list of parameters, as in [status, page]`
const query = z.array(z.string({ error: listError }), { error: listError }).superRefine((names, context) => {
  for (const [index, name] of names.entries()) {
    const refuse = (message: string) => context.addIssue({ code: 'custom', message, path: [index] })
    if (keyProblem(`n:1?${name}=1`)) refuse('is no name of a parameter: A-Z a-z 0-9 . _ ~ - [ ]')
    if (names.indexOf(name) < index) refuse('is given twice')
  }
})

const asHeaders = z
  .record(z.string(), z.string({ error: 'must be the name of a header' }), {
    error: 'must map parameters to headers, as in { lang: accept-language }',
  })
  .transform((written, context) => {
    const read: Record<string, string> = {}
    for (const [parameter, header] of Object.entries(written)) {
      read[parameter] = header.toLowerCase()
      const isCredential = credentialHeaders.has(read[parameter])
      const problem = isCredential ? 'cannot come from a key: it says who asks' : headerProblem(read[parameter], '')
      if (problem) context.addIssue({ code: 'custom', message: `${header} ${problem}`, path: [parameter] })
    }
    return read
  })

const body = z
  .union([z.string(), z.record(z.string(), z.unknown())], { error: 'must be JSON, as text or as a map' })
  .transform(readBy(readBodyTemplate))

const maxError = `must be a whole number: 2 to ${BATCH_KEYS_MAX}`
const pointerError = 'must be a JSON pointer (RFC 6901), as in /data/items'
const pointer = z.string({ error: pointerError }).regex(/^(\/([^~/]|~[01])*)*$/, { error: pointerError })
const batch = strictMap(
  {
    url: z.string({ error: 'must be a URL' }).transform(readBy(readBatchUrl)),
    max: z.int({ error: maxError }).min(2, { error: maxError }).max(BATCH_KEYS_MAX, { error: maxError }).default(100),
    items: pointer,
    id: pointer,
  },
  { error: 'must be a map with url, max, items and id' },
)

const httpFields = strictMap(
  {
    source: z.literal('http', { error: 'must be http, pushed or journal' }),
    method: z.enum(['GET', 'POST'], { error: 'must be GET or POST' }).default('GET'),
    url: url.optional(),
    batch: batch.optional(),
    body: body.optional(),
    per: z.literal('user', { error: 'must be user, or left out' }).optional(),
    credentials: z.literal('viewer', { error: 'must be viewer, or left out' }).optional(),
    authorize: authorize.optional(),
    headers: headers.default({}),
    token: token.optional(),
    maxAge: quantity(duration({ maxMs: DURATION_MS_MAX })).default(1_000),
    refresh: refresh.default(REFRESH_MS_DEFAULT),
    changes: changes.optional(),
    timeout: quantity(duration({ minMs: 1, maxMs: DURATION_MS_MAX })).default(2_000),
    maxBytes: quantity(size({ minBytes: 1, maxBytes: BODY_BYTES_MAX })).default(4 * 1_024 ** 2),
    redirects: z.enum(['none', 'same-origin'], { error: 'must be none or same-origin' }).default('none'),
    ids: ids.optional(),
    query: query.default([]),
    asHeaders: asHeaders.default({}),
    notify: notifyOfValues.optional(),
  },
  { error: 'must be a map with source and url' },
)

const httpNamespace = httpFields.superRefine((written, context) => {
  const { method, url, body: sentBody, per, credentials, headers: sent, token, ids, authorize } = written
  const { query, asHeaders, batch, refresh, changes, notify } = written
  const refuse = (path: string[], message: string) => context.addIssue({ code: 'custom', path, message })
  if (!url && !batch) return refuse(['url'], 'must be a URL')
  if (batch) {
    if (url) refuse(['url'], 'must be left out with batch: a value looks the same however it is asked for')
    if (method === 'POST') refuse(['method'], 'must be GET with batch')
    if (per) refuse(['per'], 'cannot be set with batch: one request has the token of one user')
    if (ids) refuse(['ids'], 'cannot be set with batch: an id has one segment there')
    if (query.length > 0) refuse(['query'], 'cannot be set with batch: its keys would differ in more than their ids')
  }
  if (refresh === 'wait') {
    if (batch) refuse(['refresh'], 'cannot be wait with batch, whose answer is that of many keys')
    if (changes) refuse(['refresh'], 'cannot be wait with changes, whose events say when to ask')
    if (method === 'POST') refuse(['refresh'], 'cannot be wait with method: POST, which has no If-None-Match')
    if (per) refuse(['refresh'], "cannot be wait with per: user: a user's token may end meanwhile")
  }
  if (method === 'POST' && !sentBody) refuse(['body'], 'is needed with method: POST')
  if (method === 'GET' && sentBody) refuse(['body'], 'needs method: POST')
  const places = [...urlOf(written).places, ...(sentBody?.places ?? [])]
  const problem = placesProblem(places, ids)
  if (problem) refuse(['url'], problem)
  else if (authorize) {
    const problem = authorizeProblem(authorize.url.places, idsOf(written))
    if (problem) refuse(['authorize', 'url'], problem)
  }
  for (const [name, header] of Object.entries(asHeaders)) {
    if (!query.includes(name)) refuse(['asHeaders', name], 'must be named by query, too')
    if (header in sent) refuse(['asHeaders', name], `${header} is set by headers, too`)
  }
  if (credentials && !per) {
    refuse(['credentials'], "without per: user, a value had with one viewer's token would be shown to all")
  }
  if (per && !credentials) {
    refuse(['per'], 'needs credentials: viewer, or the backend could not tell whose value it is asked for')
  }
  if (notify && per) refuse(['notify'], 'cannot be set with per: user: a key has a value for each user there')
  if (token && (credentials || 'authorization' in sent)) {
    refuse(['token'], `sends authorization, as ${credentials ? 'credentials: viewer' : 'headers'} does: leave one out`)
  }
  if (credentials && 'authorization' in sent) {
    refuse(['headers', 'authorization'], "cannot be set with credentials: viewer, which sends the viewer's own")
  }
})

export type HttpNamespace = z.output<typeof httpNamespace>

/** The URL of one id, which a batch has, too. */
export function urlOf({ url, batch }: Pick<HttpNamespace, 'url' | 'batch'>): Omit<UrlTemplate, 'pattern'> {
  if (batch) return { origin: batch.url.origin, urlFor: id => batch.url.urlFor([id]), places: [0] }
  return url as UrlTemplate
}

/** How many segments the ids of a namespace have: as many as its URL and body have places for. */
export function idsOf(written: Pick<HttpNamespace, 'url' | 'batch' | 'body' | 'ids'>): Ids {
  const { body: sentBody, ids } = written
  const places = [...urlOf(written).places, ...(sentBody?.places ?? [])]
  if (places.includes(0)) return ids ? { min: 1, max: ids.segments } : ONE_SEGMENT
  const count = Math.max(0, ...places)
  return { min: count, max: count }
}

/** @param places of the URL and the body */
function placesProblem(places: number[], ids: unknown) {
  const isWhole = places.includes(0)
  const count = Math.max(0, ...places)
  if (isWhole && count > 0) return 'must hold {id}, or {1} and so on, not both: nor may the body hold the other'
  if (ids && !isWhole) return 'must hold {id}, where ids says how many segments that has'
  for (let place = 1; place <= count; place++) {
    if (!places.includes(place)) return `must hold {${place}}, too: else keys that differ there have one value`
  }
  return undefined
}

/** @param places of the URL that asks who may read */
function authorizeProblem(places: number[], { min, max }: Ids) {
  if (max > 0 && places.length === 0) return 'must hold {id}, or the backend could not tell which key it is asked about'
  if (max === 0 && places.length > 0) return 'must not hold an id: the keys of this namespace have none'
  return beyondProblem(places, min)
}

const pushedNamespace = strictMap(pushedFields, {
  whyNot(field) {
    if (field === 'notify') return 'is for source: http and journal: of values that are handed over no backend is told'
    return Object.hasOwn(httpFields.shape, field)
      ? 'is for source: http: a value that is handed over is never fetched'
      : undefined
  },
})

/**
 * Chosen by the source; a namespace with an unknown source is checked as one of values, so that all errors are reported
 * at once.
 */
const namespace = chosenBy(written => {
  const { source } = (written ?? {}) as { source?: unknown }
  return source === 'journal' ? journalNamespace : source === 'pushed' ? pushedNamespace : httpNamespace
})

/** The whole file. */
export const file = strictMap(
  {
    namespaces: z
      .record(
        z.string().superRefine((name, context) => {
          const problem = namespaceProblem(name) ?? reservedProblem(name)
          if (problem) context.addIssue(problem)
        }),
        namespace,
        { error: 'must map names to namespaces' },
      )
      .refine(named => Object.keys(named).length > 0, 'must name at least one namespace')
      .superRefine(checkStreams),
  },
  { error: 'must be a map with the field "namespaces"' },
)

/** A stream that several namespaces name is opened once, with the credentials of all of them. */
function checkStreams(named: Record<string, z.output<typeof namespace>>, context: z.core.$RefinementCtx) {
  const first = new Map<string, { name: string; sent: string }>()
  for (const [name, written] of Object.entries(named)) {
    if (written.source !== 'http' || !written.changes) continue
    const { url } = written.changes.sse
    const sent = JSON.stringify([written.headers, written.token])
    const other = first.get(url) ?? { name, sent }
    first.set(url, other)
    if (other.sent === sent) continue
    const message = `is also that of ${other.name}, whose headers or token differ: a stream is opened once, with one identity`
    context.addIssue({ code: 'custom', path: [name, 'changes', 'sse'], message })
  }
}

function isHttpUrl(written: string) {
  const url = URL.parse(written)
  return url !== null && (url.protocol === 'https:' || url.protocol === 'http:') && !url.username && !url.password
}

function reservedProblem(name: string) {
  return name.startsWith(RESERVED_PREFIX) ? `names that begin with ${RESERVED_PREFIX} are Keycast's own` : undefined
}

/** The errors, each led by its line and the field's path. */
export function describe(issue: core.$ZodIssue, lineOf: (path: (string | number)[]) => number): string[] {
  const where = issue.path as (string | number)[]
  const tell = (path: (string | number)[], message: string) =>
    `line ${lineOf(path)}: ${path.join('.') || 'the file'}: ${message}`
  if (issue.code === 'unrecognized_keys') {
    return unknownFields(issue).map(({ name, message }) => tell([...where, name], message))
  }
  if (issue.code === 'invalid_key') return [tell(where, issue.issues[0].message)]
  return [tell(where, issue.message)]
}
