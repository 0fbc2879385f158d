// Environment variables, each of which may lie in a file instead: NAME_FILE is the path of a file that holds NAME.
import { readFileSync } from 'node:fs'

/** Editors and `echo` end a file with a line break that is no part of its content. */
export const withoutLineBreak = (text: string) => text.replace(/\r?\n$/, '')

/** @returns neither if the variable is unset or empty */
export function readVariable(env: NodeJS.ProcessEnv, name: string): { text?: string; problem?: string } {
  const text = env[name] || undefined
  const path = env[`${name}_FILE`]
  if (!path) return { text }
  if (text !== undefined) return { problem: `${name} and ${name}_FILE are both set: unset one` }
  try {
    return { text: withoutLineBreak(readFileSync(path, 'utf8')) }
  } catch (error) {
    return { problem: `${name}_FILE=${path}: cannot be read (${(error as NodeJS.ErrnoException).code})` }
  }
}
