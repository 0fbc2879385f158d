// Reads the `access` section of keycast.yaml, once, at start: the rules, and who may sign tokens. access.js decides by them.
import { readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { isUser, USER_PREFIX_CHARACTERS_MAX } from '@keycast/protocol'
import { duration, Misconfigured, substituteVariables } from '@keycast/service'
import { lineOf } from '@keycast/service/yaml-line'
import { LineCounter, parseDocument } from 'yaml'
import { z } from 'zod'
import { cookieProblem } from './identity.js'
import { readRule, verbs } from './rights.js'
import { SECRET_ALGORITHM } from './tokens/algorithms.js'
import { jwksProblem, prefixProblems, readKeys } from './tokens/issuer-keys.js'

/**
 * @typedef {object} TokenIssuer one entry of `access.tokens`
 * @property {string} name as an operator finds it: `access.tokens.0`
 * @property {string[]} algorithms pinned: a token signed otherwise is refused
 * @property {string | undefined} issuer what `iss` must be; `undefined`: it is not looked at
 * @property {string | undefined} audience what `aud` must hold; `undefined`: a token must have no `aud`
 * @property {string} prefix put before `sub`
 * @property {string | undefined} jwks the URL of its public keys
 * @property {import('node:crypto').KeyObject[]} keys its public keys or secrets; none where `jwks` is given
 *
 * @typedef {object} Access
 * @property {import('./rights.js').Rule} anonymous
 * @property {import('./rights.js').Rule} everyone
 * @property {string} claim
 * @property {TokenIssuer[]} tokens
 * @property {string | undefined} cookie
 * @property {number} lifetimeMsMax a token that is valid for longer is refused, and revocations are kept so long
 * @property {string[]} notes what an operator should know at start, a line each. For the log
 */

/** Each may be asked to check a token, so their number is what garbage can cost. */
const ISSUERS_MAX = 16

/** Two while one takes the place of the other, and some to spare. */
const KEYS_PER_ISSUER_MAX = 4

const LIFETIME_MS_MIN = 60_000
const LIFETIME_MS_MAX = 10 * 8_784 * 3_600_000
const LIFETIME_DEFAULT = '8784h'

const howToWrite = [
  'To let anybody read everything, write:',
  '  access: { anonymous: { read: ["*:**"] } }',
  'To let in those who bring a token that says what they may do, write:',
  `  access: { tokens: [{ secret: "\${JWT_SECRET}", algorithms: [${SECRET_ALGORITHM}] }] }`,
].join('\n')

/** The `access` section cannot be used. The message names every bad field and its line. */
export class AccessError extends Misconfigured {
  /** @param {string} path @param {string[]} problems */
  constructor(path, problems) {
    super(`Invalid access in ${path}:\n${problems.map(problem => `  ${problem}`).join('\n')}`)
    this.name = 'AccessError'
    this.problems = problems
  }
}

/**
 * @param {object} options
 * @param {string} options.path of keycast.yaml. Key files are named relative to its folder
 * @param {NodeJS.ProcessEnv} [options.env] what `${NAME}` stands for
 * @param {string} options.origins as GATEWAY_ORIGINS has them
 * @param {readonly string[]} [options.namespaces] those there are; a pattern that names another is refused
 * @returns {Access} where the section is absent, one that lets nobody in
 * @throws {AccessError}
 */
export function readAccess({ path, env = process.env, origins, namespaces }) {
  const lineCounter = new LineCounter()
  const document = parse(path, lineCounter)
  const written = sectionOf(path, document)
  const notes = written === undefined ? [`no "access" in ${path}: nobody gets in. ${howToWrite}`] : []

  /** @param {(string | number)[]} where below `access` */
  const placeOf = where => {
    const full = ['access', ...where]
    return `line ${lineOf(document, full, lineCounter)}: ${full.join('.')}`
  }

  const { value, problems } = fillIn(written ?? {}, env, placeOf)
  if (problems.length > 0) throw new AccessError(path, problems)
  const schema = createSchema({ folder: dirname(path), origins, namespaces: namespaces && new Set(namespaces) })
  const parsed = schema.safeParse(value)
  if (!parsed.success) {
    throw new AccessError(
      path,
      parsed.error.issues.flatMap(issue => describe(issue, placeOf)),
    )
  }

  const { maxLifetime, tokens, cookie, ...rules } = parsed.data
  /** @type {Access} */
  const access = {
    ...rules,
    tokens: tokens.flatMap(({ issuer }) => issuer ?? []),
    cookie: cookie === '' ? undefined : cookie,
    lifetimeMsMax: maxLifetime,
    notes,
  }
  if (written !== undefined) notes.push(...notesOn(access, tokens))
  return access
}

/** @param {Access} access @param {{ name: string, issuer: TokenIssuer | undefined }[]} tokens */
function notesOn({ anonymous, tokens: issuers }, tokens) {
  const notes = tokens
    .filter(({ issuer }) => !issuer)
    .map(({ name }) => `${name} has an empty secret: it is as if it were not there`)
  const granted = verbs.filter(verb => anonymous[verb].length > 0)
  if (granted.length > 0) {
    const may = granted.map(verb => `${verb} ${anonymous[verb].map(({ text }) => text).join(' ')}`)
    notes.push(`anonymous sessions may ${may.join(', ')}`)
  }
  if (issuers.length === 0 && granted.length === 0) notes.push(`access lets nobody in. ${howToWrite}`)
  else if (issuers.length === 0) notes.push('no token is accepted: access.tokens names nobody who may sign one')
  return notes
}

/** @param {string} path @param {LineCounter} lineCounter */
function parse(path, lineCounter) {
  let text
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    throw new AccessError(path, [`cannot be read: ${/** @type {NodeJS.ErrnoException} */ (error).code}`])
  }
  const document = parseDocument(text, { lineCounter })
  const faults = [...document.errors, ...document.warnings]
  // The first line says what and where; those after it show the text, which may hold a secret.
  if (faults.length > 0)
    throw new AccessError(
      path,
      faults.map(({ message }) => message.split('\n')[0]),
    )
  return document
}

/** @param {string} path @param {import('yaml').Document.Parsed} document @returns {unknown} */
function sectionOf(path, document) {
  try {
    const file = document.toJS()
    return typeof file === 'object' && file !== null ? file.access : undefined
  } catch (error) {
    // An alias without its anchor is only found here.
    throw new AccessError(path, [/** @type {Error} */ (error).message])
  }
}

/**
 * Puts the environment's values in, text by text, so that each problem can be told with its line.
 *
 * @param {unknown} section
 * @param {NodeJS.ProcessEnv} env
 * @param {(where: (string | number)[]) => string} placeOf
 */
function fillIn(section, env, placeOf) {
  /** @type {string[]} */
  const problems = []
  /** @param {unknown} value @param {(string | number)[]} where @returns {unknown} */
  const walk = (value, where) => {
    if (typeof value === 'string') {
      const place = placeOf(where)
      const filled = substituteVariables({ [place]: value }, env)
      problems.push(...filled.problems)
      return /** @type {Record<string, string>} */ (filled.value)[place]
    }
    if (Array.isArray(value)) return value.map((item, index) => walk(item, [...where, index]))
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(Object.entries(value).map(([name, held]) => [name, walk(held, [...where, name])]))
  }
  return { value: walk(section, []), problems }
}

/**
 * @param {import('zod').core.$ZodIssue} issue
 * @param {(where: (string | number)[]) => string} placeOf
 * @returns {string[]}
 */
function describe(issue, placeOf) {
  const where = /** @type {(string | number)[]} */ (issue.path)
  if (issue.code === 'unrecognized_keys') return issue.keys.map(key => `${placeOf([...where, key])}: unknown field`)
  return [`${placeOf(where)}: ${issue.message}`]
}

/** @param {{ folder: string, origins: string, namespaces: Set<string> | undefined }} options */
function createSchema({ folder, origins, namespaces }) {
  const text = z.string({ error: 'must be text; in quotes where it looks like something else' })
  const named = text.min(1, { error: 'must not be empty: leave it out instead', abort: true })

  /** @param {boolean} user */
  const rule = user =>
    z
      .unknown()
      .optional()
      .transform((written, context) => {
        const read = readRule(written ?? {}, { user, strict: true })
        for (const { path, problem } of read.problems) {
          context.addIssue({ code: 'custom', message: problem, path })
        }
        for (const verb of verbs) {
          for (const { text: pattern, segments } of read.rule[verb]) {
            if (!namespaces || segments[0] === '*' || namespaces.has(segments[0])) continue
            const message = `"${pattern}" names no namespace of this file: there are ${[...namespaces].join(', ')}`
            context.addIssue({ code: 'custom', message, path: [verb] })
          }
        }
        return read.rule
      })

  const oneOrSome = z
    .union([text.transform(each => [each]), z.array(text)], { error: 'must be text, or a list of texts' })
    .refine(all => all.length >= 1 && all.length <= KEYS_PER_ISSUER_MAX, `must be 1 to ${KEYS_PER_ISSUER_MAX}`)

  const issuer = z
    .strictObject(
      {
        jwks: text.superRefine((url, { addIssue }) => {
          const message = jwksProblem(url)
          if (message) addIssue({ code: 'custom', message })
        }),
        secret: oneOrSome,
        publicKey: oneOrSome,
        issuer: named,
        audience: named,
        algorithms: z.array(text, { error: 'must be a list, as in [ES256]' }),
        prefix: named
          .max(USER_PREFIX_CHARACTERS_MAX, {
            error: `must have ${USER_PREFIX_CHARACTERS_MAX} characters at most`,
            abort: true,
          })
          .refine(isUser, 'must hold no control characters, and be well-formed Unicode'),
      },
      { error: 'must be a map with jwks, secret or publicKey' },
    )
    .partial()
    .transform((entry, context) => {
      const { keys, problems } = readKeys(entry, folder)
      for (const { path, message } of problems) context.addIssue({ code: 'custom', message, path })
      return { ...entry, keys }
    })

  const tokens = z
    .array(issuer, { error: 'must be a list of those who may sign tokens' })
    .max(ISSUERS_MAX, `must be ${ISSUERS_MAX} entries at most`)
    .transform((entries, context) => {
      const listed = entries.map((entry, index) => ({ entry, index }))
      for (const { index, message } of prefixProblems(listed.filter(({ entry }) => entry.keys))) {
        context.addIssue({ code: 'custom', message, path: [index, 'prefix'] })
      }
      return listed.map(({ entry: { jwks, issuer, audience, algorithms = [], prefix = '', keys }, index }) => {
        const name = `access.tokens.${index}`
        /** @type {TokenIssuer | undefined} */
        const issuerOf = keys && { name, jwks, issuer, audience, algorithms, prefix, keys }
        return { name, issuer: issuerOf }
      })
    })

  const lifetimeError = 'must be a duration from 1m to 87840h, as in 24h'
  return z.strictObject(
    {
      anonymous: rule(false),
      everyone: rule(true),
      claim: named.default('keys'),
      tokens: tokens.default([]),
      cookie: text.default('').superRefine((name, { addIssue }) => {
        const message = name === '' ? undefined : cookieProblem(name, origins)
        if (message) addIssue({ code: 'custom', message })
      }),
      maxLifetime: z
        .union([z.string(), z.number()], { error: lifetimeError })
        .default(LIFETIME_DEFAULT)
        .transform(written => duration({ maxMs: LIFETIME_MS_MAX }).read(String(written)))
        .refine(ms => ms >= LIFETIME_MS_MIN && ms <= LIFETIME_MS_MAX, lifetimeError),
    },
    { error: 'must be a map, as in { anonymous: { read: ["*:**"] } }' },
  )
}
