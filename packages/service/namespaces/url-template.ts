// The URL of a namespace: a template with `{id}`, or `{1}` and so on, in its path or query. No id can leave its place
// there.
import { excerpt, partsOf } from '@keycast/protocol'
import { type Cut, cut, fill } from './placeholders.ts'

/** Replaces an id while the template is parsed. Its characters are unreserved, so parsing does not change it. */
const PLACEHOLDER = 'KEYCAST-ID-PLACEHOLDER'

export interface UrlTemplate {
  origin: string
  /** As it is written, for logs. Without its query, where secrets may stand. */
  pattern: string
  /**
   * An id's parameters follow those of the template.
   *
   * @param notSent parameters that stand elsewhere
   * @throws {RangeError} for an id that would leave its place, or has no segment for one
   */
  urlFor: (id: string, notSent?: readonly string[]) => string
  /** Where ids stand: 0 for a whole one, else the number of a segment. */
  places: number[]
}

/** Reads a template and returns the function that makes URLs of it. */
export function readUrlTemplate(template: string): UrlTemplate | { problem: string } {
  // URL parsers silently drop or change these (WHATWG URL section 4.4), so requests would not go to the written URL.
  if (/[\s\\]/.test(template)) return { problem: 'must hold no white space and no backslash' }
  const read = cut(template)
  if ('problem' in read) return read
  const { places } = read
  if (new Set(places).size < places.length) return { problem: 'must hold each of {id}, {1}, {2} once' }
  const filled = read.texts.join(PLACEHOLDER)
  if (/[{}]/.test(filled)) return { problem: 'must contain no braces but those of {id}, or of {1}, {2} and so on' }
  if (!URL.canParse(filled)) return { problem: 'must be an absolute URL, as in http://backend:3000/items/{id}' }

  const { protocol, username, password, hash, origin, pathname, search, href } = new URL(filled)
  if (protocol !== 'http:' && protocol !== 'https:') return { problem: 'must begin with http:// or https://' }
  if (username || password) return { problem: 'must hold no user name and no password: use a header' }
  if (hash || template.includes('#')) return { problem: 'must have no fragment, which HTTP never sends' }
  const inPath = pathname.split(PLACEHOLDER).length - 1
  const inQuery = search.split(PLACEHOLDER).length - 1
  if (inPath + inQuery < places.length) return { problem: 'must have {id} in its path or query' }

  const place = { origin, parts: { texts: href.split(PLACEHOLDER), places }, inPath, hasQuery: search !== '' }
  const [pattern] = template.split('?', 1)
  return { origin, pattern, urlFor: (id, notSent = []) => urlWithin(place, id, notSent), places }
}

/** RFC 9110 section 4.1: servers take at least this many. */
const URL_BYTES_MAX = 8_000

/** Where a backend is asked for many keys at once. */
export interface BatchUrl {
  origin: string
  /** @throws {RangeError} for an id that would leave its place */
  urlFor: (ids: string[]) => string
  /** Room for ids in a URL. */
  idsBytesMax: number
  /** The room that an id takes. */
  bytesOf: (id: string) => number
}

/** Reads the template of a batch: `{ids}` stands in it once, for ids separated by commas. */
export function readBatchUrl(template: string): BatchUrl | { problem: string } {
  const [before, after, ...others] = template.split('{ids}')
  if (after === undefined || others.length > 0) return { problem: 'must hold {ids} once' }
  if (/[{}]/.test(before + after)) return { problem: 'must contain no braces but those of {ids}' }
  const read = readUrlTemplate(`${before}{id}${after}`)
  if ('problem' in read) return read
  const [start, end] = read.urlFor(PLACEHOLDER).split(PLACEHOLDER)
  return {
    origin: read.origin,
    urlFor(ids) {
      const url = start + ids.map(encode).join(',') + end
      if (new URL(url).href !== url) throw new RangeError(`the ids ${excerpt(ids.join())} lead outside ${start}`)
      return url
    },
    idsBytesMax: URL_BYTES_MAX - start.length - end.length,
    bytesOf: id => encode(id).length + ','.length,
  }
}

interface Place {
  origin: string
  parts: Cut
  /** How many of the places are in the path; the others follow, in the query. */
  inPath: number
  hasQuery: boolean
}

function urlWithin({ origin, parts, inPath, hasQuery }: Place, id: string, notSent: readonly string[]) {
  const { segments, parameters } = partsOf(id)
  // A slash is a character like any other in a query (RFC 3986 section 3.4): there it separates nothing.
  const path = fill(parts, segments, (put, index) =>
    index < inPath ? put.map(encode).join('/') : encode(put.join('/')),
  )
  const query = parameters
    .filter(([name]) => !notSent.includes(name))
    .map(([name, value]) => `${encode(name)}=${encode(value)}`)
    .join('&')
  const url = query === '' ? path : `${path}${hasQuery ? '&' : '?'}${query}`
  // The last check before a request: it holds even if an id got past the key grammar. If parsing changes anything, it
  // resolves a dot segment, and the request would be for another resource.
  const parsed = new URL(url)
  if (parsed.href !== url || parsed.origin !== origin) {
    throw new RangeError(`the id ${excerpt(id)} leads outside ${parts.texts[0]}`)
  }
  return url
}

/** Unreserved characters stand, all others are percent-encoded (RFC 3986 section 2.3). */
const encode = (text: string) =>
  encodeURIComponent(text).replace(/[!'()*]/g, character => `%${character.charCodeAt(0).toString(16).toUpperCase()}`)
