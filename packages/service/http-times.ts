// Reads the times in an HTTP header. Dates are those of RFC 9110 section 5.6.7.

/** Names in lower case, as Node gives them. */
export type Headers = Record<string, string | undefined>

/** RFC 9111 section 1.2.2: what a cache does with more seconds than it can count. */
const SECONDS_MAX = 2 ** 31

/** @returns `undefined` where the text is no number of seconds */
export function readSeconds(text: string): number | undefined {
  return /^\d+$/.test(text) ? Math.min(Number(text), SECONDS_MAX) : undefined
}

/**
 * Retry-After, in seconds or as a date (RFC 9110 section 10.2.3). A date is held against the response's own Date, so
 * that the backend's clock may be wrong.
 *
 * @param now milliseconds since 1970, where the response has no Date
 */
export function retryAfterMsOf(headers: Headers, now: number): number | undefined {
  const written = headers['retry-after']
  if (written === undefined) return undefined
  const seconds = readSeconds(written)
  const ms = seconds === undefined ? readHttpDate(written) - dateOf(headers, now) : seconds * 1_000
  return Number.isNaN(ms) ? undefined : Math.max(0, ms)
}

/** @param now milliseconds since 1970, where the response has no Date */
export function dateOf(headers: Headers, now: number): number {
  const date = readHttpDate(headers.date ?? '')
  return Number.isNaN(date) ? now : date
}

/**
 * Reads the form of today and the two obsolete ones, which a recipient must still accept.
 *
 * @returns milliseconds since 1970, NaN where the text is no date
 */
export function readHttpDate(text: string): number {
  // Date.parse alone would take "5" or "-1" for a date, and any length of comment after one.
  if (!/^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[\w ,:-]{17,32}$/.test(text)) return Number.NaN
  // asctime's form names no zone and means GMT, where Date.parse would take it for local time.
  return Date.parse(text.endsWith('GMT') ? text : `${text} GMT`)
}
