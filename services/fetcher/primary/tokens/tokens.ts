// The tokens with which namespaces show their backends who Keycast is: read from a file, or had from a token endpoint, and
// renewed in time. A backend is never asked without one: it might show strangers something else.
import {
  backoffMs,
  createOnceAMinute,
  type Log,
  type Namespaces,
  type ServiceToken,
  type World,
} from '@keycast/service'
import { readTokenFile, requestToken } from './sources.ts'

/** How often a file is read again. */
const FILE_MS = 5_000

/** A token is renewed when this part of its life is over, or earlier: nodes and backends need time, too. */
const RENEW_AT = 0.8

/** A refused token is not renewed more often: a backend may refuse any. */
const REFUSED_MS = 10_000

/** Between attempts. */
const RETRY_MS_MIN = 1_000
const RETRY_MS_MAX = 60_000

/** A start waits no longer: keys of other namespaces are wanted, too. */
const START_MS = 5_000

export type Tokens = ReturnType<typeof createTokens>

/** One source, which several namespaces may name in the same words. */
interface Held {
  source: ServiceToken
  names: string[]
  authorization: string | undefined
  /** When it was last asked for because a backend refused the one before, monotonic. */
  refusedAt: number
  failures: number
  isAsking: boolean
  endWait: () => void
}

interface Deps extends Pick<World, 'now' | 'after'> {
  namespaces: Namespaces
  log: Pick<Log, 'warn' | 'info'>
  read?: typeof readTokenFile
  request?: typeof requestToken
}

export function createTokens({ namespaces, now, after, log, read = readTokenFile, request = requestToken }: Deps) {
  const bySource = new Map<string, Held>()
  /** `undefined`: the namespace is gone. */
  const byName = new Map<string, Held | undefined>()
  const isLogDue = createOnceAMinute(now)
  let isStopped = false

  function heldOf(source: ServiceToken): Held {
    const text = JSON.stringify(source)
    const held = bySource.get(text) ?? newHeld(source)
    bySource.set(text, held)
    return held
  }

  /** As keycast.yaml says now. */
  function take() {
    for (const held of bySource.values()) held.names.length = 0
    for (const name of byName.keys()) {
      if (namespaces.get(name)) byName.delete(name)
      // A gateway may still watch its keys: the backend is not asked for them without a token.
      else byName.set(name, undefined)
    }
    for (const name of namespaces.names) {
      const source = namespaces.get(name)?.token
      if (!source) continue
      const held = heldOf(source)
      held.names.push(name)
      byName.set(name, held)
    }
    for (const [text, held] of bySource) {
      if (held.names.length > 0) continue
      held.endWait()
      bySource.delete(text)
    }
  }
  take()

  /** @returns never rejects */
  async function renew(held: Held) {
    if (held.isAsking || isStopped) return
    held.isAsking = true
    held.endWait()
    const { source } = held
    let nextMs: number
    try {
      const { token, livesMs } =
        'file' in source ? { token: await read(source.file), livesMs: undefined } : await request(source)
      if (held.failures > 0) log.info({ namespaces: held.names }, 'the token for the backend was renewed')
      held.authorization = `Bearer ${token}`
      held.failures = 0
      nextMs = livesMs === undefined ? FILE_MS : Math.max(RETRY_MS_MIN, livesMs * RENEW_AT)
    } catch (error) {
      held.failures++
      nextMs = backoffMs(held.failures, { firstMs: RETRY_MS_MIN, maxMs: RETRY_MS_MAX })
      const why = (error as Error).message
      if (isLogDue(`${held.names} ${why}`)) log.warn({ namespaces: held.names, why }, 'no new token for the backend')
    }
    held.isAsking = false
    const isHeld = bySource.get(JSON.stringify(held.source)) === held
    if (!isStopped && isHeld) held.endWait = after(nextMs, () => void renew(held))
  }

  /** Resolves once every token was asked for, or soon: what has none until then fails. */
  async function askFor(asked: Iterable<Held>) {
    let endWait = () => {}
    const late = new Promise<void>(resolve => {
      endWait = after(START_MS, resolve)
    })
    await Promise.race([Promise.all(Array.from(asked, renew)), late])
    endWait()
  }

  return {
    start: () => askFor(bySource.values()),

    /** Has the tokens asked for that other namespaces need. {@link take} follows, so that no key lacks one meanwhile. */
    async prepare(next: Namespaces) {
      const known = new Set(bySource.values())
      for (const name of next.names) {
        const source = next.get(name)?.token
        const held = source && heldOf(source)
        if (held && !known.has(held)) held.names.push(name)
      }
      await askFor([...bySource.values()].filter(held => !known.has(held)))
    },
    take,

    /** @returns null where there is none yet, or no more; `undefined` for a namespace that needs none */
    authorizationOf(name: string): string | null | undefined {
      return byName.has(name) ? (byName.get(name)?.authorization ?? null) : undefined
    },

    /** A backend answered 401: the token may have been revoked. */
    refused(name: string) {
      const held = byName.get(name)
      if (!held || now() - held.refusedAt < REFUSED_MS) return
      held.refusedAt = now()
      void renew(held)
    },

    stop() {
      isStopped = true
      for (const held of bySource.values()) held.endWait()
    },
  }
}

function newHeld(source: ServiceToken): Held {
  return {
    source,
    names: [],
    authorization: undefined,
    refusedAt: Number.NEGATIVE_INFINITY,
    failures: 0,
    isAsking: false,
    endWait() {},
  }
}
