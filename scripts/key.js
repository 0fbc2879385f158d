#!/usr/bin/env node
// "Why is this stale?": what gateways know of a key, asked on their internal listeners; and a refresh of it.
import { lookup } from 'node:dns/promises'
import { readSettings } from '@keycast/service'
import { settings as gateway } from '../services/gateway/settings.js'
import { isMain, runCommand } from './support/command.js'

const usage = `Usage: node scripts/key.js KEY [--refresh] [--gateway HOST[:PORT]]...

Says what gateways know of a key: who owns it, who watches it, how old its value is, what failed last.

  --refresh              have it asked of the backend now instead
  --gateway HOST[:PORT]  whose internal listener to ask; each address of a name is asked. May be given several times
                         (default: GATEWAY_INTERNAL_HOST and GATEWAY_INTERNAL_PORT, 127.0.0.1:8081 where they are unset)

API_TOKEN or API_TOKEN_FILE holds the gateways' token. In containers both are at hand in a gateway's:

  docker compose exec gateway node scripts/key.js KEY --gateway gateway`

/** A refresh waits for the nodes to confirm, 5 s at most. */
const TIMEOUT_MS = 10_000

const { apiToken, internalHost, internalPort } = gateway
const settings = { apiToken, internalHost, internalPort }

/**
 * @typedef {object} Known what `GET /v1/keys/{key}` answers, see docs/operations.md
 * @property {{ node: string | null, alive: boolean }} owner
 * @property {boolean} watched
 * @property {number} sessionsWatching
 * @property {number} getsWaiting
 * @property {boolean} held
 * @property {boolean} stale
 * @property {string} [version]
 * @property {number} [ageMs]
 * @property {number} [bytes]
 * @property {string} [contentType]
 * @property {{ code: string, message: string, retryAfterMs?: number, agoMs: number }} [lastFailure]
 * @property {{ refreshMs: number, maxAgeMs: number, timeoutMs: number }} namespace
 */

/**
 * For a person: the verdict, then what it rests on.
 *
 * @param {Known} known
 * @returns {string[]} lines
 */
export function explain(known) {
  const { owner, sessionsWatching, getsWaiting, held, version, bytes, contentType, ageMs, lastFailure, namespace } =
    known
  const retry =
    lastFailure?.retryAfterMs === undefined ? '' : `, to be tried again after ${lastFailure.retryAfterMs} ms`
  return [
    verdict(known),
    `  owner         ${owner.node ?? 'none known'}${owner.alive ? '' : ', not heard'}`,
    `  watched by    ${sessionsWatching} sessions of this gateway; ${getsWaiting} gets wait`,
    `  held          ${held ? `${bytes} bytes of ${contentType}, version ${version}, ${ageMs} ms old` : 'nothing'}`,
    `  last failure  ${lastFailure ? `${lastFailure.code}: ${lastFailure.message}, ${lastFailure.agoMs} ms ago${retry}` : 'none'}`,
    `  keycast.yaml  refresh ${namespace.refreshMs} ms, maxAge ${namespace.maxAgeMs} ms, timeout ${namespace.timeoutMs} ms`,
  ]
}

/** @param {Known} known */
function verdict({ owner, watched, held, stale, lastFailure, namespace }) {
  if (!owner.alive) return 'cannot be fresh: no fetcher node that would own it is heard'
  if (stale || !held) {
    if (lastFailure) return `${stale ? 'stale' : 'not had'}: ${lastFailure.code}`
    if (stale) return 'stale: its owner has not said in time that it is fresh'
    return watched ? 'not there yet: its first fetch is under way' : 'not known here: nobody watches it at this gateway'
  }
  if (!watched) return 'held, and not kept fresh: nobody watches it at this gateway'
  return namespace.refreshMs === 0 ? 'kept until the backend tells of a change (--refresh)' : 'fresh'
}

/** @param {string} text HOST[:PORT], IPv6 in brackets @param {number} fallback the port where none is given */
function readGateway(text, fallback) {
  const [, bracketed, named, port = fallback] = /^(?:\[([\da-fA-F:.]+)\]|([\w.-]+))(?::(\d{1,5}))?$/.exec(text) ?? []
  const host = bracketed ?? named
  if (!host) throw new Error(`--gateway ${text}: must be HOST or HOST:PORT`)
  return { host, port: Number(port) }
}

/** @param {{ host: string, port: number }} gateway @returns {Promise<string[]>} every address the name stands for */
async function addressesOf({ host, port }) {
  const found = await lookup(host, { all: true })
  return found.map(({ address }) => `${address.includes(':') ? `[${address}]` : address}:${port}`)
}

/**
 * @param {string} address
 * @param {string} path
 * @param {string} token
 * @param {unknown} [body] posted
 */
async function call(address, path, token, body) {
  const response = await fetch(`http://${address}${path}`, {
    method: body === undefined ? 'GET' : 'POST',
    headers: {
      authorization: `Bearer ${token}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    body: body === undefined ? undefined : JSON.stringify(body),
    signal: AbortSignal.timeout(TIMEOUT_MS),
  })
  const answer = /** @type {any} */ (await response.json().catch(() => ({})))
  if (response.ok) return answer
  throw new Error(`HTTP ${response.status}: ${[answer.message, ...(answer.problems ?? [])].join(': ')}`)
}

/** @param {{ key: string, refresh: boolean, gateways: string[] }} asked @returns {Promise<number>} the exit code */
async function ask({ key, refresh, gateways }) {
  const config = readSettings(settings, { name: 'key', about: usage, env: process.env, argv: [] })
  const token = config.apiToken
  if (!token) throw new Error('API_TOKEN or API_TOKEN_FILE must be set, to the token the gateways have')
  const { internalHost: host, internalPort: port } = config
  const asked = gateways.length > 0 ? gateways.map(text => readGateway(text, port)) : [{ host, port }]
  const addresses = (await Promise.all(asked.map(addressesOf))).flat()

  if (refresh) {
    await call(addresses[0], '/v1/refresh', token, { keys: [key] })
    console.log(`${key}: the fetcher has it; the next value was asked for after this`)
    return 0
  }
  let failures = 0
  for (const address of new Set(addresses)) {
    try {
      const [first, ...lines] = explain(await call(address, `/v1/keys/${encodeURI(key)}`, token))
      console.log([`${address}: ${first}`, ...lines].join('\n'))
    } catch (error) {
      failures++
      const { message, cause } = /** @type {Error} */ (error)
      console.log(`${address}: ${message}${cause instanceof Error ? `: ${cause.message}` : ''}`)
    }
  }
  return failures === 0 ? 0 : 1
}

if (isMain(import.meta.url)) {
  const options = /** @type {const} */ ({
    refresh: { type: 'boolean', default: false },
    gateway: { type: 'string', multiple: true },
  })
  await runCommand(
    { name: 'key', usage, options: { ...options }, allowPositionals: true },
    ({ values, positionals }) => {
      const [key] = positionals
      if (!key || positionals.length > 1) throw new Error('name one key; --help says more')
      return ask({ key, refresh: values.refresh, gateways: values.gateway ?? [] })
    },
  )
}
