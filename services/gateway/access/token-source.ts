// Finds a request's token: in the Authorization header, else in the configured cookie. Never in the URL, which is
// logged.
import type { IncomingHttpHeaders } from 'node:http'
import { excerpt } from '@keycast/protocol'

/** RFC 6265 section 4.1.1: a cookie's name is a token (RFC 9110 section 5.6.2). */
const cookieNameGrammar = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/

/** RFC 9110 section 11.1: the scheme's name is in any case, and one space or more follow. */
const bearerGrammar = /^bearer(?: +(.*))?$/is

/**
 * A token that came with a request. It may be empty or no token at all: verifying it says so. It is then refused, and
 * not taken for anonymous, or a client's mistake would show as missing rights.
 */
interface Presented {
  token: string
  source: 'header' | 'cookie'
}

/**
 * @param options the name of the cookie that may hold a token, which may change; `undefined`: none
 * @returns `undefined`: the request is anonymous. Other schemes than Bearer are not looked at: they may be meant for a
 *   proxy
 */
export function readTokenSource(options: {
  readonly cookie: string | undefined
}): (headers: IncomingHttpHeaders) => Presented | undefined {
  return headers => {
    const { cookie } = options
    const bearer = bearerToken(headers)
    if (bearer !== undefined) return { token: bearer, source: 'header' }
    if (cookie === undefined || headers.cookie === undefined) return undefined
    const token = cookieValue(headers.cookie, cookie)
    return token === undefined ? undefined : { token, source: 'cookie' }
  }
}

/** @returns `undefined` where another scheme is named, or none; empty where no token follows */
export function bearerToken({ authorization = '' }: IncomingHttpHeaders): string | undefined {
  const bearer = bearerGrammar.exec(authorization)
  return bearer ? (bearer[1] ?? '').trim() : undefined
}

/**
 * Finds what is wrong with taking tokens from a cookie, if anything.
 *
 * @param origins as GATEWAY_ORIGINS has them
 */
export function cookieProblem(name: string, origins: string) {
  if (!cookieNameGrammar.test(name)) return `${excerpt(name)} is no cookie's name (RFC 6265 section 4.1.1)`
  // A browser sends cookies with a WebSocket that any page opens: every page would act as the user who sees it.
  if (origins === '*') return 'needs GATEWAY_ORIGINS to name the origins whose pages may connect: it is *'
  return undefined
}

/**
 * @returns empty where the cookie is given twice with different values: a page of a neighbouring host can add one, and
 *   it cannot be told which is the user's
 */
function cookieValue(header: string, name: string): string | undefined {
  let found: string | undefined
  for (const pair of header.split(';')) {
    const equals = pair.indexOf('=')
    if (equals === -1 || pair.slice(0, equals).trim() !== name) continue
    const value = unquote(pair.slice(equals + 1).trim())
    if (found !== undefined && found !== value) return ''
    found = value
  }
  return found
}

function unquote(value: string) {
  return value.length >= 2 && value.startsWith('"') && value.endsWith('"') ? value.slice(1, -1) : value
}
