// Settings: declared once per service, read once at start, from the environment or a file that it names. Beside them
// `${NAME}` in keycast.yaml stands for a variable; nothing else reads the environment.
import { isIP } from 'node:net'
import { shortened } from '@keycast/protocol'
import { readVariable } from '../environment.ts'
import { Misconfigured } from '../misconfigured.ts'
import { duration, integer, type Rule, showSize, size } from '../quantities.cjs'
import { certificatesProblem } from './certificates.ts'

/**
 * One declared setting. `expects` names the texts that `read` accepts; both belong to the kind, the rest to the service.
 */
export interface Setting<T> {
  /** The environment variable's name. */
  env: string
  /** One sentence for --help. */
  doc: string
  /** Used where the variable is unset or empty. */
  default: T
  /** Completes "must be …". */
  expects: string
  read: (text: string) => { value: T } | { problem: string }
  /** Never printed, and `<env>_FILE` may name a file that holds it. */
  secret: boolean
  /** The default, for --help. */
  show(value: T): string
}

/** The values of declared settings, each with its own type. */
export type Config<S extends Record<string, Setting<unknown>>> = {
  [K in keyof S]: S[K] extends Setting<infer T> ? T : never
}

interface NumberDeclaration {
  env: string
  default: number
  doc: string
}

interface TextDeclaration {
  env: string
  default: string
  doc: string
}

/** Both inclusive. */
interface Bounds {
  min?: number
  max?: number
}

/** A name as hosts have it (RFC 1123 section 2.1), and as containers do, with `_`. Not an address with a digit wrong. */
const hostGrammar = /^(?=.*[a-z])[a-z0-9_]([a-z0-9_.-]*[a-z0-9])?$/i

/** The kinds of settings. */
export const setting = {
  /** @param declaration `check` returns the problem of a text, if any */
  text: (declaration: {
    env: string
    default: string
    doc: string
    expects: string
    check?: (text: string) => string | undefined
  }) => textual(declaration),

  path: (declaration: TextDeclaration) => textual({ ...declaration, expects: 'a path' }),

  /** An address to listen on. Looked up when the service listens: a name may be known only then. */
  host: (declaration: TextDeclaration) => {
    const expects = 'an address of this host, or a name of it'
    const check = (text: string) =>
      isIP(text) !== 0 || hostGrammar.test(text) ? undefined : `must be ${expects}, without a port`
    return textual({ ...declaration, expects, check })
  },

  /** Text that is never printed; `undefined` when unset. */
  secret: (declaration: { env: string; doc: string }): Setting<string | undefined> => ({
    ...declaration,
    default: undefined,
    expects: `text, or ${declaration.env}_FILE: the path of a file that holds it`,
    read: value => ({ value }),
    secret: true,
    show: () => '',
  }),

  flag: (declaration: { env: string; default: boolean; doc: string }): Setting<boolean> => {
    const expects = 'true or false'
    return {
      ...declaration,
      expects,
      read(text) {
        if (text === 'true' || text === '1') return { value: true }
        return text === 'false' || text === '0' ? { value: false } : { problem: `must be ${expects}` }
      },
      secret: false,
      show: String,
    }
  },

  choice: <T extends string>({
    values,
    ...declaration
  }: {
    env: string
    values: readonly [T, ...T[]]
    default: T
    doc: string
  }): Setting<T> => {
    const expects = `one of ${values.join(', ')}`
    return {
      ...declaration,
      expects,
      read: text => (values.includes(text as T) ? { value: text as T } : { problem: `must be ${expects}` }),
      secret: false,
      show: String,
    }
  },

  port: (declaration: NumberDeclaration) =>
    numeric(declaration, {
      read: integer({ max: 65_535 }).read,
      expects: 'a port from 0 to 65535 (0: any free one)',
    }),

  /** @param declaration `unit`: the plural noun counted, for --help */
  integer: ({ min, max, unit, ...declaration }: NumberDeclaration & Bounds & { unit?: string }) =>
    numeric(declaration, integer({ min, max, unit })),

  milliseconds: ({ min, max, ...declaration }: NumberDeclaration & Bounds) =>
    numeric(declaration, duration({ minMs: min, maxMs: max, plainMs: true })),

  bytes: ({ min, max, ...declaration }: NumberDeclaration & Bounds) =>
    numeric(declaration, size({ minBytes: min, maxBytes: max }), showSize),

  ratio: (declaration: NumberDeclaration) =>
    numeric(declaration, {
      read: text => (/^(0(\.\d+)?|1(\.0+)?)$/.test(text) ? Number(text) : Number.NaN),
      expects: 'a number from 0 to 1',
    }),
}

/** What may run: `try` admits what is only for trying, on one's own host. */
export type Profile = 'production' | 'try'

/** Settings that every service has. */
export const common = {
  profile: setting.choice<Profile>({
    env: 'KEYCAST_PROFILE',
    values: ['production', 'try'],
    default: 'production',
    doc: 'production: a service refuses to start with what is only for trying. try: the simulated backend and the chat at /chat run, anybody may publish and join, and clients may connect in plaintext. npm start and docker-compose.yml set it.',
  }),
  logLevel: setting.choice({
    env: 'LOG_LEVEL',
    values: ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'],
    default: 'info',
    doc: 'Lowest severity that is logged.',
  }),
  logFormat: setting.choice({
    env: 'LOG_FORMAT',
    values: ['json', 'pretty'],
    default: 'json',
    doc: 'json: one object a line, for machines. pretty: for a person at a terminal.',
  }),
  certificatesPath: setting.text({
    env: 'NODE_EXTRA_CA_CERTS',
    default: '',
    expects: 'the path of a file with certificates (PEM)',
    check: certificatesProblem,
    doc: 'Authorities that certificates of backends, identity providers and a Valkey may have, besides those that Node knows. Node reads the file at start.',
  }),
  shutdownGraceMs: setting.milliseconds({
    env: 'SHUTDOWN_GRACE_MS',
    default: 10_000,
    min: 100,
    doc: 'Time to stop in order after SIGTERM or SIGINT; after it the process exits with 1. Set the kill time-out of the supervisor higher.',
  }),
}

/** Settings cannot be used. The message names every one of them. */
export class SettingsError extends Misconfigured {
  readonly problems: string[]

  /** @param name of the service */
  constructor(name: string, problems: string[]) {
    super(`Invalid settings of ${name} (--help lists all):\n${problems.map(problem => `  ${problem}`).join('\n')}`)
    this.name = 'SettingsError'
    this.problems = problems
  }
}

/**
 * Reads the declared settings. Without `env` and `argv` it reads those of the process, and ends it when it cannot go
 * on: with 0 after `--help`, which prints all settings; with 2 after printing all problems.
 *
 * @param service `about`: one sentence; `check`: finds conflicts between settings that are each right by themselves;
 *   `argv`: the arguments after the script's name
 * @throws {SettingsError} only where `env` or `argv` is given
 */
export function readSettings<S extends Record<string, Setting<unknown>>>(
  settings: S,
  {
    name,
    about,
    check = () => [],
    env,
    argv,
  }: { name: string; about: string; check?: (config: Config<S>) => string[]; env?: NodeJS.ProcessEnv; argv?: string[] },
): Config<S> {
  if (env || argv) return readAll(settings, { name, check, env: env ?? {}, argv: argv ?? [] })

  const given = process.argv.slice(2)
  if (given.includes('--help') || given.includes('-h')) {
    process.stdout.write(renderHelp(settings, { name, about }))
    process.exit(0)
  }
  try {
    return readAll(settings, { name, check, env: process.env, argv: given })
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error
    process.stderr.write(`${error.message}\n`)
    process.exit(2)
  }
}

/**
 * The text of `--help`: every setting with its meaning, its accepted form and its default. Values set are not shown.
 */
export function renderHelp(
  settings: Record<string, Setting<unknown>>,
  { name, about }: { name: string; about: string },
) {
  const declared = Object.values(settings)
  const width = Math.max(...declared.map(({ env }) => env.length))
  const lines = declared.flatMap(({ env, doc, expects, default: fallback, show, secret }) => {
    const shown = fallback === undefined ? '' : show(fallback)
    const standard = secret ? 'unset by default' : `default: ${shown === '' ? '(empty)' : shown}`
    return [`  ${env.padEnd(width)}  ${doc}`, `  ${''.padEnd(width)}  ${expects}; ${standard}`]
  })
  return `${name}: ${about}\n\nSettings are environment variables; an empty one counts as unset:\n\n${lines.join('\n')}\n`
}

function readAll<S extends Record<string, Setting<unknown>>>(
  settings: S,
  {
    name,
    check,
    env,
    argv,
  }: { name: string; check: (config: Config<S>) => string[]; env: NodeJS.ProcessEnv; argv: string[] },
) {
  const problems = argv.map(argument => `unknown argument ${shortened(argument)}: settings are environment variables`)
  const config: Record<string, unknown> = {}
  for (const [field, declared] of Object.entries(settings)) {
    const { text, problem } = textOf(declared, env)
    if (problem) problems.push(problem)
    if (text === undefined) {
      config[field] = declared.default
      continue
    }
    const found = declared.read(text)
    if ('problem' in found) problems.push(`${declared.env}=${shortened(text)}: ${found.problem}`)
    else config[field] = found.value
  }
  const read = config as Config<S>
  if (problems.length === 0) problems.push(...check(read))
  if (problems.length > 0) throw new SettingsError(name, problems)
  return read
}

/** @returns neither if the setting is unset */
function textOf(
  { env: variable, secret }: Setting<unknown>,
  env: NodeJS.ProcessEnv,
): { text?: string; problem?: string } {
  if (!secret) return { text: env[variable] || undefined }
  const { text, problem } = readVariable(env, variable)
  // If an unwritten secret counted as unset, its check would be switched off.
  if (text === '') return { problem: `${variable}_FILE=${env[`${variable}_FILE`]}: the file is empty` }
  return { text, problem }
}

function textual({
  check = () => undefined,
  ...declaration
}: TextDeclaration & { expects: string; check?: (text: string) => string | undefined }): Setting<string> {
  const read = (value: string) => {
    const problem = check(value)
    return problem ? { problem } : { value }
  }
  return { ...declaration, read, secret: false, show: value => value }
}

function numeric(
  declaration: NumberDeclaration,
  { read: numberOf, expects }: Rule,
  show: (value: number) => string = String,
): Setting<number> {
  const read = (text: string) => {
    const value = numberOf(text)
    return Number.isNaN(value) ? { problem: `must be ${expects}` } : { value }
  }
  return { ...declaration, expects, read, secret: false, show }
}
