// Entity tags (RFC 9110 section 8.8.3): how an HTTP client says which version it has already.

/** One member of an If-None-Match list: an opaque tag, weak or not. Ours have neither quotes nor commas. */
const tagGrammar = /(?:W\/)?"([^"]*)"/g

/** No cache sends a longer list: reading one would only cost time. */
const LIST_CHARACTERS_MAX = 8_192

/**
 * Whether an `If-None-Match` header names the tag, so that 304 answers the request. Compared weakly, as RFC 9110
 * section 13.1.2 asks: `W/"x"` is the same as `"x"`.
 *
 * @param opaqueTag without quotes
 */
export function matchesAny(header: string | undefined, opaqueTag: string) {
  if (header === undefined || header.length > LIST_CHARACTERS_MAX) return false
  if (header.trim() === '*') return true
  for (const [, listed] of header.matchAll(tagGrammar)) {
    if (listed === opaqueTag) return true
  }
  return false
}
