// Answers "why is this stale?": asks gateways, on their internal listeners, for the state of a key, or has it refreshed.
import { runCommand } from './support/command.ts'
import { askGateways, gatewayNotes, gatewayUsage } from './support/gateways.ts'
import { keyPath } from './support/key-path.ts'

const usage = `Usage: keycast key KEY [--refresh] [--gateway HOST[:PORT]]...

Prints what gateways know of a key: which node owns it, who watches it, how old its value is, what failed last.

  --refresh              instead, have the fetcher ask the backend for it now; one gateway is called${gatewayUsage}

${gatewayNotes('key KEY')}`

/** The answer of `GET /v1/keys/{key}`, see docs/http-api.md. */
interface Known {
  /** Then only `usersHeld` and `namespace` are there. */
  perUser?: boolean
  usersHeld?: number
  owner: { node: string | null; alive: boolean }
  watched: boolean
  sessionsWatching: number
  getsWaiting: number
  held: boolean
  stale: boolean
  version?: string
  ageMs?: number
  bytes?: number
  contentType?: string
  lastFailure?: { code: string; message: string; retryAfterMs?: number; agoMs: number }
  namespace: { refreshMs: number; maxAgeMs: number; timeoutMs: number }
}

/**
 * The answer for a person: the verdict, then the facts behind it.
 *
 * @returns lines
 */
export function explain(known: Known): string[] {
  if (known.perUser) return explainOwn(known)
  const { owner, sessionsWatching, getsWaiting, held, version, bytes, contentType, ageMs, lastFailure, namespace } =
    known
  const retry = lastFailure?.retryAfterMs === undefined ? '' : `, next try after ${lastFailure.retryAfterMs} ms`
  return [
    verdict(known),
    `  owner         ${owner.node ?? 'no fetcher node known'}${owner.alive ? '' : ', silent'}`,
    `  watched by    ${sessionsWatching} sessions of this gateway; ${getsWaiting} gets are waiting`,
    `  value         ${held ? `${bytes} bytes of ${contentType}, version ${version}, ${ageMs} ms old` : 'none'}`,
    `  last failure  ${lastFailure ? `${lastFailure.code}: ${lastFailure.message}, ${lastFailure.agoMs} ms ago${retry}` : 'none'}`,
    `  keycast.yaml  refresh ${namespace.refreshMs} ms, maxAge ${namespace.maxAgeMs} ms, timeout ${namespace.timeoutMs} ms`,
  ]
}

function explainOwn({ usersHeld, namespace }: Known) {
  return [
    'differs per user, and is fetched with the token of each: keycast explain says who may read it',
    `  held for      ${usersHeld} users at this gateway`,
    `  keycast.yaml  refresh ${namespace.refreshMs} ms, maxAge ${namespace.maxAgeMs} ms, timeout ${namespace.timeoutMs} ms`,
  ]
}

function verdict({ owner, watched, held, stale, lastFailure, namespace }: Known) {
  if (!owner.alive) return 'cannot be fresh: the fetcher node that owns it is silent, or no node is known'
  if (stale || !held) {
    if (lastFailure) return `${stale ? 'stale' : 'no value'}: ${lastFailure.code}`
    if (stale) return 'stale: its owner has not confirmed it in time'
    return watched ? 'no value yet: its first fetch is under way' : 'no value: nobody watches it at this gateway'
  }
  if (!watched) return 'in the cache, but not kept fresh: nobody watches it at this gateway'
  return namespace.refreshMs === 0 ? 'kept until the backend reports a change (--refresh)' : 'fresh'
}

const options = {
  refresh: { type: 'boolean', default: false },
  gateway: { type: 'string', multiple: true },
} as const

const name = 'keycast key'

export const run = (args: string[]) =>
  runCommand(
    { name, usage, options, allowPositionals: true },
    ({ values: { refresh, gateway: gateways }, positionals }) => {
      const [key] = positionals
      if (!key || positionals.length > 1) throw new Error('give one key, such as conversation:42 (--help says more)')
      if (!refresh) {
        return askGateways({ gateways, name, how: 'all' }, async call =>
          explain(await call(`/v1/keys/${keyPath(key)}`)),
        )
      }
      return askGateways({ gateways, name, how: 'one' }, async call => {
        await call('/v1/refresh', { keys: [key] })
        return [`${key}: the fetcher asks the backend again; the next change subscribers see is from after this call`]
      })
    },
    args,
  )
