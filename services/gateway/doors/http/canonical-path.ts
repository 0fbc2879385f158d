// One spelling for each path, before any route: what is decided by a path's beginning must not miss one that is written
// in another way. Routes are found in either.

/** RFC 3986 section 6.2.2.2: letters, digits and -._~ mean the same where they are percent-encoded, and need not be. */
const unreservedGrammar = /%(?:[46][1-9a-f]|[57][0-9a]|3\d|2[de]|5f|7e)/gi

/** RFC 9112 section 3.2.2: a request may name its server, too, as one to a proxy does. */
const serverGrammar = /^https?:\/\/[^/]*\/?/i

/** @param url of a request. Its query stays as it is: a cache keeps another answer for each */
export function canonicalPath(url: string): string {
  const end = url.indexOf('?')
  const path = end < 0 ? url : url.slice(0, end)
  return path.replace(serverGrammar, '/').replace(unreservedGrammar, decodeURIComponent) + url.slice(path.length)
}
