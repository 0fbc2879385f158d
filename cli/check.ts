// Says before a rollout what services would refuse to start with.
import { Misconfigured, readSettings } from '@keycast/service'
import { readNamespaces } from '@keycast/service/namespaces'
import { nearest } from '../packages/service/namespaces/strict-map.ts'
import { runCommand } from './support/command.ts'

const usage = `Usage: keycast check [SERVICE]...

Reads the environment and keycast.yaml as gateway, fetcher and journal do when they start, and prints every problem,
variables with a slip in their name among them.

  SERVICE   gateway, fetcher or journal, where each has an environment of its own (default: all three)

  KEYCAST_CONFIG=/srv/keycast/keycast.yaml npx keycast check             # on a host
  docker compose run --rm --no-deps gateway keycast check gateway        # in a container

Exits with 0 when there is no problem, with 1 when there is one, with 2 when it could not run.`

/** What a service reads when it starts, in order; each throws {@link Misconfigured} where the service would refuse it. */
type Reads = (() => unknown)[]

/** Variables that are Keycast's own: others may be read by anything. */
const ownVariable = /^(BACKBONE|FETCHER|GATEWAY|JOURNAL|VALKEY)_/

/** More letters than these make another name. */
const SLIPS_MAX = 2

/**
 * Nothing reads a variable with a slip in its name, so the setting would have its default, as GATEWAY_ORIGINS has `*`.
 *
 * @throws {Misconfigured}
 */
function lookForSlips(env: NodeJS.ProcessEnv, settings: Record<string, { env: string; secret: boolean }>) {
  const known = Object.values(settings).flatMap(({ env, secret }) => (secret ? [env, `${env}_FILE`] : [env]))
  const slips = Object.keys(env).flatMap(name => {
    if (!ownVariable.test(name) || known.includes(name)) return []
    const meant = nearest(name, known, SLIPS_MAX)
    return meant === undefined ? [] : [`  ${name}: nothing reads it: did you mean ${meant}?`]
  })
  if (slips.length > 0) throw new Misconfigured(['Unknown variables:', ...slips].join('\n'))
}

const services: Record<string, (env: NodeJS.ProcessEnv, path: string) => Promise<Reads>> = {
  async gateway(env, path) {
    const { conflictsOf, settings } = await import('../services/gateway/settings.ts')
    const { readAccess } = await import('../services/gateway/access/policy-file.ts')
    let namespaces: string[] | undefined
    return [
      () => readSettings(settings, { name: 'gateway', about: '', check: conflictsOf, env }),
      () => lookForSlips(env, settings),
      () => {
        namespaces = readNamespaces({ path, env, headers: false }).all.names
      },
      () => {
        const profile = env.KEYCAST_PROFILE === 'try' ? 'try' : 'production'
        readAccess({ path, env, origins: env.GATEWAY_ORIGINS || settings.origins.default, namespaces, profile })
      },
    ]
  },
  async fetcher(env, path) {
    const { conflictsOf, settings } = await import('../services/fetcher/settings.ts')
    return [
      () => readSettings(settings, { name: 'fetcher', about: '', check: conflictsOf, env }),
      () => lookForSlips(env, settings),
      () => readNamespaces({ path, env }),
    ]
  },
  async journal(env, path) {
    const { conflictsOf, settings } = await import('../services/journal/settings.ts')
    return [
      () => readSettings(settings, { name: 'journal', about: '', check: conflictsOf, env }),
      () => lookForSlips(env, settings),
      () => readNamespaces({ path, env, headers: false, authorize: false }),
    ]
  },
}

/** @returns the exit code */
async function check(names: string[], env: NodeJS.ProcessEnv): Promise<0 | 1> {
  /** Who has it, by what it says: all of them read one file. */
  const problems = new Map<string, string[]>()
  for (const name of names) {
    for (const read of await services[name](env, env.KEYCAST_CONFIG || 'keycast.yaml')) {
      try {
        read()
      } catch (error) {
        if (!(error instanceof Misconfigured)) throw error
        problems.set(error.message, [...(problems.get(error.message) ?? []), name])
      }
    }
  }
  for (const [message, names] of problems) console.error(`${names.join(', ')}: ${message}`)
  if (problems.size > 0) return 1
  console.log(`${names.join(', ')}: no problem`)
  return 0
}

export const run = (args: string[]) =>
  runCommand(
    { name: 'keycast check', usage, allowPositionals: true },
    ({ positionals }) => {
      const unknown = positionals.find(name => !Object.hasOwn(services, name))
      if (unknown !== undefined) throw new Error(`"${unknown}" is none of ${Object.keys(services).join(', ')}`)
      return check(positionals.length > 0 ? positionals : Object.keys(services), process.env)
    },
    args,
  )
