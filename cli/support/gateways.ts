// Asks gateways on their internal listeners: which to ask, with which token, and what they answer.
import { lookup } from 'node:dns/promises'
import { readSettings } from '@keycast/service'
import { readApiTokens } from '../../services/gateway/doors/http/api-tokens.ts'
import { settings as gateway } from '../../services/gateway/settings.ts'

/** For `usage`, behind its last line. */
export const gatewayUsage = `
  --gateway HOST[:PORT]  internal listener of a gateway; of a name every address is asked. May be given several times
                         (default: GATEWAY_INTERNAL_HOST and GATEWAY_INTERNAL_PORT, which default to 127.0.0.1:8081)`

/** For `usage`, too. */
export const gatewayNotes = (
  example: string,
) => `API_TOKENS, or the file that API_TOKENS_FILE names, must hold a token with the scope admin, as the gateways have it:
NAME:admin:TOKEN. A gateway's container has it:

  docker compose exec gateway keycast ${example} --gateway gateway

Exits with 0 when every gateway answered, with 1 when one did not or refused, with 2 when it could not ask.`

/** Longer than a gateway waits for the nodes to confirm a refresh, which is 5 s at most. */
const TIMEOUT_MS = 10_000

const { apiTokens, internalHost, internalPort } = gateway
const settings = { apiTokens, internalHost, internalPort }

/** Asks one gateway: a body is posted. */
export type Call = <Answer>(path: string, body?: unknown) => Promise<Answer>

/** Tells the answer's lines. */
type Ask = (call: Call) => Promise<string[]>

export interface Asked {
  /** As the command line names them. */
  gateways: string[] | undefined
  /** Of the command, for its errors. */
  name: string
  /** All of them, or one. */
  how: 'all' | 'one'
}

/**
 * Asks gateways one after the other and prints what each says, or why it does not.
 *
 * @returns the exit code
 * @throws {Error} where nothing can be asked
 */
export async function askGateways({ gateways = [], name, how }: Asked, ask: Ask): Promise<0 | 1> {
  const config = readSettings(settings, { name, about: '', env: process.env, argv: [] })
  const admin = readApiTokens(config.apiTokens ?? '').find(({ scopes }) => scopes.includes('admin'))
  if (!admin) {
    throw new Error('set API_TOKENS to NAME:admin:TOKEN, as the gateways have it, or API_TOKENS_FILE to their file')
  }
  const { internalHost: host, internalPort: port } = config
  const asked = gateways.length > 0 ? gateways.map(text => readGateway(text, port)) : [{ host, port }]
  const addresses = [...new Set((await Promise.all(asked.map(addressesOf))).flat())]
  let code: 0 | 1 = 0
  for (const address of how === 'one' ? addresses.slice(0, 1) : addresses) {
    try {
      const [first, ...lines] = await ask((path, body) => call(address, path, admin.token, body))
      console.log([`${address}: ${first}`, ...lines].join('\n'))
    } catch (error) {
      const { message, cause } = error as Error
      console.error(`${address}: ${message}${cause instanceof Error ? `: ${cause.message}` : ''}`)
      code = 1
    }
  }
  return code
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
async function call<Answer>(address: string, path: string, token: string, body?: unknown): Promise<Answer> {
  const response = await fetch(`http://${address}${path}`, {
    method: body === undefined ? 'GET' : 'POST',
    headers: {
      authorization: `Bearer ${token}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    body: body === undefined ? undefined : JSON.stringify(body),
    signal: AbortSignal.timeout(TIMEOUT_MS),
  })
  const answer = (await response.json().catch(() => ({}))) as { message?: string; problems?: string[] }
  if (response.ok) return answer as Answer
  throw new Error(`HTTP ${response.status}: ${[answer.message, ...(answer.problems ?? [])].join(': ')}`)
}
