// Asks backends whether viewers may read keys: once per viewer, key and `keep`, for all gateways. The answer is kept
// for that time.
import { ANONYMOUS_VIEWER, readViewerKey, tokenDigest } from '@keycast/backbone'
import { idOf, keyProblem, namespaceOf } from '@keycast/protocol'
import { createUniqueQueue, idProblem } from '@keycast/service'
import { admits, refuses } from './asks.ts'

/**
 * @typedef {import('@keycast/backbone').Decision} Decision
 * @typedef {import('@keycast/service').Authorize} AuthorizeSettings
 * @typedef {import('./asks.ts').Reply} Reply
 * @typedef {Parameters<NonNullable<import('@keycast/backbone').HubEvents['onAuthorize']>>[2]} Question
 *
 * A question that waits for its answer. `notBefore`: an admission that began earlier does not answer it.
 * @typedef {{ link: string, id: string, question: Question, notBefore: number }} Waiting
 *
 * The backend's answer about one viewer and key. `decidedAt`: when it was asked for the verdict held. `admittedAt`: when it
 * last admitted the viewer, unless it refused since. `askedWith`: the digest of the token it was asked with. `refusals`: of
 * each token that was refused since then, when the backend was asked with it.
 * @typedef {object} Kept
 * @property {string} key the viewer key
 * @property {AuthorizeSettings} settings
 * @property {'admitted' | 'refused' | 'failed' | undefined} verdict
 * @property {string} message
 * @property {number} decidedAt
 * @property {number | undefined} admittedAt
 * @property {number} retryAt when a failed question is asked again, at the earliest
 * @property {import('../timing/backoff.ts').Backoff | undefined} backoff while questions fail
 * @property {string} askedWith
 * @property {readonly { token: string, at: number }[]} refusals
 * @property {number} begunAt when the question under way began, or the last one
 * @property {Waiting[] | undefined} waiting while the backend is asked
 */

/** At some 400 bytes each they take 40 MB. One that is dropped costs the backend a question. */
const KEPT_MAX = 100_000

/** Of one viewer and key. A gateway brings a user's four at most; with more gateways there may be others. */
const REFUSALS_MAX = 8

/** @type {Kept['refusals']} */
const NONE = Object.freeze([])

/** A longer Retry-After is cut to this: the backend says it again, at the cost of one request. */
const QUESTION_PATIENCE_MS_MAX = 60_000

/** A gateway asks again after this time if this node cannot ask because the two have different configurations. */
const MISCONFIGURED_RETRY_MS = 5_000

/**
 * @param {object} deps
 * @param {{ get: (name: string) => import('@keycast/service').Deciding | undefined, names: string[] }} deps.namespaces
 * @param {Pick<import('./asks.ts').Asks, 'add'>} deps.asks
 * @param {(link: string, id: string, decision: Decision) => void} deps.tellDecision
 * @param {() => import('../timing/backoff.ts').Backoff} deps.firstBackoff
 * @param {{ questioned: (met: 'memory' | 'coalesced' | 'asked') => void }} deps.metrics
 * @param {() => number} deps.now monotonic, in milliseconds
 * @param {number} [deps.keptMax]
 */
export function createAuthorize({ namespaces, asks, tellDecision, firstBackoff, metrics, now, keptMax = KEPT_MAX }) {
  /** @type {Map<string, Kept>} */
  const byKey = new Map()
  /** Those that may be dropped, the one decided longest ago first. @type {import('@keycast/service').UniqueQueue<Kept>} */
  const decided = createUniqueQueue()

  /** @type {NonNullable<import('@keycast/backbone').HubEvents['onAuthorize']>} */
  function onAuthorize(link, id, question) {
    const { maxAgeMs = Number.POSITIVE_INFINITY } = question
    answer({ link, id, question, notBefore: now() - maxAgeMs })
  }

  /** @param {Waiting} asked */
  function answer(asked) {
    const { link, id, question, notBefore } = asked
    const { key, authorization } = question
    const read = readQuestion(key, authorization)
    if ('problem' in read) {
      return tellDecision(link, id, {
        verdict: 'failed',
        message: read.problem,
        retryAfterMs: MISCONFIGURED_RETRY_MS,
      })
    }
    const kept = byKey.get(key) ?? open(key, read.settings)
    if (kept.waiting) {
      metrics.questioned('coalesced')
      return void kept.waiting.push(asked)
    }
    const token = digestOf(read.authorization)
    if (isStanding(kept, token, notBefore)) {
      metrics.questioned('memory')
      return tellDecision(link, id, decisionOf(kept, token, notBefore))
    }
    metrics.questioned('asked')
    decided.delete(kept)
    kept.waiting = [asked]
    kept.begunAt = now()
    kept.askedWith = token
    asks.add({
      key,
      origin: kept.settings.origin,
      url: kept.settings.urlFor(idOf(read.key)),
      method: kept.settings.method,
      authorization: read.authorization,
      timeoutMs: read.timeoutMs,
      done: reply => conclude(kept, reply),
    })
  }

  /**
   * @param {string} text anything a gateway sent
   * @param {string | undefined} authorization
   * @returns {{ key: string, settings: AuthorizeSettings, timeoutMs: number, authorization: string | undefined }
   *   | { problem: string }}
   */
  function readQuestion(text, authorization) {
    const viewed = readViewerKey(text)
    if (!viewed || keyProblem(viewed.key)) return { problem: 'the question names no viewer of a key' }
    const { key, viewer } = viewed
    const namespace = namespaces.get(namespaceOf(key))
    if (!namespace?.authorize || idProblem(namespace, idOf(key))) {
      return { problem: 'the fetcher has another configuration than the gateway: it asks no backend about this key' }
    }
    const isAnonymous = viewer === ANONYMOUS_VIEWER
    // Asked without, the backend would answer for anybody.
    if (!isAnonymous && authorization === undefined) return { problem: 'the question brings no token' }
    const { authorize: settings, timeoutMs = 0 } = namespace
    return { key, settings, timeoutMs, authorization: isAnonymous ? undefined : authorization }
  }

  /** @param {string} key @param {AuthorizeSettings} settings @returns {Kept} */
  function open(key, settings) {
    while (byKey.size >= keptMax && decided.size > 0) byKey.delete(/** @type {Kept} */ (decided.take()).key)
    /** @type {Kept} */
    const kept = {
      key,
      settings,
      verdict: undefined,
      message: '',
      decidedAt: Number.NEGATIVE_INFINITY,
      admittedAt: undefined,
      retryAt: Number.NEGATIVE_INFINITY,
      backoff: undefined,
      askedWith: '',
      refusals: NONE,
      begunAt: Number.NEGATIVE_INFINITY,
      waiting: undefined,
    }
    byKey.set(key, kept)
    return kept
  }

  /**
   * Whether the backend need not be asked yet.
   *
   * @param {Kept} kept
   * @param {string} token digest of the one that came now
   * @param {number} notBefore
   */
  function isStanding({ verdict, begunAt, decidedAt, retryAt, settings, refusals }, token, notBefore) {
    if (verdict === undefined) return false
    if (verdict === 'admitted') return begunAt >= notBefore && now() - decidedAt < settings.keepMs
    if (verdict === 'failed') return now() < retryAt
    // Another token may be good for more than those refused, which may have been revoked.
    return refusals.some(each => each.token === token && now() - each.at < settings.keepMs)
  }

  /** @param {Kept} kept @param {Reply} reply */
  function conclude(kept, { status, message, sentAt, retryAfterMs = 0 }) {
    kept.decidedAt = sentAt
    kept.message = message
    if (status !== undefined && (admits(status) || refuses(status))) {
      kept.verdict = admits(status) ? 'admitted' : 'refused'
      // Not when it was sent: it came with the token of that time.
      kept.admittedAt = admits(status) ? kept.begunAt : undefined
      kept.backoff = undefined
      kept.refusals = admits(status) ? NONE : withRefusal(kept, sentAt)
    } else {
      kept.verdict = 'failed'
      kept.backoff = kept.backoff?.next() ?? firstBackoff()
      kept.retryAt = now() + Math.max(kept.backoff.duration, Math.min(retryAfterMs, QUESTION_PATIENCE_MS_MAX))
    }
    const { waiting = [], askedWith } = kept
    kept.waiting = undefined
    decided.add(kept)
    /** @type {Waiting[]} */
    const again = []
    for (const asked of waiting) {
      if (!isAnswered(kept, asked)) again.push(asked)
      else tellDecision(asked.link, asked.id, decisionOf(kept, askedWith, asked.notBefore))
    }
    // Last: it may end at once, where a breaker is open, and change what is kept.
    for (const asked of again) answer(asked)
  }

  /** Whether what the backend just said answers a question. @param {Kept} kept @param {Waiting} asked */
  function isAnswered({ verdict, askedWith, begunAt }, { question, notBefore }) {
    // A refusal of one token says nothing of another that came meanwhile.
    if (verdict === 'refused') return isAbout(question, askedWith)
    // It may have been asked with a token that was revoked since.
    return verdict !== 'admitted' || begunAt >= notBefore
  }

  /** Whether a question came with a token, or for a viewer that has none. @param {Question} question @param {string} askedWith */
  const isAbout = ({ key, authorization }, askedWith) =>
    digestOf(readViewerKey(key)?.viewer === ANONYMOUS_VIEWER ? undefined : authorization) === askedWith

  /** @param {Kept} kept whose last token was refused @param {number} at when the backend was asked with it */
  const withRefusal = ({ refusals, askedWith, settings }, at) =>
    refusals
      .filter(each => each.token !== askedWith && now() - each.at < settings.keepMs)
      .concat({ token: askedWith, at })
      .slice(-REFUSALS_MAX)

  /**
   * @param {Kept} kept that is decided
   * @param {string} token digest of the one that it is said of
   * @param {number} notBefore
   * @returns {Decision}
   */
  function decisionOf({ verdict, message, decidedAt, admittedAt, retryAt, refusals }, token, notBefore) {
    if (verdict === 'admitted' || verdict === 'refused') {
      const at = verdict === 'admitted' ? decidedAt : (refusals.find(each => each.token === token)?.at ?? decidedAt)
      return { verdict, message: '', ageMs: Math.max(0, now() - at) }
    }
    return {
      verdict: 'failed',
      message,
      ageMs: admittedAt === undefined || admittedAt < notBefore ? undefined : Math.max(0, now() - admittedAt),
      retryAfterMs: Math.max(0, retryAt - now()),
    }
  }

  return { onAuthorize, kept: () => byKey.size }
}

/** Tells tokens apart without keeping them. @param {string | undefined} authorization */
const digestOf = authorization => tokenDigest(authorization ?? '')
