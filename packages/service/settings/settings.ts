// Settings: declared once per service, read once at start, from the environment or a file that it names. Beside them
// `${NAME}` in keycast.yaml stands for a variable; nothing else reads the environment.
import { isIP } from 'node:net'
import { shortened } from '@keycast/protocol'
import { z } from 'zod'
import { readVariable } from '../environment.ts'
import { Misconfigured } from '../misconfigured.ts'
import { duration, integer, showSize, size } from '../quantities.cjs'

/**
 * One declared setting. `expects` names the texts that `schema` accepts; both belong to the kind, the rest to the
 * service.
 *
 * @template T
 * @typedef {object} Setting
 * @property {string} env the environment variable's name
 * @property {string} doc one sentence for --help
 * @property {T} default used where the variable is unset or empty
 * @property {string} expects completes "must be …"
 * @property {import('zod').ZodType<T, string>} schema
 * @property {boolean} secret never printed, and `<env>_FILE` may name a file that holds it
 * @property {(value: T) => string} show the default, for --help
 */

/**
 * The values of declared settings, each with its own type.
 *
 * @template {Record<string, Setting<any>>} S
 * @typedef {{ [K in keyof S]: S[K] extends Setting<infer T> ? T : never }} Config
 */

/**
 * @typedef {{ env: string, default: number, doc: string }} NumberDeclaration
 * @typedef {{ env: string, default: string, doc: string }} TextDeclaration
 * @typedef {{ min?: number, max?: number }} Bounds both inclusive
 */

/** A name as hosts have it (RFC 1123 section 2.1), and as containers do, with `_`. Not an address with a digit wrong. */
const hostGrammar = /^(?=.*[a-z])[a-z0-9_]([a-z0-9_.-]*[a-z0-9])?$/i

/** The kinds of settings. */
export const setting = {
  /**
   * @param {{ env: string, default: string, doc: string, expects: string, check?: (text: string) => string | undefined }}
   *   declaration `check` returns the problem of a text, if any
   */
  text: declaration => textual(declaration),

  /** @param {TextDeclaration} declaration */
  path: declaration => textual({ ...declaration, expects: 'a path' }),

  /**
   * An address to listen on. Looked up when the service listens: a name may be known only then.
   *
   * @param {TextDeclaration} declaration
   */
  host: declaration => {
    const expects = 'an address of this host, or a name of it'
    const check = (/** @type {string} */ text) =>
      isIP(text) !== 0 || hostGrammar.test(text) ? undefined : `must be ${expects}, without a port`
    return textual({ ...declaration, expects, check })
  },

  /**
   * Text that is never printed; `undefined` when unset.
   *
   * @param {{ env: string, doc: string }} declaration
   * @returns {Setting<string | undefined>}
   */
  secret: declaration => ({
    ...declaration,
    default: undefined,
    expects: `text, or ${declaration.env}_FILE: the path of a file that holds it`,
    schema: z.string(),
    secret: true,
    show: () => '',
  }),

  /** @param {{ env: string, default: boolean, doc: string }} declaration @returns {Setting<boolean>} */
  flag: declaration => {
    const expects = 'true or false'
    return {
      ...declaration,
      expects,
      schema: z
        .enum(['true', 'false', '1', '0'], `must be ${expects}`)
        .transform(text => text === 'true' || text === '1'),
      secret: false,
      show: String,
    }
  },

  /**
   * @template {string} T
   * @param {{ env: string, values: readonly [T, ...T[]], default: T, doc: string }} declaration
   * @returns {Setting<T>}
   */
  choice: ({ values, ...declaration }) => {
    const expects = `one of ${values.join(', ')}`
    const schema = z.string().refine(text => values.includes(/** @type {T} */ (text)), `must be ${expects}`)
    return {
      ...declaration,
      expects,
      schema: /** @type {import('zod').ZodType<T, string>} */ (/** @type {unknown} */ (schema)),
      secret: false,
      show: String,
    }
  },

  /** @param {NumberDeclaration} declaration */
  port: declaration =>
    numeric(declaration, {
      read: integer({ max: 65_535 }).read,
      expects: 'a port from 0 to 65535 (0: any free one)',
    }),

  /** @param {NumberDeclaration & Bounds & { unit?: string }} declaration `unit`: the plural noun counted, for --help */
  integer: ({ min, max, unit, ...declaration }) => numeric(declaration, integer({ min, max, unit })),

  /** @param {NumberDeclaration & Bounds} declaration */
  milliseconds: ({ min, max, ...declaration }) =>
    numeric(declaration, duration({ minMs: min, maxMs: max, plainMs: true })),

  /** @param {NumberDeclaration & Bounds} declaration */
  bytes: ({ min, max, ...declaration }) => numeric(declaration, size({ minBytes: min, maxBytes: max }), showSize),

  /** @param {NumberDeclaration} declaration */
  ratio: declaration =>
    numeric(declaration, {
      read: text => (/^(0(\.\d+)?|1(\.0+)?)$/.test(text) ? Number(text) : Number.NaN),
      expects: 'a number from 0 to 1',
    }),
}

/** Settings that every service has. */
export const common = {
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
  shutdownGraceMs: setting.milliseconds({
    env: 'SHUTDOWN_GRACE_MS',
    default: 10_000,
    min: 100,
    doc: 'Time to stop in order after SIGTERM or SIGINT; after it the process exits with 1. Set the kill time-out of the supervisor higher.',
  }),
}

/** Settings cannot be used. The message names every one of them. */
export class SettingsError extends Misconfigured {
  /** @param {string} name of the service @param {string[]} problems */
  constructor(name, problems) {
    super(`Invalid settings of ${name} (--help lists all):\n${problems.map(problem => `  ${problem}`).join('\n')}`)
    this.name = 'SettingsError'
    this.problems = problems
  }
}

/**
 * Reads the declared settings. Without `env` and `argv` it reads those of the process, and ends it when it cannot go
 * on: with 0 after `--help`, which prints all settings; with 2 after printing all problems.
 *
 * @template {Record<string, Setting<any>>} S
 * @param {S} settings
 * @param {{ name: string, about: string, check?: (config: Config<S>) => string[], env?: NodeJS.ProcessEnv, argv?:
 *   string[] }} service `about`: one sentence; `check`: finds conflicts between settings that are each right by
 *   themselves; `argv`: the arguments after the script's name
 * @returns {Config<S>}
 * @throws {SettingsError} only where `env` or `argv` is given
 */
export function readSettings(settings, { name, about, check = () => [], env, argv }) {
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
 *
 * @param {Record<string, Setting<any>>} settings
 * @param {{ name: string, about: string }} service
 */
export function renderHelp(settings, { name, about }) {
  const declared = Object.values(settings)
  const width = Math.max(...declared.map(({ env }) => env.length))
  const lines = declared.flatMap(({ env, doc, expects, default: fallback, show, secret }) => {
    const shown = fallback === undefined ? '' : show(fallback)
    const standard = secret ? 'unset by default' : `default: ${shown === '' ? '(empty)' : shown}`
    return [`  ${env.padEnd(width)}  ${doc}`, `  ${''.padEnd(width)}  ${expects}; ${standard}`]
  })
  return `${name}: ${about}\n\nSettings are environment variables; an empty one counts as unset:\n\n${lines.join('\n')}\n`
}

/**
 * @template {Record<string, Setting<any>>} S
 * @param {S} settings
 * @param {{ name: string, check: (config: Config<S>) => string[], env: NodeJS.ProcessEnv, argv: string[] }} given
 */
function readAll(settings, { name, check, env, argv }) {
  const problems = argv.map(argument => `unknown argument ${shortened(argument)}: settings are environment variables`)
  /** @type {Record<string, unknown>} */
  const config = {}
  for (const [field, declared] of Object.entries(settings)) {
    const { text, problem } = textOf(declared, env)
    if (problem) problems.push(problem)
    if (text === undefined) {
      config[field] = declared.default
      continue
    }
    const parsed = declared.schema.safeParse(text)
    if (parsed.success) config[field] = parsed.data
    else problems.push(`${declared.env}=${shortened(text)}: ${parsed.error.issues[0].message}`)
  }
  const read = /** @type {Config<S>} */ (config)
  if (problems.length === 0) problems.push(...check(read))
  if (problems.length > 0) throw new SettingsError(name, problems)
  return read
}

/**
 * @param {Setting<any>} declared
 * @param {NodeJS.ProcessEnv} env
 * @returns {{ text?: string, problem?: string }} neither if the setting is unset
 */
function textOf({ env: variable, secret }, env) {
  if (!secret) return { text: env[variable] || undefined }
  const { text, problem } = readVariable(env, variable)
  // If an unwritten secret counted as unset, its check would be switched off.
  if (text === '') return { problem: `${variable}_FILE=${env[`${variable}_FILE`]}: the file is empty` }
  return { text, problem }
}

/**
 * @param {TextDeclaration & { expects: string, check?: (text: string) => string | undefined }} declaration
 * @returns {Setting<string>}
 */
function textual({ check = () => undefined, ...declaration }) {
  const schema = z.string().superRefine((text, { addIssue }) => {
    const message = check(text)
    if (message) addIssue({ code: 'custom', message })
  })
  return { ...declaration, schema, secret: false, show: value => value }
}

/**
 * @param {NumberDeclaration} declaration
 * @param {import('../quantities.cjs').Rule} rule
 * @param {(value: number) => string} [show]
 * @returns {Setting<number>}
 */
function numeric(declaration, { read, expects }, show = String) {
  const schema = z
    .string()
    .transform(read)
    .refine(number => !Number.isNaN(number), { error: `must be ${expects}` })
  return { ...declaration, expects, schema, secret: false, show }
}
