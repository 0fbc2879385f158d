// Shared by the verbs of the keycast command and by the scripts of scripts/: options and --help, exit codes, an output that
// is cut off.
//
// Exit codes: 0 done, or all is well; 1 tried, and something failed; 2 could not run as asked: wrong options, settings
// or files, which another try does not mend.
import { realpathSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { type ParseArgsConfig, parseArgs } from 'node:util'

/**
 * Whether node was told to run this module, or the .js file beside it that starts it; also by a path with a space or
 * through a symbolic link.
 *
 * @param url `import.meta.url` of the module
 */
export function isMain(url: string) {
  try {
    return realpathSync(process.argv[1]).replace(/\.js$/, '.ts') === fileURLToPath(url)
  } catch {
    // Node runs no file: --eval, for instance.
    return false
  }
}

interface Command<O extends Options> {
  /** Put before an error. */
  name: string
  /** Printed for --help. */
  usage: string
  /** As `parseArgs` takes them; `help` is added. */
  options?: O
  allowPositionals?: boolean
}

/**
 * Runs a command and ends the process: with the exit code that `run` returns, 0 if it returns none, 2 if it throws.
 *
 * @param args behind the command's name
 */
export async function runCommand<O extends Options>(
  { name, usage, options, allowPositionals = false }: Command<O>,
  run: (given: Given<O>) => Promise<number | undefined> | number | undefined,
  args: string[] = process.argv.slice(2),
): Promise<never> {
  // A reader such as `head` may close the output early. The command still finishes, and its exit code tells.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {})
  try {
    const help = { type: 'boolean', short: 'h' } as const
    const given = parseArgs({ args, options: { ...options, help }, allowPositionals })
    if ((given.values as { help?: boolean }).help) {
      console.log(usage)
      process.exit(0)
    }
    return process.exit((await run(given as unknown as Given<O>)) ?? 0)
  } catch (error) {
    const { message, cause, code } = error as NodeJS.ErrnoException & { cause?: unknown }
    console.error(`${name}: ${message}${cause instanceof Error ? `: ${cause.message}` : ''}`)
    if (code?.startsWith('ERR_PARSE_ARGS_')) console.error(`${name}: --help lists the options`)
    return process.exit(2)
  }
}

/** @param name of the option */
export function readCount(name: string, text: string, least: number) {
  const count = Number(text)
  if (Number.isInteger(count) && count >= least) return count
  throw new Error(`--${name} ${text}: must be a whole number${least > 0 ? `, ${least} at least` : ''}`)
}

type Options = NonNullable<ParseArgsConfig['options']>

export type Given<O extends Options> = ReturnType<typeof parseArgs<{ options: O; allowPositionals: true }>>
