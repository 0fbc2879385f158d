// Which pages of other origins may read what is answered over HTTP (https://fetch.spec.whatwg.org/#http-cors-protocol):
// those that may connect, by GATEWAY_ORIGINS. Errors as well: without these headers a page cannot tell one from another.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { ANY_ORIGIN, readOrigins } from '../../sessions/allowed-origins.ts'
import { addVary } from './vary.ts'

/** What any page may read, whatever GATEWAY_ORIGINS says. */
export const forAnyPage = Object.freeze({
  'access-control-allow-origin': '*',
  'cross-origin-resource-policy': 'cross-origin',
})

const API = '/v1/'

/** A cache gives the answer to anybody, whatever page asks. */
const WAITS = '/v1/wait/'

/** Beyond those that every page may read. */
const EXPOSED = 'Age, ETag, Keycast-Cursor, Keycast-Stream, Retry-After, WWW-Authenticate'

/** What a page may send beyond what it may send anywhere. */
const preflightHeaders = Object.freeze({
  'access-control-allow-methods': 'GET, HEAD, POST',
  'access-control-allow-headers': 'Authorization, If-None-Match, Keycast-Stream, Last-Event-ID',
  // Browsers keep it for 2 h at most.
  'access-control-max-age': '7200',
})

/** @param origins as GATEWAY_ORIGINS has them */
export function createCors(origins: string) {
  const isAllowed = readOrigins(origins)

  /** Gives an answer its headers, whatever it becomes. */
  function allow({ url, headers: { origin } }: Pick<FastifyRequest, 'url' | 'headers'>, reply: FastifyReply) {
    if (!url.startsWith(API)) return
    if (url.startsWith(WAITS) || origins === ANY_ORIGIN) {
      reply.headers({ 'access-control-allow-origin': '*', 'access-control-expose-headers': EXPOSED })
      return
    }
    addVary(reply, 'Origin')
    if (origin === undefined || !isAllowed(origin)) return
    reply.headers({
      'access-control-allow-origin': origin,
      // A token may come in a cookie, as it may with an upgrade.
      'access-control-allow-credentials': 'true',
      'access-control-expose-headers': EXPOSED,
    })
  }

  return {
    allow,

    /** Must come before all routes: a hook is for those that are added after it. */
    add(app: FastifyInstance) {
      app.addHook('onRequest', (request, reply, done) => {
        allow(request, reply)
        done()
      })
      // Before a request with a token, or one that names a version, a browser asks whether it may send it.
      app.options(`${API}*`, (_, reply) => reply.code(204).headers(preflightHeaders).send())
    },
  }
}
