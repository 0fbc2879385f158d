// The calls of the backend and the operator, on the internal listener and under a bearer token: `POST /v1/refresh` when
// content changed, `GET /v1/keys/{key}` to answer "why is this stale?".
import { createHash, timingSafeEqual } from 'node:crypto'
import { FetcherUnavailable } from '@keycast/backbone'
import { keyProblem, namespaceOf } from '@keycast/protocol'
import { sendProblem } from './problems.js'

/** As many keys as a session may hold by default: whoever has more to tell tells it in several calls. */
const KEYS_MAX = 5_000

/** 5,000 of the longest keys and what stands between them. */
const BODY_BYTES_MAX = 2 * 1024 ** 2

/** How long nodes may take to confirm: a dead one is noticed, and waited for no longer, within 4 s. */
const REFRESH_DEADLINE_MS = 5_000

/** When to try again after not every node could be told. */
const RETRY_AFTER_SECONDS = 1

/**
 * @param {import('fastify').FastifyInstance} app of the internal listener
 * @param {object} deps
 * @param {Pick<import('../keys/values.js').Values, 'describe' | 'refusal'>} deps.values
 * @param {Pick<import('@keycast/backbone').Backbone, 'refresh'>} deps.backbone
 * @param {import('@keycast/service').Namespaces} deps.namespaces
 * @param {string | undefined} deps.apiToken
 */
export function addInternal(app, { values, backbone, namespaces, apiToken }) {
  app.register(async calls => {
    calls.addHook('onRequest', createGuard(apiToken))

    calls.post('/v1/refresh', { bodyLimit: BODY_BYTES_MAX }, async (request, reply) => {
      const { keys, problems } = readKeys(request.body, namespaces)
      if (problems.length > 0) {
        return reply.code(400).send({ code: 'bad_request', message: 'nothing was refreshed', problems })
      }
      try {
        await backbone.refresh(keys, { deadlineMs: REFRESH_DEADLINE_MS })
      } catch (error) {
        if (!(error instanceof FetcherUnavailable)) throw error
        const retryAfterMs = RETRY_AFTER_SECONDS * 1_000
        return sendProblem(reply, { code: 'fetcher_unavailable', message: error.message, retryAfterMs })
      }
      return reply.code(202).send({ keys: keys.length })
    })

    // As at /v1/values: the id may hold `/`.
    calls.get('/v1/keys/*', async (request, reply) => {
      const { '*': key } = /** @type {{ '*': string }} */ (request.params)
      const problem = values.refusal(key)
      if (problem) return sendProblem(reply, problem)
      return describeKey(values.describe(key), namespaces.get(namespaceOf(key)))
    })
  })
}

/**
 * Lets only those in who know the token. Compared by digest, so that neither its content nor its length shows in the
 * time taken.
 *
 * @param {string | undefined} apiToken
 * @returns {import('fastify').onRequestAsyncHookHandler}
 */
function createGuard(apiToken) {
  const expected = apiToken === undefined ? undefined : digest(`Bearer ${apiToken}`)
  return async ({ headers: { authorization = '' } }, reply) => {
    if (!expected) {
      return reply.code(403).send({ code: 'no_token_set', message: 'API_TOKEN is not set: this call is switched off' })
    }
    // RFC 9110 section 11.1: the scheme's name is in any case.
    const given = authorization.replace(/^bearer +/i, 'Bearer ')
    if (timingSafeEqual(digest(given), expected)) return
    const message = authorization === '' ? 'send Authorization: Bearer and the API token' : 'the token is wrong'
    return reply.code(401).header('www-authenticate', 'Bearer').send({ code: 'unauthorized', message })
  }
}

/** @param {string} text */
function digest(text) {
  return createHash('sha256').update(text).digest()
}

/** A body may be wrong 5,000 times: the first few say enough. */
const PROBLEMS_MAX = 10

/**
 * @param {unknown} body
 * @param {import('@keycast/service').Namespaces} namespaces
 * @returns {{ keys: string[], problems: string[] }} each key once
 */
function readKeys(body, namespaces) {
  const listed = typeof body === 'object' && body !== null && 'keys' in body ? body.keys : undefined
  if (!Array.isArray(listed) || listed.length === 0) {
    return { keys: [], problems: ['the body must be {"keys":[…]} with at least one key'] }
  }
  if (listed.length > KEYS_MAX) return { keys: [], problems: [`at most ${KEYS_MAX} keys may be named at once`] }
  /** @type {string[]} */
  const problems = []
  for (const [index, key] of listed.entries()) {
    const problem = problemOf(key, namespaces)
    if (problem) problems.push(`keys[${index}]: ${problem}`)
    if (problems.length === PROBLEMS_MAX) break
  }
  return { keys: [...new Set(listed)], problems }
}

/** @param {unknown} key @param {import('@keycast/service').Namespaces} namespaces */
function problemOf(key, namespaces) {
  if (typeof key !== 'string') return 'a key is a string'
  return keyProblem(key) ?? (namespaces.get(namespaceOf(key)) ? undefined : 'no such namespace')
}

/**
 * What an operator reads. Ages are in milliseconds; absent is what is not known.
 *
 * @param {ReturnType<import('../keys/values.js').Values['describe']>} known
 * @param {import('@keycast/service').Namespace | undefined} namespace
 */
function describeKey({ key, owner, watched, subscribers, waiting, stale, value, problem }, namespace) {
  return {
    key,
    owner: { node: owner.node ?? null, alive: owner.alive },
    watched,
    sessionsWatching: subscribers,
    getsWaiting: waiting,
    held: value !== undefined,
    stale,
    version: value?.version,
    ageMs: value?.ageMs,
    maxAgeMs: value?.maxAgeMs,
    store: value?.store,
    bytes: value?.bytes,
    contentType: value?.contentType,
    lastFailure: problem,
    namespace: namespace && {
      refreshMs: namespace.refreshMs,
      maxAgeMs: namespace.maxAgeMs,
      timeoutMs: namespace.timeoutMs,
      bytesMax: namespace.bytesMax,
    },
  }
}
