// Asks backends whether viewers may read keys: once per viewer, key and `keep`, for all gateways. The answer is kept
// for that time.
import { ANONYMOUS_VIEWER, type Credentials, type Decision, readViewerKey, tokenDigest } from '@keycast/backbone'
import { idOf, keyProblem, namespaceOf } from '@keycast/protocol'
import {
  type Authorize as AuthorizeSettings,
  backoffMs,
  createUniqueQueue,
  type Deciding,
  headersOfKey,
  idProblem,
  type Payer,
  type UniqueQueue,
} from '@keycast/service'
import type { FailureLog } from '../failure-log.ts'
import { admits, type Kind, type Questions, type Reply } from '../questions/questions.ts'

/** `key`: a viewer key. `maxAgeMs`: not to be answered with what the backend was asked longer ago. */
type Question = { key: string; maxAgeMs?: number } & Credentials

/** A question that waits for its answer. `notBefore`: what the backend was asked earlier does not answer it. */
interface Waiting {
  link: string
  id: string
  question: Question
  payer: Payer | undefined
  notBefore: number
}

/**
 * The backend's answer about one viewer and key. `decidedAt`: when it was asked for the verdict held. `admittedAt`:
 * when it last admitted the viewer, unless it refused since. `askedWith`: the digest of the token it was asked with.
 * `refusals`: of each token that was refused since then, when the backend was asked with it.
 */
interface Kept {
  /** The viewer key. */
  key: string
  settings: AuthorizeSettings
  verdict: 'admitted' | 'refused' | 'failed' | undefined
  message: string
  decidedAt: number
  admittedAt: number | undefined
  /** When a failed question is asked again, at the earliest. */
  retryAt: number
  /** Questions that failed in a row. */
  failures: number
  askedWith: string
  refusals: readonly { token: string; at: number }[]
  /** When the question under way began, or the last one. */
  begunAt: number
  /** While the backend is asked. */
  waiting: Waiting[] | undefined
}

/** A question that failed is asked again after this at the earliest. */
const RETRY = { firstMs: 1_000, maxMs: 5_000 }

/** At some 400 bytes each they take 40 MB. One that is dropped costs the backend a question. */
const KEPT_MAX = 100_000

/** Of one viewer and key. A gateway brings a user's four at most; with more gateways there may be others. */
const REFUSALS_MAX = 8

const NONE: Kept['refusals'] = Object.freeze([])

/** Nothing is known of what the backend says. */
const anew = (settings: AuthorizeSettings): Omit<Kept, 'key'> => ({
  settings,
  verdict: undefined,
  message: '',
  decidedAt: Number.NEGATIVE_INFINITY,
  admittedAt: undefined,
  retryAt: Number.NEGATIVE_INFINITY,
  failures: 0,
  askedWith: '',
  refusals: NONE,
  begunAt: Number.NEGATIVE_INFINITY,
  waiting: undefined,
})

/** Each question holds a token, mostly 1 KB and at most 8. */
const QUEUED_MAX = 10_000

const refuses = (status: number) => status === 401 || status === 403 || status === 404

/** The requests that these questions make. */
export const authorizeQuestions = (namespaces: Deps['namespaces']): Kind => ({
  namespaces,
  originOf: name => namespaces.get(name)?.authorize?.origin,
  refuses,
  what: 'whether this may be read',
  queuedMax: QUEUED_MAX,
})

/** A gateway asks again after this time if this node cannot ask because the two have different configurations. */
const MISCONFIGURED_RETRY_MS = 5_000

interface Deps {
  namespaces: { get: (name: string) => Deciding | undefined; names: string[] }
  questions: { add: Questions['add'] }
  tellDecision: (link: string, id: string, decision: Decision) => void
  /** Told of each 404 where nobody was ever admitted. */
  logNobody: FailureLog['failed']
  metrics: { questioned: (met: 'memory' | 'coalesced' | 'asked') => void }
  now: () => number
  random: () => number
  keptMax?: number
}

export function createAuthorize({
  namespaces,
  questions,
  tellDecision,
  logNobody,
  metrics,
  now,
  random,
  keptMax = KEPT_MAX,
}: Deps) {
  const byKey = new Map<string, Kept>()
  /** Those that may be dropped, the one decided longest ago first. */
  const decided: UniqueQueue<Kept> = createUniqueQueue()
  /** Those by which somebody was admitted: their URL is right. */
  const admitting = new WeakSet<AuthorizeSettings>()

  /** A question may come twice; it is answered with `tellDecision`. */
  function onCommand(link: string, id: string, question: Question, _leftMs?: number, payer?: Payer) {
    const { maxAgeMs = Number.POSITIVE_INFINITY } = question
    answer({ link, id, question, payer, notBefore: now() - maxAgeMs })
  }

  function answer(asked: Waiting) {
    const { link, id, question, payer, notBefore } = asked
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
    // keycast.yaml has another backend asked by now: what the one before said does not count.
    if (kept.settings !== read.settings && !kept.waiting) Object.assign(kept, anew(read.settings))
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
    questions.add({
      key,
      namespace: namespaceOf(read.key),
      payer,
      url: kept.settings.urlFor(idOf(read.key)),
      // The viewer's own right to it, and nothing of the namespace's: its headers could open what the viewer may not see.
      headers: { ...read.headers, ...(read.authorization !== undefined && { authorization: read.authorization }) },
      method: kept.settings.method,
      body: undefined,
      bytesMax: 0,
      timeoutMs: read.timeoutMs,
      weight: 1,
      done: reply => conclude(kept, reply),
    })
  }

  /** @param text anything a gateway sent */
  function readQuestion(
    text: string,
    authorization: string | undefined,
  ):
    | {
        key: string
        settings: AuthorizeSettings
        timeoutMs: number
        authorization: string | undefined
        headers: Record<string, string> | undefined
      }
    | { problem: string } {
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
    const headers = headersOfKey(namespace, idOf(key))
    return { key, settings, timeoutMs, authorization: isAnonymous ? undefined : authorization, headers }
  }

  function open(key: string, settings: AuthorizeSettings): Kept {
    dropOver(keptMax - 1)
    const kept: Kept = { key, ...anew(settings) }
    byKey.set(key, kept)
    return kept
  }

  /** As many may be asked about at a time: they stay until they are decided. */
  function dropOver(max: number) {
    while (byKey.size > max && decided.size > 0) byKey.delete((decided.take() as Kept).key)
  }

  /**
   * Whether the backend need not be asked yet.
   *
   * @param token digest of the one that came now
   */
  function isStanding(
    { verdict, begunAt, decidedAt, retryAt, settings, refusals }: Kept,
    token: string,
    notBefore: number,
  ) {
    if (verdict === undefined) return false
    if (verdict === 'admitted') return begunAt >= notBefore && now() - decidedAt < settings.keepMs
    if (verdict === 'failed') return now() < retryAt
    // Another token may be good for more than those refused, which may have been revoked.
    return refusals.some(
      each => each.token === token && each.at >= notBefore && now() - each.at < settings.keepRefusedMs,
    )
  }

  function conclude(kept: Kept, { status, message, sentAt, retryAfterMs = 0 }: Reply) {
    kept.decidedAt = sentAt
    kept.message = message
    if (status !== undefined && (admits(status) || refuses(status))) {
      kept.verdict = admits(status) ? 'admitted' : 'refused'
      // Not when it was sent: it came with the token of that time.
      kept.admittedAt = admits(status) ? kept.begunAt : undefined
      kept.failures = 0
      kept.refusals = admits(status) ? NONE : withRefusal(kept, sentAt)
      noteAnswer(kept, status)
    } else {
      kept.verdict = 'failed'
      kept.retryAt = now() + Math.max(backoffMs(++kept.failures, RETRY, random), retryAfterMs)
    }
    const { waiting = [], askedWith } = kept
    kept.waiting = undefined
    decided.add(kept)
    const again: Waiting[] = []
    for (const asked of waiting) {
      if (!isAnswered(kept, asked)) again.push(asked)
      else tellDecision(asked.link, asked.id, decisionOf(kept, askedWith, asked.notBefore))
    }
    // Last: it may end at once, where a breaker is open, and change what is kept.
    for (const asked of again) answer(asked)
    dropOver(keptMax)
  }

  /** A URL that the backend does not have is a refusal for everybody, which nobody else would hear of. */
  function noteAnswer({ key, settings, message }: Kept, status: number) {
    if (admits(status)) admitting.add(settings)
    else if (status === 404 && !admitting.has(settings)) {
      logNobody({ name: namespaceOf(key), origin: settings.pattern }, { code: 'not_found', status, message })
    }
  }

  /** Whether what the backend just said answers a question. */
  function isAnswered({ key, settings, verdict, askedWith, begunAt }: Kept, { question, notBefore }: Waiting) {
    // keycast.yaml has changed meanwhile, and has another backend asked, or none.
    if (namespaces.get(namespaceOf(key))?.authorize !== settings) return false
    if (verdict === 'failed') return true
    // It may have been asked with a token that was revoked since, or before the backend decided otherwise.
    if (begunAt < notBefore) return false
    // A refusal of one token says nothing of another that came meanwhile.
    return verdict === 'admitted' || isAbout(question, askedWith)
  }

  /** Whether a question came with a token, or for a viewer that has none. */
  const isAbout = ({ key, authorization }: Question, askedWith: string) =>
    digestOf(readViewerKey(key)?.viewer === ANONYMOUS_VIEWER ? undefined : authorization) === askedWith

  /** @param kept whose last token was refused @param at when the backend was asked with it */
  const withRefusal = ({ refusals, askedWith, settings }: Kept, at: number) =>
    refusals
      .filter(each => each.token !== askedWith && now() - each.at < settings.keepRefusedMs)
      .concat({ token: askedWith, at })
      .slice(-REFUSALS_MAX)

  /**
   * @param kept that is decided
   * @param token digest of the one that it is said of
   */
  function decisionOf(
    { verdict, message, decidedAt, admittedAt, retryAt, refusals }: Kept,
    token: string,
    notBefore: number,
  ): Decision {
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

  return { onCommand, kept: () => byKey.size }
}

/** Tells tokens apart without keeping them. */
const digestOf = (authorization: string | undefined) => tokenDigest(authorization ?? '')
