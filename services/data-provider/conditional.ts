// Conditional requests (RFC 9110 section 13): whether to answer 304.
import type { IncomingHttpHeaders } from 'node:http'
import { readHttpDate } from '@keycast/service'

const entityTag = /(?:W\/)?("[\x21\x23-\x7e\x80-\xff]*")/g

/**
 * Whether the client's copy is still current. If-None-Match wins: beside it a date is ignored (section 13.1.3).
 * Comparison is weak, as section 13.1.2 demands.
 *
 * @param headers of a GET or HEAD
 */
export function isNotModified(
  headers: IncomingHttpHeaders,
  { etag, changedAtMs }: { etag: string; changedAtMs: number },
) {
  const held = headers['if-none-match']
  if (held !== undefined) {
    if (held.trim() === '*') return true
    return [...held.matchAll(entityTag)].some(([, opaque]) => opaque === etag)
  }
  // A date that cannot be read is NaN, compares false and so is ignored. Last-Modified counts whole seconds.
  return Math.floor(changedAtMs / 1_000) * 1_000 <= readHttpDate(headers['if-modified-since'] ?? '')
}
