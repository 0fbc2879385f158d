// Finds a request's token: in the Authorization header, else in the configured cookie. Never in the URL, which is
// logged.
import { excerpt } from '@keycast/protocol'

/** RFC 6265 section 4.1.1: a cookie's name is a token (RFC 9110 section 5.6.2). */
const cookieNameGrammar = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/

/** RFC 9110 section 11.1: the scheme's name is in any case, and one space or more follow. */
const bearerGrammar = /^bearer(?: +(.*))?$/is

/**
 * A token that came with a request. It may be empty or no token at all: verifying it says so. It is then refused, and
 * not taken for anonymous, or a client's mistake would show as missing rights.
 *
 * @typedef {{ token: string, source: 'header' | 'cookie' }} Presented
 */

/**
 * @param {{ cookie: string | undefined }} options the name of the cookie that may hold a token; `undefined`: none
 * @returns {(headers: import('node:http').IncomingHttpHeaders) => Presented | undefined} `undefined`: the request is
 *   anonymous. Other schemes than Bearer are not looked at: they may be meant for a proxy
 */
export function readTokenSource({ cookie }) {
  return headers => {
    const bearer = bearerGrammar.exec(headers.authorization ?? '')
    if (bearer) return { token: (bearer[1] ?? '').trim(), source: 'header' }
    if (cookie === undefined || headers.cookie === undefined) return undefined
    const token = cookieValue(headers.cookie, cookie)
    return token === undefined ? undefined : { token, source: 'cookie' }
  }
}

/**
 * Finds what is wrong with taking tokens from a cookie, if anything.
 *
 * @param {string} name
 * @param {string} origins as GATEWAY_ORIGINS has them
 */
export function cookieProblem(name, origins) {
  if (!cookieNameGrammar.test(name)) return `${excerpt(name)} is no cookie's name (RFC 6265 section 4.1.1)`
  // A browser sends cookies with a WebSocket that any page opens: every page would act as the user who sees it.
  if (origins === '*') return 'needs GATEWAY_ORIGINS to name the origins whose pages may connect: it is *'
  return undefined
}

/**
 * @param {string} header
 * @param {string} name
 * @returns {string | undefined} empty where the cookie is given twice with different values: a page of a neighbouring
 *   host can add one, and it cannot be told which is the user's
 */
function cookieValue(header, name) {
  /** @type {string | undefined} */
  let found
  for (const pair of header.split(';')) {
    const equals = pair.indexOf('=')
    if (equals === -1 || pair.slice(0, equals).trim() !== name) continue
    const value = unquote(pair.slice(equals + 1).trim())
    if (found !== undefined && found !== value) return ''
    found = value
  }
  return found
}

/** @param {string} value */
function unquote(value) {
  return value.length >= 2 && value.startsWith('"') && value.endsWith('"') ? value.slice(1, -1) : value
}
