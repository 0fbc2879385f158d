// Conditional requests (RFC 9110 section 13): whether 304 is the answer.

const entityTag = /(?:W\/)?("[\x21\x23-\x7e\x80-\xff]*")/g

/**
 * Whether what the client holds is still what it would be sent. If-None-Match wins: where it is given, a date is not
 * looked at (section 13.1.3). Weak comparison, as section 13.1.2 asks.
 *
 * @param {import('node:http').IncomingHttpHeaders} headers of a GET or HEAD
 * @param {{ etag: string, changedAtMs: number }} document
 */
export function isNotModified(headers, { etag, changedAtMs }) {
  const held = headers['if-none-match']
  if (held !== undefined) {
    if (held.trim() === '*') return true
    return [...held.matchAll(entityTag)].some(([, opaque]) => opaque === etag)
  }
  // A date that cannot be read is NaN and compares false: it is ignored. Last-Modified counts whole seconds.
  return Math.floor(changedAtMs / 1_000) * 1_000 <= readHttpDate(headers['if-modified-since'] ?? '')
}

/** The three forms of section 5.6.7; the oldest does not say that it is GMT. @param {string} date */
function readHttpDate(date) {
  return Date.parse(date.endsWith(' GMT') ? date : `${date} GMT`)
}
