// Shared by all commands of scripts/: options and --help, exit codes, an output that is cut off.
//
// Exit codes: 0 done, or all is well; 1 tried, and something failed; 2 could not run as asked: wrong options, settings
// or files, which another try does not mend.
import { realpathSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

/**
 * Whether node was told to run this module, also by a path with a space or through a symbolic link.
 *
 * @param {string} url `import.meta.url` of the module
 */
export function isMain(url) {
  try {
    return realpathSync(process.argv[1]) === fileURLToPath(url)
  } catch {
    // Node runs no file: --eval, for instance.
    return false
  }
}

/**
 * Runs a command and ends the process: with the exit code that `run` returns, 0 if it returns none, 2 if it throws.
 *
 * @template {Options} O
 * @param {object} command
 * @param {string} command.name put before an error
 * @param {string} command.usage printed for --help
 * @param {O} [command.options] as `parseArgs` takes them; `help` is added
 * @param {boolean} [command.allowPositionals]
 * @param {(given: Given<O>) => Promise<number | void> | number | void} run
 */
export async function runCommand({ name, usage, options, allowPositionals = false }, run) {
  // A reader such as `head` may close the output early. The command still finishes, and its exit code tells.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {})
  try {
    const help = /** @type {const} */ ({ type: 'boolean', short: 'h' })
    const given = parseArgs({ options: { ...options, help }, allowPositionals })
    if (/** @type {{ help?: boolean }} */ (given.values).help) {
      console.log(usage)
      process.exit(0)
    }
    process.exit((await run(/** @type {any} */ (given))) ?? 0)
  } catch (error) {
    const { message, cause, code } = /** @type {NodeJS.ErrnoException & { cause?: unknown }} */ (error)
    console.error(`${name}: ${message}${cause instanceof Error ? `: ${cause.message}` : ''}`)
    if (code?.startsWith('ERR_PARSE_ARGS_')) console.error(`${name}: --help lists the options`)
    process.exit(2)
  }
}

/**
 * @param {string} name of the option
 * @param {string} text
 * @param {number} least
 */
export function readCount(name, text, least) {
  const count = Number(text)
  if (Number.isInteger(count) && count >= least) return count
  throw new Error(`--${name} ${text}: must be a whole number${least > 0 ? `, ${least} at least` : ''}`)
}

/** @typedef {NonNullable<import('node:util').ParseArgsConfig['options']>} Options */

/**
 * @template {Options} O
 * @typedef {ReturnType<typeof parseArgs<{ options: O, allowPositionals: true }>>} Given
 */
