// The URL of a namespace: a template with `{id}` in its path or query. No id can leave its place there.
import { excerpt } from '@keycast/protocol'

/** Replaces an id while the template is parsed. Its characters are unreserved, so parsing does not change it. */
const PLACEHOLDER = 'KEYCAST-ID-PLACEHOLDER'

export interface UrlTemplate {
  origin: string
  /** Throws a RangeError for an id that would leave its place. */
  urlFor: (id: string) => string
  hasId: boolean
}

/** Reads a template and returns the function that makes URLs of it. `{id}` stands once, or not at all. */
export function readUrlTemplate(template: string): UrlTemplate | { problem: string } {
  // URL parsers silently drop or change these (WHATWG URL section 4.4), so requests would not go to the written URL.
  if (/[\s\\]/.test(template)) return { problem: 'must hold no white space and no backslash' }
  const hasId = template.includes('{id}')
  if (template.split('{id}').length > 2) return { problem: ID_ONCE }
  const filled = template.replace('{id}', PLACEHOLDER)
  if (/[{}]/.test(filled)) return { problem: 'must contain no braces but those of {id}' }
  if (!URL.canParse(filled)) return { problem: 'must be an absolute URL, as in http://backend:3000/items/{id}' }

  const { protocol, username, password, hash, origin, pathname, search, href } = new URL(filled)
  if (protocol !== 'http:' && protocol !== 'https:') return { problem: 'must begin with http:// or https://' }
  if (username || password) return { problem: 'must hold no user name and no password: use a header' }
  if (hash || template.includes('#')) return { problem: 'must have no fragment, which HTTP never sends' }
  if (!hasId) return { origin, urlFor: () => href, hasId }
  const isInPath = pathname.split(PLACEHOLDER).length === 2
  if (!isInPath && search.split(PLACEHOLDER).length !== 2) return { problem: 'must have {id} in its path or query' }

  const [head, tail] = href.split(PLACEHOLDER)
  const place = { origin, path: pathname.split(PLACEHOLDER), head, tail }
  return { origin, urlFor: id => urlWithin(place, id), hasId }
}

/** Of a URL that needs an id, and has none, or several. */
export const ID_ONCE = 'must contain {id} exactly once'

interface Place {
  origin: string
  /** Around the id; of an id in the query, the path alone. */
  path: string[]
  head: string
  tail: string
}

/** The last check before a request: it holds even if an id got past the key grammar. */
function urlWithin({ origin, path, head, tail }: Place, id: string) {
  const isInPath = path.length === 2
  const encoded = isInPath ? id.split('/').map(encodeURIComponent).join('/') : encodeURIComponent(id)
  const url = head + encoded + tail
  const parsed = new URL(url)
  // If parsing changed anything, it resolved a dot segment, and the request would be for another resource.
  const inside = parsed.href === url && parsed.origin === origin && isWithin(parsed.pathname, path)
  if (!inside) throw new RangeError(`the id ${excerpt(id)} leads outside ${origin}${path[0]}`)
  return url
}

const isWithin = (pathname: string, [before, after]: string[]) =>
  after === undefined ? pathname === before : pathname.startsWith(before)
