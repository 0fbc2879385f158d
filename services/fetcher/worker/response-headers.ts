// Reads from a response's header how long the value may be kept, and the validators for the next request.
import { dateOf, type Headers, readHttpDate, readSeconds } from '@keycast/service'

/** Validators are kept with each value; a backend that needs longer ones is asked without. */
const ETAG_CHARACTERS_MAX = 1_024

/**
 * Last-Modified counts whole seconds: what changes again within the same second keeps its date, and a 304 would hide
 * that change. Two seconds before Date leave that second behind, with one to spare (RFC 9110 section 8.8.2.2).
 */
const LAST_MODIFIED_SETTLED_MS = 2_000

// A token, then perhaps a value, bare or quoted: a comma within quotes ends nothing (RFC 9111 section 5.2).
const directiveGrammar = /([\w!#$%&'*+.^`|~-]+)(?:\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]*)))?/g

/**
 * Cache-Control, Expires and Age (RFC 9111 sections 4.2, 5.1, 5.2.2, 5.3) as a shared cache reads them: `s-maxage`
 * before `max-age` before Expires, `private` and `Vary: *` as little to be stored as `no-store`. Where several values of a directive
 * compete, the first holds; one that is no number, like `no-cache`, leaves no time at all.
 *
 * @param now milliseconds since 1970, where the response has no Date
 */
export function freshnessOf(headers: Headers, now: number): { store: boolean; maxAgeMs: number | undefined } {
  const directives = new Map<string, string>()
  for (const [, name, quoted, bare] of (headers['cache-control'] ?? '').matchAll(directiveGrammar)) {
    const directive = name.toLowerCase()
    if (!directives.has(directive)) directives.set(directive, quoted ?? bare ?? '')
  }
  const seconds = directives.get('s-maxage') ?? directives.get('max-age')
  const lifetimeMs = seconds === undefined ? expiresMsOf(headers, now) : (readSeconds(seconds) ?? 0) * 1_000
  const ageMs = (readSeconds(headers.age ?? '') ?? 0) * 1_000
  // RFC 9111 section 4.1: it is the answer to no later request. Any other Vary needs nothing: all requests for a key have
  // the same headers, but for a token of the same service, or of the viewer whose own value it is.
  const variesByAll = headers.vary?.split(',').some(name => name.trim() === '*')
  return {
    // Both in the form that names header fields too: more is withheld than must be, never less.
    store: !directives.has('no-store') && !directives.has('private') && !variesByAll,
    maxAgeMs: directives.has('no-cache') || variesByAll ? 0 : lifetimeMs && Math.max(0, lifetimeMs - ageMs),
  }
}

/**
 * The same of a 304, which confirms the fields that it does not repeat (RFC 9111 section 4.3.4).
 *
 * @returns `undefined` where what was held before stands
 */
export function confirmedFreshnessOf(
  headers: Headers,
  now: number,
): { store: boolean | undefined; maxAgeMs: number | undefined } {
  const freshness = freshnessOf(headers, now)
  return headers['cache-control'] === undefined ? { ...freshness, store: undefined } : freshness
}

/** Backends write `Expires: 0` for expired content, and may write any other text that is no date. */
function expiresMsOf(headers: Headers, now: number) {
  if (headers.expires === undefined) return undefined
  const ms = readHttpDate(headers.expires) - dateOf(headers, now)
  return Number.isNaN(ms) ? 0 : Math.max(0, ms)
}

/**
 * The validators for asking for the value again. An entity tag, weak or strong, goes back as it came.
 *
 * @param now milliseconds since 1970, where the response has no Date
 */
export function validatorsOf(
  headers: Headers,
  now: number,
): { etag: string | undefined; lastModified: string | undefined } {
  const { etag, 'last-modified': lastModified } = headers
  return {
    // `*` is no tag. Sent back it would mean any version there is, and an empty one may equal that of any.
    etag: etag && etag !== '*' && etag.length <= ETAG_CHARACTERS_MAX ? etag : undefined,
    lastModified: lastModified !== undefined && isSettled(lastModified, headers, now) ? lastModified : undefined,
  }
}

function isSettled(lastModified: string, headers: Headers, now: number) {
  return dateOf(headers, now) - readHttpDate(lastModified) >= LAST_MODIFIED_SETTLED_MS
}
