// The target of a run: a system started for it, or one that runs already and is named on the command line.
import { readFileSync } from 'node:fs'
import { makeSigning, readSigning } from '../generator/tokens.ts'
import { clientsOf, type Options, type Scenario } from '../scenarios/scenario.ts'
import { SystemError } from './processes.ts'
import { type System, startSystem } from './start.ts'
import type { Watched } from './watcher.ts'

/** Sessions per gateway: many machines allow a process 20,000 open files, and it needs some itself. */
const SESSIONS_PER_GATEWAY = 18_000

export async function openTarget(scenario: Scenario, options: Options): Promise<System> {
  const signing = signingFor(scenario, options)
  if (options.start !== undefined) {
    return startSystem({
      kind: options.start,
      gateways: options.gateways ?? scenario.gateways ?? Math.ceil(clientsOf(scenario, options) / SESSIONS_PER_GATEWAY),
      tls: options.tls,
      content: scenario.content?.(options) ?? {},
      signing,
    })
  }
  return {
    kind: 'given',
    signing,
    urls: options.url,
    providerUrl: options.provider,
    watched: mergeByRole(options.pid, options.metrics),
    died: new Promise(() => {}),
    stop: async () => {},
  }
}

/**
 * The key that clients' tokens are signed with, if they bring any.
 *
 * @throws {SystemError} if the file cannot be read, or holds no key
 */
function signingFor(
  { needsTokens = false }: Scenario,
  { token = needsTokens || undefined }: { token?: string | true },
) {
  if (token === undefined) return undefined
  if (token === true) return makeSigning()
  try {
    return readSigning(readFileSync(token, 'utf8'))
  } catch (error) {
    throw new SystemError(`--token ${token}: ${(error as Error).message}`)
  }
}

/** `--pid gateway=17 --metrics gateway=http://…` speak of the same process; a role named twice has several. */
export function mergeByRole(
  pids: { role: string; value: number }[],
  metrics: { role: string; value: string }[],
): Watched[] {
  const roles = [...new Set([...pids, ...metrics].map(({ role }) => role))]
  return roles.flatMap(role => {
    const pidsOf = pids.filter(each => each.role === role)
    const metricsOf = metrics.filter(each => each.role === role)
    const count = Math.max(pidsOf.length, metricsOf.length)
    return Array.from({ length: count }, (_, number) => ({
      name: count === 1 ? role : `${role} ${number + 1}`,
      role,
      pid: pidsOf[number]?.value,
      metricsUrl: metricsOf[number]?.value,
    }))
  })
}
