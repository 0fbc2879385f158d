// Programs of the machine, or of packages, that tests drive: started, awaited until they answer, ended with the file.
import { type SpawnOptions, spawn } from 'node:child_process'
import { atEnd } from './cleanup.ts'
import { eventually, within } from './deadline.ts'
import { killAtEnd, killNow } from './processes.ts'

/** What is shown of a log where a program does not start. */
const SAID_MAX = 4_000

/**
 * @param isReady asked until it is, given what the program has said so far
 * @param endWith the signal that ends it in order
 */
export async function startTool(
  command: string,
  args: string[],
  isReady: (said: string) => boolean | Promise<boolean>,
  { endWith = 'SIGTERM', ...options }: SpawnOptions & { endWith?: NodeJS.Signals } = {},
) {
  const child = spawn(command, args, { ...options, stdio: ['ignore', 'ignore', 'pipe'] })
  let said = ''
  child.stderr?.on('data', chunk => {
    said += chunk
  })
  const ended = new Promise<never>((_, reject) => {
    child.once('error', error => reject(new Error(`${command} does not start, is it installed? ${error.message}`)))
    child.once('exit', code => reject(new Error(`${command} ended with ${code}:\n${said.slice(-SAID_MAX)}`)))
  })
  ended.catch(() => {}) // read below while it starts, and no failure afterwards
  const isGone = () => child.pid === undefined || child.exitCode !== null || child.signalCode !== null
  killAtEnd(() => isGone() || killNow(child.pid as number))
  atEnd(async () => {
    if (isGone()) return
    child.kill(endWith)
    await within(ended, `the end of ${command}`).catch(() => {})
  })
  await Promise.race([eventually(() => isReady(said), `${command} getting ready`), ended])
}

/** Whether a server answers at a URL. */
export const answersAt = (url: string, wanted = 200) =>
  fetch(url).then(
    async response => {
      await response.body?.cancel()
      return response.status === wanted
    },
    () => false,
  )
