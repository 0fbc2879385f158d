// Environment variables in keycast.yaml: `${NAME}` and `${NAME:-default}`.
import { readVariable } from '../environment.ts'

const reference = /\$\{([^}]*)\}/g
const grammar = /^([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?$/s

/**
 * Puts the environment's values in place of `${NAME}` in every text of a document; `${NAME:-default}` falls back where
 * the variable is unset or empty, as in a shell. As with secret settings, NAME_FILE is the path of a file that holds
 * what NAME stands for. Names of fields are left as they are.
 *
 * @param placeOf names a field in a problem
 * @returns a problem per reference that cannot be resolved, naming field and variable
 */
export function substituteVariables(
  document: unknown,
  env: NodeJS.ProcessEnv = process.env,
  placeOf: (path: string[]) => string = path => path.join('.'),
): { value: unknown; problems: string[] } {
  const problems: string[] = []

  const walk = (value: unknown, path: string[]): unknown => {
    if (typeof value === 'string') {
      return value.replace(reference, (whole, inner) => {
        const [, name, fallback] = grammar.exec(inner) ?? []
        if (name === undefined) {
          problems.push(`${placeOf(path)}: ${whole} is not \${NAME} or \${NAME:-default}`)
          return ''
        }
        const { text = fallback, problem } = readVariable(env, name)
        if (problem) problems.push(`${placeOf(path)}: ${problem}`)
        else if (text !== undefined) return text
        else if (env[name] === undefined) {
          problems.push(`${placeOf(path)}: the environment variable ${name} is not set, and there is no default`)
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
