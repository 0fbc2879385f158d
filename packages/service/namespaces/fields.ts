// Fields that all namespaces write in the same way: quantities, URLs, headers, and the access check.
import { z } from 'zod'
import { http } from '../node-http.ts'
import { duration, type Rule } from '../quantities.cjs'
import { strictMap } from './strict-map.ts'
import { readUrlTemplate } from './url-template.ts'

/** A day: Keycast is for live values, not an archive. */
export const DURATION_MS_MAX = 24 * 3_600_000

/** A shorter period would make each viewer of a key cost the backend as much as the key itself. */
const KEEP_MS_MIN = 1_000

/** Headers that HTTP itself or the fetcher sets (RFC 9110 sections 7.6.1, 8.6, 13.1, 14.2; W3C Trace Context). */
const reservedHeaders = new Set(
  `accept-encoding connection content-length expect if-match if-modified-since if-none-match if-range
  if-unmodified-since keep-alive proxy-connection range te traceparent trailer transfer-encoding upgrade`.split(/\s+/),
)

/** A field written as text or as a number, read by a rule. */
export const quantity = ({ read, expects }: Rule) => {
  const error = `must be ${expects}`
  return z
    .union([z.string(), z.number()], { error })
    .transform(written => read(String(written)))
    .refine(number => !Number.isNaN(number), { error })
}

/** A field as something that knows its form makes it, or says why it cannot. */
export const readBy =
  <Written, Read extends object>(read: (written: Written) => Read | { problem: string }) =>
  (written: Written, context: z.core.$RefinementCtx): Read => {
    const found = read(written)
    if (!('problem' in found)) return found
    context.addIssue(found.problem)
    return z.NEVER
  }

/** A field whose form another schema has, which is chosen by what is written: so an error is said of a field in it. */
export const chosenBy = <Schema extends z.ZodType>(schemaOf: (written: unknown) => Schema) =>
  z.unknown().transform((written, context): z.output<Schema> => {
    const read = schemaOf(written).safeParse(written)
    if (read.success) return read.data
    for (const issue of read.error.issues) context.issues.push({ ...issue, input: written } as z.core.$ZodRawIssue)
    return z.NEVER
  })

export const url = z.string({ error: 'must be a URL' }).transform(readBy(readUrlTemplate))

/** @param fewest segments that an id may have: for one that a place lacks there is no URL */
export function beyondProblem(places: number[], fewest: number): string | undefined {
  const beyond = places.find(place => place > fewest)
  return beyond === undefined ? undefined : `must not hold {${beyond}}: an id here may have fewer segments`
}

/** For ids that may have one segment. */
export const urlOfAny = url.superRefine(({ places }, context) => {
  const problem = beyondProblem(places, 1)
  if (problem) context.addIssue({ code: 'custom', message: problem })
})

/** An id of 255 characters has no more. */
const ID_SEGMENTS_MAX = 128

const idsError = `must be a map as in { segments: 1 }, with 1 to ${ID_SEGMENTS_MAX}`
export const ids = strictMap(
  {
    segments: z
      .number({ error: idsError })
      .refine(segments => Number.isInteger(segments) && segments >= 1 && segments <= ID_SEGMENTS_MAX, idsError),
  },
  { error: idsError },
)

/** One URL for all keys. @param problem of one with a place for an id */
export const urlOfAll = (problem: string) =>
  url.transform((read, context) => {
    if (read.places.length === 0) return { url: read.urlFor(''), origin: read.origin }
    context.addIssue({ code: 'custom', message: problem })
    return z.NEVER
  })

const methodError = 'must be HEAD or GET'
const asking = {
  url,
  method: z.enum(['HEAD', 'GET'], { error: methodError }).default('HEAD'),
  keep: quantity(duration({ minMs: KEEP_MS_MIN, maxMs: DURATION_MS_MAX })).default(60_000),
  keepRefused: quantity(duration({ minMs: KEEP_MS_MIN, maxMs: DURATION_MS_MAX })).default(2_000),
}

/** For a namespace of values, whose `timeout` holds for it, too. */
export const authorize = strictMap(asking, { error: 'must be a map with url, method, keep and keepRefused' })

/** Where the backend is asked with the viewer's own token, and for how long what it said holds. */
export interface Authorize {
  urlFor: (id: string) => string
  origin: string
  /** Of the URL, for logs. */
  pattern: string
  method: 'HEAD' | 'GET'
  keepMs: number
  /** For how long a refusal holds: who is let in a moment later need not wait for long. */
  keepRefusedMs: number
}

/** @param notInUrl parameters of a key that do not stand in the URL */
export function authorizeOf(
  { url, method, keep, keepRefused }: z.output<typeof authorize>,
  notInUrl?: readonly string[],
): Authorize {
  const { origin, pattern, urlFor } = url
  return { urlFor: id => urlFor(id, notInUrl), origin, pattern, method, keepMs: keep, keepRefusedMs: keepRefused }
}

/** For a namespace of rooms, or of values that are handed over. */
export const authorizeRooms = strictMap(
  { ...asking, url: urlOfAny, timeout: quantity(duration({ minMs: 1, maxMs: DURATION_MS_MAX })).default(2_000) },
  { error: 'must be a map with url, method, keep, keepRefused and timeout' },
)

export const headers = z
  .record(z.string(), z.union([z.string(), z.number()], { error: 'must be text' }), {
    error: 'must be a map of headers',
  })
  .transform((written, context) => {
    const read = new Map<string, string>()
    for (const [name, value] of Object.entries(written)) {
      const lower = name.toLowerCase()
      const problem = read.has(lower) ? 'is given twice' : headerProblem(lower, String(value))
      if (problem) context.addIssue({ code: 'custom', message: problem, path: [name] })
      read.set(lower, String(value))
    }
    const sent = [...read].filter(([, value]) => !isEmptyHeader(value)).map(([name, value]) => [name, value.trim()])
    return Object.fromEntries(sent) as Record<string, string>
  })

/** @param name in lower case */
export function headerProblem(name: string, value: string) {
  if (reservedHeaders.has(name)) return 'cannot be set: Keycast sets it itself'
  try {
    http.validateHeaderName(name)
  } catch {
    return 'is not a valid header name (RFC 9110 section 5.1)'
  }
  try {
    http.validateHeaderValue(name, value.trim())
  } catch {
    return 'has a value that is not valid in a header (RFC 9110 section 5.5)'
  }
  return undefined
}

/** Empty, or a scheme whose credentials came out empty: `Bearer ${BACKEND_TOKEN:-}`. */
function isEmptyHeader(value: string) {
  return value.trim() === '' || /^\S+\s+$/.test(value)
}
