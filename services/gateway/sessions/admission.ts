// Decides who becomes a session here, before there is one: an upgrade and an event stream are let in by the same rules,
// and refused for the same reasons.
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { type Problem, problemText } from '@keycast/protocol'
import { createOnceAMinute, type Log } from '@keycast/service'
import type { Peer } from '../access/client-address.ts'
import type { Issued } from '../access/revocations/revocations.ts'
import { tokenRefused } from '../access/tokens/refusal.ts'
import type { Checked, Verified } from '../access/tokens/tokens.ts'
import { type Counts, countOne } from '../counts.ts'
import type { HttpProblem } from '../doors/http/problems.ts'
import type { Account } from './accounts.ts'

export type Admission = ReturnType<typeof createAdmission>

/** When to come back to a gateway that is full, or with too many sessions: others may have room at once. */
const RETRY_MS = 5_000

/** Of an origin that is repeated in an answer and in the log: a client may send kilobytes. */
const ORIGIN_CHARACTERS_MAX = 200

/** By whose page a request without an origin was made (https://w3c.github.io/webappsec-fetch-metadata). */
const embeddedGrammar = /^(cross|same)-site$/

/** Whom a session is for. */
export interface Arrival {
  peer: Peer
  verified?: Verified
}

/** `remedy`: for the log, where an operator's setting would let the client in. */
export interface Refusal extends HttpProblem {
  reason: string
  message: string
  remedy?: { about: object; message: string }
}

interface Deps {
  identify: {
    peerOf(request: IncomingMessage): Peer
    verifyRequest(request: IncomingMessage, address: string): Promise<Checked> | undefined
  }
  revocations: { isRevoked(token: Issued): boolean }
  accounts: {
    of(user: string | undefined, peer: Peer): { account: Account | undefined }
    hasRoom(account: Account | undefined): boolean
  }
  /** Why nobody is let in. */
  unready: () => 'draining' | 'full' | undefined
  sessionsMax: number
  isAllowedOrigin: (origin: string) => boolean
  counts: Pick<Counts, 'refused'>
  log?: Pick<Log, 'warn'>
  now: () => number
}

export function createAdmission({
  identify,
  revocations,
  accounts,
  unready,
  sessionsMax,
  isAllowedOrigin,
  counts,
  log,
  now,
}: Deps) {
  const isLogDue = createOnceAMinute(now)

  /**
   * @param request for a session
   * @param shown the token that stands for it, where it carries none itself
   * @returns at once, unless a token is to be checked
   */
  function admit(request: IncomingMessage, shown?: Verified): Arrival | Refusal | Promise<Arrival | Refusal> {
    const refusal = refusalOf(request)
    if (refusal) return refusal
    const peer = identify.peerOf(request)
    if (shown) return settle(request, { peer, verified: shown })
    const verifying = identify.verifyRequest(request, peer.address)
    if (!verifying) return settle(request, { peer })
    return verifying.then(result =>
      'refused' in result ? ofToken(result.refused.problem) : settle(request, { peer, verified: result.verified }),
    )
  }

  function settle(request: IncomingMessage, { peer, verified }: Arrival): Arrival | Refusal {
    if (verified && revocations.isRevoked(verified)) return ofToken(tokenRefused)
    // Others may have taken the room while a token was checked, or the gateway may be stopping.
    const later = refusalOf(request)
    if (later) return later
    const { account } = accounts.of(verified?.user, peer)
    return account && !accounts.hasRoom(account) ? tooMany(account, verified?.user) : { peer, verified }
  }

  function refusalOf({ headers }: IncomingMessage): Refusal | undefined {
    const why = unready()
    if (why === 'draining') return unavailable(why, 'this gateway is being stopped')
    if (why === 'full') return full(sessionsMax)
    return refusalOfPage(headers)
  }

  /** Why the page that sent a request may have no session; also asked before there is a ticket for one. */
  function refusalOfPage(headers: IncomingHttpHeaders): Refusal | undefined {
    // Only browsers send an origin, and no page can change it. A program can, so a request without one is let in. Nor
    // does one come where a page embeds a stream as an image, with its user's cookie: the browser says that it does.
    const origin = headers.origin ?? (embeddedGrammar.test(String(headers['sec-fetch-site'])) ? 'null' : undefined)
    return origin !== undefined && !isAllowedOrigin(origin) ? wrongOrigin(origin) : undefined
  }

  /** Counts and logs a client that is turned away. */
  function refused({ reason, remedy }: Pick<Refusal, 'reason' | 'remedy'>) {
    countOne(counts.refused, reason)
    // One a minute of each reason, not of each origin: a client chooses what it sends.
    if (remedy && isLogDue(reason)) log?.warn({ reason, ...remedy.about }, remedy.message)
  }

  return { admit, refused, refusalOfPage }
}

const unavailable = (reason: string, message: string): Refusal => ({
  code: 'capacity',
  reason,
  message,
  retryAfterMs: RETRY_MS,
})

function wrongOrigin(origin: string): Refusal {
  const shown = origin.slice(0, ORIGIN_CHARACTERS_MAX)
  return {
    code: 'forbidden',
    reason: 'origin',
    message: `pages of ${shown} may not connect: GATEWAY_ORIGINS does not name this origin`,
    remedy: {
      about: { origin: shown },
      message: 'a page of another origin was refused: if it is yours, add its origin to GATEWAY_ORIGINS',
    },
  }
}

function full(sessionsMax: number): Refusal {
  return {
    ...unavailable('full', 'this gateway is full'),
    remedy: {
      about: { sessionsMax },
      message: 'a connection was refused, because this gateway is full: add a gateway, or raise GATEWAY_SESSIONS_MAX',
    },
  }
}

/** @param account that has no room */
function tooMany({ name, sessions, sessionsMax }: Account, user: string | undefined): Refusal {
  const [whose, setting, otherwise] =
    user === undefined
      ? [
          'address',
          'GATEWAY_SESSIONS_PER_ADDRESS_MAX',
          ', or name the proxy at this address in GATEWAY_TRUSTED_PROXIES',
        ]
      : ['user', 'GATEWAY_SESSIONS_PER_USER_MAX', '']
  if (sessions < sessionsMax) {
    const message = `this ${whose} sends far more requests than it may: wait, and send fewer`
    return { code: 'rate_limited', reason: 'account', message, retryAfterMs: RETRY_MS }
  }
  return {
    code: 'rate_limited',
    reason: 'account',
    message: `this ${whose} has ${sessionsMax} sessions at this gateway, and ${setting} allows no more`,
    retryAfterMs: RETRY_MS,
    remedy: {
      about: { account: name, sessionsMax },
      message: `a connection was refused, because its ${whose} has too many: raise ${setting}${otherwise}`,
    },
  }
}

const ofToken = (problem: Problem): Refusal => ({ ...problem, reason: 'token', message: problemText(problem) })
