// Reads the `access` section of keycast.yaml, once, at start: the rules, and who may sign tokens. the gate decides by them.
import { dirname } from 'node:path'
import { isUser, USER_PREFIX_CHARACTERS_MAX } from '@keycast/protocol'
import { duration, Misconfigured, substituteVariables } from '@keycast/service'
import { quantity } from '@keycast/service/namespaces'
import { readYaml } from '@keycast/service/yaml-file'
import { z } from 'zod'
import { readRule, verbs } from './rights.ts'
import { cookieProblem } from './token-source.ts'
import { SECRET_ALGORITHM } from './tokens/algorithms.ts'
import { jwksProblem, prefixProblems, readKeys } from './tokens/issuer-keys.ts'
import { typeOf, typeProblem } from './tokens/token-type.ts'

/**
 * @typedef {object} TokenIssuer one entry of `access.tokens`
 * @property {string} name as an operator finds it: `access.tokens.0`
 * @property {string[]} algorithms pinned: a token signed otherwise is refused
 * @property {string | undefined} issuer the required `iss`; `undefined`: any
 * @property {string | undefined} type what the `typ` of the header must be; `undefined`: as usual (token-type.ts)
 * @property {string | undefined} audience a value that `aud` must hold; `undefined`: a token must have no `aud`
 * @property {string} prefix put before `sub`
 * @property {string | undefined} jwks the URL of its public keys
 * @property {import('node:crypto').KeyObject[]} keys its public keys or secrets; none where `jwks` is given
 *
 * @typedef {object} Policy the `access` section, read
 * @property {import('./rights.ts').Rule} anonymous
 * @property {import('./rights.ts').Rule} everyone
 * @property {string} claim
 * @property {TokenIssuer[]} tokens
 * @property {string | undefined} cookie
 * @property {number} lifetimeMsMax a token that is valid for longer is refused, and revocations are kept so long
 * @property {string[]} notes facts that an operator should know at start, a line each. For the log
 */

/** Each may be asked to check a token, so their number multiplies the cost of garbage. */
const ISSUERS_MAX = 16

/** Two while one takes the place of the other, and some to spare. */
const KEYS_PER_ISSUER_MAX = 4

const LIFETIME_MS_MIN = 60_000
const LIFETIME_MS_MAX = 10 * 8_784 * 3_600_000
const LIFETIME_MS_DEFAULT = 8_784 * 3_600_000

/** As in an example: more would make it hard to read. */
const NAMES_SHOWN_MAX = 3

/** Names namespaces, for `*:**` would open those that are added later, too. @param {readonly string[]} namespaces */
function anonymousRule(namespaces) {
  const shown = namespaces.length > 0 ? namespaces.slice(0, NAMES_SHOWN_MAX) : ['NAMESPACE']
  return `{ anonymous: { read: [${shown.map(name => `"${name}:*"`).join(', ')}] } }`
}

/** @param {readonly string[]} namespaces */
const howToWrite = namespaces =>
  [
    'To let anybody read, name what they may read:',
    `  access: ${anonymousRule(namespaces)}`,
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
 * @param {NodeJS.ProcessEnv} [options.env] supplies `${NAME}`
 * @param {string} options.origins as GATEWAY_ORIGINS has them
 * @param {readonly string[]} [options.namespaces] those there are; a pattern that names another is refused
 * @returns {Policy} if the section is absent, a policy that lets nobody in
 * @throws {AccessError}
 */
export function readAccess({ path, env = process.env, origins, namespaces }) {
  const howTo = howToWrite(namespaces ?? [])
  /** @param {string[]} problems */
  const refuse = problems => new AccessError(path, problems)
  const { value: file, lineAt } = readYaml(path, refuse)
  const { access: written } = /** @type {{ access?: unknown }} */ (file ?? {})
  const notes = written === undefined ? [`no "access" in ${path}: nobody gets in. ${howTo}`] : []

  /** @param {(string | number)[]} where below `access` */
  const placeOf = where => {
    const full = ['access', ...where]
    return `line ${lineAt(full)}: ${full.join('.')}`
  }

  const { value, problems } = substituteVariables(written ?? {}, env, placeOf)
  if (problems.length > 0) throw refuse(problems)
  const schema = createSchema({ folder: dirname(path), origins, namespaces: namespaces && new Set(namespaces) })
  const parsed = schema.safeParse(value)
  if (!parsed.success) throw refuse(parsed.error.issues.flatMap(issue => describe(issue, placeOf)))

  const { maxLifetime, tokens, cookie, ...rules } = parsed.data
  /** @type {Policy} */
  const policy = {
    ...rules,
    tokens: tokens.flatMap(({ issuer }) => issuer ?? []),
    cookie: cookie === '' ? undefined : cookie,
    lifetimeMsMax: maxLifetime,
    notes,
  }
  if (written !== undefined) notes.push(...notesOn(policy, tokens, howTo))
  return policy
}

/**
 * @param {Policy} policy
 * @param {{ name: string, issuer: TokenIssuer | undefined }[]} tokens
 * @param {string} howTo write what lets somebody in
 */
function notesOn({ anonymous, tokens: issuers }, tokens, howTo) {
  const notes = tokens
    .filter(({ issuer }) => !issuer)
    .map(({ name }) => `${name} has an empty secret: it is as if it were not there`)
  const granted = verbs.filter(verb => anonymous[verb].length > 0)
  if (granted.length > 0) {
    const may = granted.map(verb => `${verb} ${anonymous[verb].map(({ text }) => text).join(' ')}`)
    notes.push(`anonymous sessions may ${may.join(', ')}`)
  }
  if (issuers.length === 0 && granted.length === 0) notes.push(`access lets nobody in. ${howTo}`)
  else if (issuers.length === 0) notes.push('no token is accepted: access.tokens names nobody who may sign one')
  return notes
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
        typ: named
          .superRefine((typ, { addIssue }) => {
            const message = typeProblem(typ)
            if (message) addIssue({ code: 'custom', message })
          })
          .transform(typeOf),
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
      return listed.map(
        ({ entry: { jwks, typ: type, issuer, audience, algorithms = [], prefix = '', keys }, index }) => {
          const name = `access.tokens.${index}`
          /** @type {TokenIssuer | undefined} */
          const issuerOf = keys && { name, jwks, type, issuer, audience, algorithms, prefix, keys }
          return { name, issuer: issuerOf }
        },
      )
    })

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
      maxLifetime: quantity(duration({ minMs: LIFETIME_MS_MIN, maxMs: LIFETIME_MS_MAX })).default(LIFETIME_MS_DEFAULT),
    },
    { error: `must be a map, as in ${anonymousRule([...(namespaces ?? [])])}` },
  )
}
