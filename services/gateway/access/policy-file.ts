// Reads the `access` section of keycast.yaml: the rules, and who may sign tokens. The gate decides by them.
import type { KeyObject } from 'node:crypto'
import { dirname } from 'node:path'
import { isUser, USER_PREFIX_CHARACTERS_MAX } from '@keycast/protocol'
import { duration, Misconfigured, type Profile, substituteVariables } from '@keycast/service'
import { quantity, strictMap, unknownFields } from '@keycast/service/namespaces'
import { readYaml } from '@keycast/service/yaml-file'
import { type core, z } from 'zod'
import { TOKEN_CLAIMS, VIEWER_CLAIMS } from './backend/viewer-name.ts'
import { grantedByRead, type Rule, readRule, type Verb, verbs } from './rule.ts'
import { cookieProblem } from './token-source.ts'
import { SECRET_ALGORITHM } from './tokens/algorithms.ts'
import { jwksProblem, prefixProblems, readKeys } from './tokens/issuer-keys.ts'
import { typeOf, typeProblem } from './tokens/token-type.ts'

/** One entry of `access.tokens`. */
export interface TokenIssuer {
  /** As an operator finds it: `access.tokens.0`. */
  name: string
  /** pinned: a token signed otherwise is refused. */
  algorithms: string[]
  /** The required `iss`; `undefined`: any. */
  issuer: string | undefined
  /** What the `typ` of the header must be; `undefined`: as usual (token-type.ts). */
  type: string | undefined
  /** A value that `aud` must hold; `undefined`: a token must have no `aud`. */
  audience: string | undefined
  /** Put before `sub`. */
  prefix: string
  /** The URL of its public keys. */
  jwks: string | undefined
  /** Its public keys or secrets; none where `jwks` is given. */
  keys: KeyObject[]
  /** The claims by which a backend tells one user's tokens apart. */
  viewer: readonly string[]
}

/** The `access` section, read. */
export interface Policy {
  anonymous: Rule
  everyone: Rule
  /** The verbs that `read` grants as well: those that neither rule names. */
  byRead: readonly Verb[]
  claim: string
  tokens: TokenIssuer[]
  cookie: string | undefined
  /** A token that is valid for longer is refused, and revocations are kept so long. */
  lifetimeMsMax: number
  /** Facts that an operator should know at start, a line each. For the log. */
  notes: string[]
}

/** Each may be asked to check a token, so their number multiplies the cost of garbage. */
const ISSUERS_MAX = 16

/** Two while one takes the place of the other, and some to spare. */
const KEYS_PER_ISSUER_MAX = 4

/** Claims that are compared with each token. */
const VIEWER_CLAIMS_MAX = 32

const LIFETIME_MS_MIN = 60_000
const LIFETIME_MS_MAX = 10 * 8_784 * 3_600_000
const LIFETIME_MS_DEFAULT = 8_784 * 3_600_000

/** What a file must name under `accept` before it may grant it: strangers then fill rooms, and nobody can be held to it. */
const risks = [
  { verb: 'publish', name: 'anonymous-publish' },
  { verb: 'join', name: 'anonymous-join' },
] as const

const riskOf = (verb: string, name: string) =>
  `anybody may ${verb} without a token. Take it away, or write access.accept: [${name}]; KEYCAST_PROFILE=try is for trying`

/** As in an example: more would make it hard to read. */
const NAMES_SHOWN_MAX = 3

/** Names namespaces, for `*:**` would open those that are added later, too. */
function anonymousRule(namespaces: readonly string[]) {
  const shown = namespaces.length > 0 ? namespaces.slice(0, NAMES_SHOWN_MAX) : ['NAMESPACE']
  return `{ anonymous: { read: [${shown.map(name => `"${name}:*"`).join(', ')}] } }`
}

const howToWrite = (namespaces: readonly string[]) =>
  [
    'To let anybody read, name what they may read:',
    `  access: ${anonymousRule(namespaces)}`,
    'To let in those who bring a token that says what they may do, write:',
    `  access: { tokens: [{ secret: "\${JWT_SECRET}", algorithms: [${SECRET_ALGORITHM}] }] }`,
  ].join('\n')

/** The `access` section cannot be used. The message names every bad field and its line. */
export class AccessError extends Misconfigured {
  readonly problems: string[]

  constructor(path: string, problems: string[]) {
    super(`Invalid access in ${path}:\n${problems.map(problem => `  ${problem}`).join('\n')}`)
    this.name = 'AccessError'
    this.problems = problems
  }
}

interface Options {
  /** Of keycast.yaml. Key files are named relative to its folder. */
  path: string
  /** Its text, where that was read already. */
  text?: string
  /** Supplies `${NAME}`. */
  env?: NodeJS.ProcessEnv
  /** As GATEWAY_ORIGINS has them. */
  origins: string
  /** Those there are; a pattern that names another is refused. */
  namespaces?: readonly string[]
  profile: Profile
}

/**
 * @returns if the section is absent, a policy that lets nobody in
 * @throws {AccessError}
 */
export function readAccess({ path, text, env, origins, namespaces, profile }: Options): Policy {
  const howTo = howToWrite(namespaces ?? [])
  const refuse = (problems: string[]) => new AccessError(path, problems)
  const { value: file, lineAt } = readYaml(path, refuse, text)
  const { access: written } = (file ?? {}) as { access?: unknown }
  const notes = written === undefined ? [`no "access" in ${path}: nobody gets in. ${howTo}`] : []

  /** @param where below `access` */
  const placeOf = (where: (string | number)[]) => {
    const full = ['access', ...where]
    return `line ${lineAt(full)}: ${full.join('.')}`
  }

  const { value, problems } = substituteVariables(written ?? {}, env, placeOf)
  if (problems.length > 0) throw refuse(problems)
  const schema = createSchema({ folder: dirname(path), origins, namespaces: namespaces && new Set(namespaces) })
  const parsed = schema.safeParse(value)
  if (!parsed.success) throw refuse(parsed.error.issues.flatMap(issue => describe(issue, placeOf)))

  const { maxLifetime, tokens, cookie, accept, ...rules } = parsed.data
  if (profile === 'production') {
    const unaccepted = risks.filter(({ verb, name }) => rules.anonymous[verb].length > 0 && !accept.includes(name))
    const lines = unaccepted.map(({ verb, name }) => `${placeOf(['anonymous', verb])}: ${riskOf(verb, name)}`)
    if (lines.length > 0) throw refuse(lines)
  }
  const { anonymous, everyone } = value as { anonymous?: object | null; everyone?: object | null }
  const policy: Policy = {
    ...rules,
    byRead: grantedByRead.filter(verb => !Object.hasOwn({ ...anonymous, ...everyone }, verb)),
    tokens: tokens.flatMap(({ issuer }) => issuer ?? []),
    cookie: cookie === '' ? undefined : cookie,
    lifetimeMsMax: maxLifetime,
    notes,
  }
  if (written !== undefined) notes.push(...notesOn(policy, tokens, howTo))
  return policy
}

/** @param howTo write what lets somebody in */
function notesOn(
  { anonymous, tokens: issuers }: Policy,
  tokens: { name: string; issuer: TokenIssuer | undefined }[],
  howTo: string,
) {
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

function describe(issue: core.$ZodIssue, placeOf: (where: (string | number)[]) => string): string[] {
  const where = issue.path as (string | number)[]
  if (issue.code === 'unrecognized_keys') {
    return unknownFields(issue).map(({ name, message }) => `${placeOf([...where, name])}: ${message}`)
  }
  return [`${placeOf(where)}: ${issue.message}`]
}

function createSchema({
  folder,
  origins,
  namespaces,
}: {
  folder: string
  origins: string
  namespaces: Set<string> | undefined
}) {
  const text = z.string({ error: 'must be text; in quotes where it looks like something else' })
  // No length by `min` and `max`: zod compares the `length` of whatever it is given, which throws where that is an object.
  const named = text.refine(each => each !== '', { error: 'must not be empty: leave it out instead', abort: true })

  const rule = (user: boolean) =>
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

  const issuer = strictMap(
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
        .refine(prefix => prefix.length <= USER_PREFIX_CHARACTERS_MAX, {
          error: `must have ${USER_PREFIX_CHARACTERS_MAX} characters at most`,
          abort: true,
        })
        .refine(isUser, 'must hold no control characters, and be well-formed Unicode'),
      viewer: z
        .array(
          named.refine(claim => !TOKEN_CLAIMS.includes(claim), 'is another with each token: so would the viewer be'),
          { error: 'must be a list of claims, as in [scope, tenant]' },
        )
        .refine(claims => claims.length <= VIEWER_CLAIMS_MAX, `must be ${VIEWER_CLAIMS_MAX} claims at most`),
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
    .refine(entries => entries.length <= ISSUERS_MAX, `must be ${ISSUERS_MAX} entries at most`)
    .transform((entries, context) => {
      const listed = entries.map((entry, index) => ({ entry, index }))
      for (const { index, message } of prefixProblems(listed.filter(({ entry }) => entry.keys))) {
        context.addIssue({ code: 'custom', message, path: [index, 'prefix'] })
      }
      return listed.map(
        ({
          entry: { jwks, typ: type, issuer, audience, algorithms = [], prefix = '', viewer = VIEWER_CLAIMS, keys },
          index,
        }) => {
          const name = `access.tokens.${index}`
          const issuerOf: TokenIssuer | undefined = keys && {
            name,
            jwks,
            type,
            issuer,
            audience,
            algorithms,
            prefix,
            keys,
            viewer,
          }
          return { name, issuer: issuerOf }
        },
      )
    })

  return strictMap(
    {
      anonymous: rule(false),
      everyone: rule(true),
      claim: named.default('keys'),
      tokens: tokens.default([]),
      cookie: text.default('').superRefine((name, { addIssue }) => {
        const message = name === '' ? undefined : cookieProblem(name, origins)
        if (message) addIssue({ code: 'custom', message })
      }),
      accept: z
        .array(z.enum(risks.map(({ name }) => name)), {
          error: `must be a list of ${risks.map(({ name }) => name).join(', ')}`,
        })
        .default([]),
      maxLifetime: quantity(duration({ minMs: LIFETIME_MS_MIN, maxMs: LIFETIME_MS_MAX })).default(LIFETIME_MS_DEFAULT),
    },
    { error: `must be a map, as in ${anonymousRule([...(namespaces ?? [])])}` },
  )
}
