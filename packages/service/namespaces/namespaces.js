// keycast.yaml: where each kind of key gets its content, and how fresh it is kept.
import { readFileSync } from 'node:fs'
import { validateHeaderName, validateHeaderValue } from 'node:http'
import { namespaceProblem } from '@keycast/protocol'
import { parseDocument } from 'yaml'
import { z } from 'zod'
import { Misconfigured } from '../misconfigured.js'
import { readDuration, readSize, showSize } from '../quantities.js'
import { readUrlTemplate } from './url-template.js'
import { substitute } from './variables.js'

/**
 * @typedef {object} Namespace
 * @property {string} name
 * @property {'http'} source
 * @property {(id: string) => string} urlFor the URL of an id; throws a RangeError for one that would leave the path
 * @property {string} origin scheme, host and port of every URL of the namespace
 * @property {Record<string, string>} headers sent with each request, names in lower case. Secret: never log them
 * @property {number} maxAgeMs a get is answered from memory up to this age
 * @property {number} refreshMs asked again this often while somebody watches; 0: only when told
 * @property {number} timeoutMs
 * @property {number} bytesMax
 *
 * @typedef {{ get: (name: string) => Namespace | undefined, names: string[] }} Namespaces
 */

/** What is to be kept longer than a day is not what a gateway for live values is for. */
const DURATION_MS_MAX = 24 * 3_600_000

/** Below it the fetcher would ask each key faster than a viewer can see. */
const REFRESH_MS_MIN = 50

/** A value is held whole in every process it passes, several times during a change. */
const BYTES_MAX = 64 * 1_024 ** 2

/** Set by HTTP itself or by the fetcher for its own purposes (RFC 9110 sections 7.6.1, 8.6, 13.1, 14.2). */
const reservedHeaders = new Set(
  `accept-encoding connection content-length expect if-match if-modified-since if-none-match if-range
  if-unmodified-since keep-alive proxy-connection range te trailer transfer-encoding upgrade`.split(/\s+/),
)

/** keycast.yaml cannot be used. The message names every bad field. */
export class NamespacesError extends Misconfigured {
  /** @param {string} path @param {string[]} problems */
  constructor(path, problems) {
    super(`Invalid namespaces in ${path}:\n${problems.map(problem => `  ${problem}`).join('\n')}`)
    this.name = 'NamespacesError'
    this.problems = problems
  }
}

/**
 * @param {object} options
 * @param {string} options.path of keycast.yaml
 * @param {NodeJS.ProcessEnv} [options.env] what `${NAME}` stands for
 * @param {boolean} [options.headers] false: `headers` are not looked at, and are empty. For who asks no backend, and so
 *   needs no credentials of it
 * @returns {Namespaces}
 * @throws {NamespacesError}
 */
export function readNamespaces({ path, env = process.env, headers: withHeaders = true }) {
  const document = withHeaders ? readYaml(path) : withoutHeaders(readYaml(path))
  // Substituted after parsing, so that a variable's value is text whatever it holds, never YAML.
  const { value, problems } = substitute(document, env)
  if (problems.length > 0) throw new NamespacesError(path, problems)
  const parsed = file.safeParse(value)
  if (!parsed.success) throw new NamespacesError(path, parsed.error.issues.flatMap(describe))

  const namespaces = new Map(
    Object.entries(parsed.data.namespaces).map(([name, { url, headers, maxAge, refresh, timeout, maxBytes }]) => {
      /** @type {Namespace} */
      const namespace = {
        name,
        source: 'http',
        ...url,
        headers,
        maxAgeMs: maxAge,
        refreshMs: refresh,
        timeoutMs: timeout,
        bytesMax: maxBytes,
      }
      return [name, namespace]
    }),
  )
  return { get: name => namespaces.get(name), names: [...namespaces.keys()] }
}

/** @param {string} path @returns {unknown} */
function readYaml(path) {
  let text
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    throw new NamespacesError(path, [`cannot be read: ${/** @type {NodeJS.ErrnoException} */ (error).code}`])
  }
  const document = parseDocument(text)
  const faults = [...document.errors, ...document.warnings]
  // The first line says what and where; those after it show the text, which may hold a secret.
  if (faults.length > 0)
    throw new NamespacesError(
      path,
      faults.map(({ message }) => message.split('\n')[0]),
    )
  try {
    return document.toJS()
  } catch (error) {
    // An alias without its anchor is only found here.
    throw new NamespacesError(path, [/** @type {Error} */ (error).message])
  }
}

/** @param {unknown} document not yet checked */
function withoutHeaders(document) {
  const { namespaces } = /** @type {{ namespaces?: Record<string, unknown> }} */ (document ?? {})
  for (const namespace of Object.values(namespaces ?? {})) {
    if (typeof namespace === 'object' && namespace !== null && 'headers' in namespace) delete namespace.headers
  }
  return document
}

/** @param {number} minMs @param {string} [zero] what 0 means, where it means something special */
const duration = (minMs, zero) => {
  const error = `must be a duration, as in 500ms or 1s: ${zero ? `0 (${zero}) or ` : ''}${minMs}ms to 24h`
  return z
    .union([z.string(), z.number()], { error })
    .transform(written => readDuration(String(written), { bareMs: false }))
    .refine(ms => (zero !== undefined && ms === 0) || (ms >= minMs && ms <= DURATION_MS_MAX), { error })
}

const sizeError = `must be a size, as in 64KiB or 4MiB: 1 to ${showSize(BYTES_MAX)}`
const size = z
  .union([z.string(), z.number()], { error: sizeError })
  .transform(written => readSize(String(written)))
  .refine(bytes => bytes >= 1 && bytes <= BYTES_MAX, { error: sizeError })

const url = z.string({ error: 'must be a URL' }).transform((template, context) => {
  const read = readUrlTemplate(template)
  if ('problem' in read) {
    context.addIssue(read.problem)
    return z.NEVER
  }
  return read
})

const headers = z
  .record(z.string(), z.union([z.string(), z.number()], { error: 'must be text' }), {
    error: 'must be a map of headers',
  })
  .transform((written, context) => {
    /** @type {Map<string, string>} */
    const read = new Map()
    for (const [name, value] of Object.entries(written)) {
      const lower = name.toLowerCase()
      const problem = read.has(lower) ? 'is given twice' : headerProblem(lower, String(value))
      if (problem) context.addIssue({ code: 'custom', message: problem, path: [name] })
      read.set(lower, String(value))
    }
    const sent = [...read].filter(([, value]) => !isEmptyHeader(value)).map(([name, value]) => [name, value.trim()])
    return /** @type {Record<string, string>} */ (Object.fromEntries(sent))
  })

const namespace = z.strictObject(
  {
    source: z.literal('http', {
      error: ({ input }) =>
        input === 'journal' ? 'journal is not yet supported: the only source is http' : 'must be http',
    }),
    url,
    headers: headers.default({}),
    maxAge: duration(0).default(1_000),
    refresh: duration(REFRESH_MS_MIN, 'only when told').default(1_000),
    timeout: duration(1).default(2_000),
    maxBytes: size.default(4 * 1_024 ** 2),
  },
  { error: 'must be a map with source and url' },
)

const file = z.strictObject(
  {
    namespaces: z
      .record(
        z.string().superRefine((name, context) => {
          const problem = namespaceProblem(name)
          if (problem) context.addIssue(problem)
        }),
        namespace,
        { error: 'must map names to namespaces' },
      )
      .refine(named => Object.keys(named).length > 0, 'must name at least one namespace'),
  },
  { error: 'must be a map with the field "namespaces"' },
)

/** @param {string} name in lower case @param {string} value */
function headerProblem(name, value) {
  if (reservedHeaders.has(name)) return 'is set by Keycast itself'
  try {
    validateHeaderName(name)
  } catch {
    return 'is no header name (RFC 9110 section 5.1)'
  }
  try {
    validateHeaderValue(name, value.trim())
  } catch {
    return 'has a value that no header may have (RFC 9110 section 5.5)'
  }
  return undefined
}

/** Nothing at all, or a scheme whose credentials came out empty: `Bearer ${BACKEND_TOKEN:-}`. @param {string} value */
function isEmptyHeader(value) {
  return value.trim() === '' || /^\S+\s+$/.test(value)
}

/** @param {import('zod').core.$ZodIssue} issue @returns {string[]} */
function describe(issue) {
  const where = issue.path.map(String)
  if (issue.code === 'unrecognized_keys') return issue.keys.map(key => `${[...where, key].join('.')}: unknown field`)
  if (issue.code === 'invalid_key') return [`${where.join('.')}: ${issue.issues[0].message}`]
  return [`${where.join('.') || 'the file'}: ${issue.message}`]
}
