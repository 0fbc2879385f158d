// pm2 with a folder of its own, and everything it starts known by a mark.
import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { newFolder } from './cleanup.ts'
import { within } from './deadline.ts'
import { ofNode } from './node-process.ts'
import { isAlive, killAtEnd, killNow } from './processes.ts'

export const root = fileURLToPath(new URL('../..', import.meta.url))
const script = join(root, 'node_modules/pm2/bin/pm2')

/**
 * An environment variable that processes inherit, and by which they are known whatever became of those who started them.
 * They do not outlive the test file.
 */
export function createMark() {
  const variable = 'TEST_MARK'
  const value = randomUUID()
  const pids = () => pidsWith(`${variable}=${value}`)
  killAtEnd(() => {
    for (const pid of pids()) killNow(pid)
  })
  return { env: { [variable]: value }, pids }
}

function pidsWith(assignment: string) {
  return readdirSync('/proc')
    .filter(name => {
      if (!/^\d+$/.test(name)) return false
      try {
        return readFileSync(`/proc/${name}/environ`, 'utf8').includes(assignment) && isAlive(Number(name))
      } catch {
        return false // gone since it was listed
      }
    })
    .map(Number)
}

/**
 * pm2 as a person uses it: each call is a command.
 *
 * @param env the environment of every command, and so of the processes it starts
 */
export function createPm2(env: Record<string, string>) {
  const home = newFolder()
  const mark = createMark()

  /** @returns what it printed, once it is done */
  const run = (...args: string[]): Promise<string> => {
    const done = new Promise<string>((resolve, reject) => {
      execFile(
        process.execPath,
        [script, ...args],
        { cwd: root, env: { ...ofNode, HOME: home, PM2_HOME: home, ...mark.env, ...env } },
        (error, stdout, stderr) => {
          if (error) reject(new Error(`pm2 ${args.join(' ')}: ${error.message}\n${stdout}${stderr}`))
          else resolve(stdout)
        },
      )
    })
    return within(done, `pm2 ${args.join(' ')}`)
  }

  return {
    run,
    /** Everything it started, itself included. */
    pids: mark.pids,
    /** @returns the pid of an app */
    async pidOf(name: string): Promise<number> {
      return Number((await run('pid', name)).trim())
    },
  }
}
