// How the scripts of this folder are used: options and --help, exit codes, an output that is cut off.
import { realpathSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

/**
 * Whether a module is what node was told to run, by whatever path: one with a space, one through a symbolic link.
 *
 * @param {string} url `import.meta.url` of the module
 */
export function isMain(url) {
  try {
    return realpathSync(process.argv[1]) === fileURLToPath(url)
  } catch {
    // Not run from a file.
    return false
  }
}

/**
 * Runs a script and ends the process: with what `run` gives (0 where that is nothing), with 2 where it was used wrongly
 * or throws.
 *
 * @template {Options} O
 * @param {object} command
 * @param {string} command.name put before what goes wrong
 * @param {string} command.usage printed for --help
 * @param {O} [command.options] as `parseArgs` takes them; `help` is added
 * @param {boolean} [command.allowPositionals]
 * @param {(given: Given<O>) => Promise<number | void> | number | void} run
 */
export async function runCommand({ name, usage, options, allowPositionals = false }, run) {
  // Whoever reads may have read enough, as `head` does: what is still to be done is done, and the exit code tells.
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
    const { message, cause } = /** @type {Error} */ (error)
    console.error(`${name}: ${message}${cause instanceof Error ? `: ${cause.message}` : ''}`)
    process.exit(2)
  }
}

/** @typedef {NonNullable<import('node:util').ParseArgsConfig['options']>} Options */

/**
 * @template {Options} O
 * @typedef {ReturnType<typeof parseArgs<{ options: O, allowPositionals: true }>>} Given
 */
