// The dates of HTTP headers (RFC 9110 section 5.6.7).

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
