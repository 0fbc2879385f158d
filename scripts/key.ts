#!/usr/bin/env node
// Answers "why is this stale?" and "why may ann not read this?": asks gateways, on their internal listeners, for the
// state of a key and for the rights to it; or refreshes it.
import { lookup } from 'node:dns/promises'
import { readFileSync } from 'node:fs'
import { readSettings } from '@keycast/service'
import { settings as gateway } from '../services/gateway/settings.ts'
import { explainAccess, readViewer } from './key/access.ts'
import { isMain, runCommand } from './support/command.ts'

const usage = `Usage: node scripts/key.js KEY [--refresh | --as TOKEN | --as-sub USER | --as-anybody] [--gateway HOST[:PORT]]...

Prints what gateways know of a key: which node owns it, who watches it, how old its value is, what failed last. With --as
it prints instead who may read, publish and join, and which rules say so.

  --as TOKEN             for the client that brings this token; - reads it from the input, where no list of processes
                         shows it
  --as-sub USER          for a user with a valid token (with the prefix of its entry in access.tokens)
  --grants JSON          what that token grants, as in '{"read":["room:7"]}' (default: nothing of its own)
  --as-anybody           for a client without a token
  --refresh              instead, have the fetcher ask the backend for it now; one gateway is called
  --gateway HOST[:PORT]  internal listener of a gateway; of a name every address is asked. May be given several times
                         (default: GATEWAY_INTERNAL_HOST and GATEWAY_INTERNAL_PORT, which default to 127.0.0.1:8081)

API_TOKEN, or the file that API_TOKEN_FILE names, must hold the gateways' token. A gateway's container has it:

  docker compose exec gateway node scripts/key.js KEY --gateway gateway

Exits with 0 when every gateway answered, with 1 when one did not or refused, with 2 when it could not ask.`

/** Longer than a gateway waits for the nodes to confirm a refresh, which is 5 s at most. */
const TIMEOUT_MS = 10_000

const { apiToken, internalHost, internalPort } = gateway
const settings = { apiToken, internalHost, internalPort }

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
    'differs per user, and is fetched with the token of each: --as-sub says who may read it',
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

/** @param text HOST[:PORT], IPv6 in brackets @param fallback the port where none is given */
function readGateway(text: string, fallback: number) {
  const [, bracketed, named, port = fallback] = /^(?:\[([\da-fA-F:.]+)\]|([\w.-]+))(?::(\d{1,5}))?$/.exec(text) ?? []
  const host = bracketed ?? named
  if (!host) throw new Error(`--gateway ${text}: must be HOST or HOST:PORT, as in 10.0.0.5:8081`)
  return { host, port: Number(port) }
}

/** @returns every address the name stands for */
async function addressesOf({ host, port }: { host: string; port: number }): Promise<string[]> {
  const found = await lookup(host, { all: true })
  return found.map(({ address }) => `${address.includes(':') ? `[${address}]` : address}:${port}`)
}

/** @param body posted */
async function call(address: string, path: string, token: string, body?: unknown) {
  const response = await fetch(`http://${address}${path}`, {
    method: body === undefined ? 'GET' : 'POST',
    headers: {
      authorization: `Bearer ${token}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    body: body === undefined ? undefined : JSON.stringify(body),
    signal: AbortSignal.timeout(TIMEOUT_MS),
  })
  const answer = (await response.json().catch(() => ({}))) as any
  if (response.ok) return answer
  throw new Error(`HTTP ${response.status}: ${[answer.message, ...(answer.problems ?? [])].join(': ')}`)
}

/** @returns the exit code */
async function ask({
  key,
  refresh,
  viewer,
  gateways,
}: {
  key: string
  refresh: boolean
  viewer: Record<string, unknown> | undefined
  gateways: string[]
}): Promise<number> {
  const config = readSettings(settings, { name: 'key', about: usage, env: process.env, argv: [] })
  const token = config.apiToken
  if (!token) throw new Error('set API_TOKEN to the token of the gateways, or API_TOKEN_FILE to the file that holds it')
  const { internalHost: host, internalPort: port } = config
  const asked = gateways.length > 0 ? gateways.map(text => readGateway(text, port)) : [{ host, port }]
  const addresses = (await Promise.all(asked.map(addressesOf))).flat()

  if (refresh) {
    const [address] = addresses
    return attempt(address, async () => {
      await call(address, '/v1/refresh', token, { keys: [key] })
      return `${key}: the fetcher asks the backend again; the next change subscribers see is from after this call`
    })
  }
  let failures = 0
  for (const address of new Set(addresses)) {
    failures += await attempt(address, async () => {
      const [first, ...lines] = viewer
        ? explainAccess(await call(address, '/v1/access', token, { key, ...viewer }))
        : explain(await call(address, `/v1/keys/${encodeURI(key)}`, token))
      return [`${address}: ${first}`, ...lines].join('\n')
    })
  }
  return failures === 0 ? 0 : 1
}

/**
 * Prints what a gateway answers, or why it did not.
 *
 * @returns 1 where it did not
 */
async function attempt(address: string, ask: () => Promise<string>): Promise<0 | 1> {
  try {
    console.log(await ask())
    return 0
  } catch (error) {
    const { message, cause } = error as Error
    console.error(`${address}: ${message}${cause instanceof Error ? `: ${cause.message}` : ''}`)
    return 1
  }
}

if (isMain(import.meta.url)) {
  const options = {
    refresh: { type: 'boolean', default: false },
    gateway: { type: 'string', multiple: true },
    as: { type: 'string' },
    'as-sub': { type: 'string' },
    'as-anybody': { type: 'boolean' },
    grants: { type: 'string' },
  } as const
  await runCommand({ name: 'key', usage, options, allowPositionals: true }, ({ values, positionals }) => {
    const [key] = positionals
    if (!key || positionals.length > 1) throw new Error('give one key, such as conversation:42 (--help says more)')
    const viewer = readViewer(values, () => readFileSync(0, 'utf8'))
    if (viewer && values.refresh) throw new Error('give --refresh, or for whom the key is asked, not both')
    return ask({ key, refresh: values.refresh, viewer, gateways: values.gateway ?? [] })
  })
}
