// `${NAME}` and `${NAME:-default}` in keycast.yaml.
import { readFileSync } from 'node:fs'

const reference = /\$\{([^}]*)\}/g
const grammar = /^([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?$/s

/**
 * Puts the environment's values in place of `${NAME}` in every text of a document; `${NAME:-default}` falls back where
 * the variable is unset or empty, as in a shell. As with secret settings, NAME_FILE is the path of a file that holds
 * what NAME stands for. Names of fields are left as they are.
 *
 * @param {unknown} document
 * @param {NodeJS.ProcessEnv} env
 * @returns {{ value: unknown, problems: string[] }} a problem per reference that cannot be resolved, naming field and variable
 */
export function substitute(document, env) {
  /** @type {string[]} */
  const problems = []

  /** @param {unknown} value @param {string[]} path @returns {unknown} */
  const walk = (value, path) => {
    if (typeof value === 'string') {
      return value.replace(reference, (whole, inner) => {
        const [, name, fallback] = grammar.exec(inner) ?? []
        if (name === undefined) {
          problems.push(`${path.join('.')}: ${whole} is not \${NAME} or \${NAME:-default}`)
          return ''
        }
        const { text = fallback, problem } = textOf(name, env)
        if (problem) problems.push(`${path.join('.')}: ${problem}`)
        else if (text !== undefined) return text
        else if (env[name] === undefined) {
          problems.push(`${path.join('.')}: the environment variable ${name} is not set, and no default is given`)
        }
        return ''
      })
    }
    if (Array.isArray(value)) return value.map((item, index) => walk(item, [...path, String(index)]))
    if (typeof value === 'object' && value !== null) {
      return Object.fromEntries(Object.entries(value).map(([name, held]) => [name, walk(held, [...path, name])]))
    }
    return value
  }

  return { value: walk(document, []), problems }
}

/**
 * @param {string} name
 * @param {NodeJS.ProcessEnv} env
 * @returns {{ text?: string, problem?: string }} neither where the variable is unset or empty
 */
function textOf(name, env) {
  const text = env[name] || undefined
  const path = env[`${name}_FILE`]
  if (!path) return { text }
  if (text !== undefined) return { problem: `${name} and ${name}_FILE are both set: unset one` }
  try {
    // Editors and `echo` end a file with a newline that is no part of what it holds.
    return { text: readFileSync(path, 'utf8').replace(/\r?\n$/, '') }
  } catch (error) {
    return { problem: `${name}_FILE=${path}: ${/** @type {NodeJS.ErrnoException} */ (error).code}, cannot be read` }
  }
}
