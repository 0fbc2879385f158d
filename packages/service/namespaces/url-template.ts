// The URL of a namespace: a template with `{id}` in its path. No id can make a URL outside that path.
import { excerpt } from '@keycast/protocol'

/** Replaces an id while the template is parsed. Its characters are unreserved, so parsing does not change it. */
const PLACEHOLDER = 'KEYCAST-ID-PLACEHOLDER'

/** Reads a template and returns the function that makes URLs of it. */
export function readUrlTemplate(
  template: string,
): { origin: string; urlFor: (id: string) => string } | { problem: string } {
  // URL parsers silently drop or change these (WHATWG URL section 4.4), so requests would not go to the written URL.
  if (/[\s\\]/.test(template)) return { problem: 'must hold no white space and no backslash' }
  if (template.split('{id}').length !== 2) return { problem: 'must contain {id} exactly once' }
  const filled = template.replace('{id}', PLACEHOLDER)
  if (/[{}]/.test(filled)) return { problem: 'must contain no braces but those of {id}' }
  if (!URL.canParse(filled)) return { problem: 'must be an absolute URL, as in http://backend:3000/items/{id}' }

  const { protocol, username, password, hash, origin, pathname, href } = new URL(filled)
  if (protocol !== 'http:' && protocol !== 'https:') return { problem: 'must begin with http:// or https://' }
  if (username || password) return { problem: 'must hold no user name and no password: use a header' }
  if (hash || template.includes('#')) return { problem: 'must have no fragment, which HTTP never sends' }
  if (pathname.split(PLACEHOLDER).length !== 2) return { problem: 'must have {id} in its path' }

  const [head, tail] = href.split(PLACEHOLDER)
  const prefix = pathname.slice(0, pathname.indexOf(PLACEHOLDER))
  return { origin, urlFor: id => urlWithin({ origin, prefix, head, tail }, id) }
}

/** The last check before a request: it holds even if an id got past the key grammar. */
function urlWithin(
  { origin, prefix, head, tail }: { origin: string; prefix: string; head: string; tail: string },
  id: string,
) {
  const url = head + id.split('/').map(encodeURIComponent).join('/') + tail
  const parsed = new URL(url)
  // If parsing changed anything, it resolved a dot segment, and the request would be for another resource.
  const inside = parsed.href === url && parsed.origin === origin && parsed.pathname.startsWith(prefix)
  if (!inside) throw new RangeError(`the id ${excerpt(id)} leads outside ${origin}${prefix}`)
  return url
}
