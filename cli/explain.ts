// Answers "why may ann not read this?": asks gateways, on their internal listeners, who may use a key and which rules say so.
import { readFileSync } from 'node:fs'
import type { Explanation, Verdict } from '../services/gateway/access/explain.ts'
import { runCommand } from './support/command.ts'
import { askGateways, gatewayNotes, gatewayUsage } from './support/gateways.ts'

const usage = `Usage: keycast explain KEY (--as TOKEN | --as-sub USER [--grants JSON] | --as-anybody) [--gateway HOST[:PORT]]...

Prints who may read a key, publish into it and join it, and which rules say so.

  --as TOKEN             for the client that brings this token; - reads it from the input, where no list of processes
                         shows it
  --as-sub USER          for a user with a valid token (with the prefix of its entry in access.tokens)
  --grants JSON          what that token grants, as in '{"read":["room:7"]}' (default: nothing of its own)
  --as-anybody           for a client without a token${gatewayUsage}

${gatewayNotes('explain KEY --as-anybody')}`

/**
 * For whom the key is asked, as the options say.
 *
 * @param readInput reads the token for `--as -`
 * @returns for the body of the call
 * @throws {Error} tells the form to give instead
 */
export function readViewer(
  {
    as,
    'as-sub': sub,
    'as-anybody': anybody,
    grants,
  }: { as?: string; 'as-sub'?: string; 'as-anybody'?: boolean; grants?: string },
  readInput: () => string,
): Record<string, unknown> {
  if ([as, sub, anybody || undefined].filter(each => each !== undefined).length !== 1) {
    throw new Error('give one of --as, --as-sub and --as-anybody')
  }
  if (grants !== undefined && sub === undefined) throw new Error('--grants goes with --as-sub: a token has its own')
  if (as !== undefined) return { token: as === '-' ? readInput().trim() : as }
  if (sub === '') throw new Error('--as-sub: name a user; a client without a token is --as-anybody')
  if (sub !== undefined) return { sub, ...(grants !== undefined && { keys: parse(grants) }) }
  return {}
}

function parse(grants: string) {
  try {
    return JSON.parse(grants)
  } catch {
    throw new Error(`--grants ${grants}: must be JSON, as in '{"read":["room:7"]}'`)
  }
}

/**
 * The answer: for whom, then each verb with the rule that admits it, or the rules that do not.
 *
 * @returns lines
 */
export function explainAccess({
  key,
  user,
  expiresInMs,
  revokedBefore,
  refused,
  keyProblem,
  backendDecides,
  verbs,
}: Explanation): string[] {
  if (refused) return [`the token is refused, ${refused.reason}: ${refused.message}`]
  const who = user === null ? 'a client without a token' : JSON.stringify(user)
  const valid = expiresInMs === undefined ? '' : `, whose token expires in ${Math.ceil(expiresInMs / 1_000)} s`
  const lines = [`${key} for ${who}${valid}`]
  if (keyProblem !== undefined) lines.push(`  nobody gets it: ${keyProblem}`)
  if (revokedBefore !== undefined) {
    lines.push(`  revoked: tokens issued before ${new Date(revokedBefore * 1_000).toISOString()} are refused`)
  }
  for (const [verb, verdict] of Object.entries(verbs)) {
    lines.push(...explainVerb(verb, verdict))
    if (verb === 'read' && verdict.allowed && backendDecides !== undefined) {
      lines.push(`           if the backend admits it, too: ${backendDecides} with the viewer's token`)
    }
  }
  return lines
}

function explainVerb(verb: string, { allowed, rule, pattern, asked = [] }: Verdict) {
  const name = verb.padEnd(8)
  if (allowed) return [`  ${name} yes  ${rule}.${verb} has ${pattern}`]
  return [
    `  ${name} no   no pattern admits it:`,
    ...asked.map(({ rule, patterns, more }) => {
      const listed = patterns.length === 0 ? 'has none' : `has ${patterns.join(' ')}`
      return `                ${rule}.${verb} ${listed}${more > 0 ? ` and ${more} more` : ''}`
    }),
  ]
}

const options = {
  as: { type: 'string' },
  'as-sub': { type: 'string' },
  'as-anybody': { type: 'boolean' },
  grants: { type: 'string' },
  gateway: { type: 'string', multiple: true },
} as const

const name = 'keycast explain'

export const run = (args: string[]) =>
  runCommand(
    { name, usage, options, allowPositionals: true },
    ({ values: { gateway: gateways, ...asker }, positionals }) => {
      const [key] = positionals
      if (!key || positionals.length > 1) throw new Error('give one key, such as room:7 (--help says more)')
      const viewer = readViewer(asker, () => readFileSync(0, 'utf8'))
      return askGateways({ gateways, name, how: 'all' }, async call =>
        explainAccess(await call('/v1/access', { key, ...viewer })),
      )
    },
    args,
  )
