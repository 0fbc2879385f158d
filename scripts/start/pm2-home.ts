// The folder of our own pm2, and which npm start uses it. A pm2 that the user runs has another folder and is never touched.
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** pm2's sockets lie in its folder, and a socket's path ends at 103 characters on macOS, 107 on Linux. */
const SOCKET_PATH_CHARACTERS_MAX = 103
const LONGEST_SOCKET_NAME = 'interactor.sock'

interface Options {
  /** By the user, or empty. */
  given: string
  repository: string
  /** Folder for temporary files, with a short path. */
  temporary: string
}

export function homeFor({ given, repository, temporary }: Options) {
  if (given) return given
  const beside = join(repository, '.pm2')
  if (fitsSockets(beside)) return beside
  const name = createHash('sha256').update(repository).digest('hex').slice(0, 12)
  return join(temporary, `keycast-${name}`)
}

export function fitsSockets(home: string) {
  return join(home, LONGEST_SOCKET_NAME).length <= SOCKET_PATH_CHARACTERS_MAX
}

/**
 * Environment variable of the daemon and of everything it starts. It names the folder, and marks them as ours whatever
 * became of their parents.
 */
export const MARK = 'KEYCAST_PM2_HOME'

/**
 * Whether a system runs there, was left there by an npm start that was killed, or neither.
 *
 * @returns processes that are alive; `left`: those of an abandoned system
 */
export function inspect(home: string): {
  daemon: number | undefined
  starter: number | undefined
  abandoned: boolean
  left: number[]
} {
  const starter = claimant(home)
  const abandoned = starter !== undefined && !isAlive(starter)
  const daemon = aliveOr(readPid(join(home, 'pm2.pid')))
  return { daemon, starter: aliveOr(starter), abandoned, left: abandoned ? marked(home) : [] }
}

/** Whether a process that claimed a folder is an npm start: after a reboot another may have its pid. */
export function isStart(pid: number) {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('scripts/start.js')
  } catch {
    return false
  }
}

/** Notes that this process runs a system there. */
export function claim(home: string) {
  mkdirSync(home, { recursive: true, mode: 0o700 })
  // The daemon's log of earlier runs, which would grow without bound.
  rmSync(join(home, 'pm2.log'), { force: true })
  writeFileSync(join(home, 'starter.pid'), `${process.pid}\n`)
}

/** The process that claimed the folder and did not release it, whether or not it is alive. */
export function claimant(home: string) {
  return readPid(join(home, 'starter.pid'))
}

export function release(home: string) {
  rmSync(join(home, 'starter.pid'), { force: true })
}

/** Whether marked processes can be found: only Linux shows the environment of a process as a file. */
export const canLook = existsSync('/proc/self/environ')

/** Processes that carry the mark of a folder; none on systems other than Linux. */
export function marked(home: string) {
  if (!canLook) return []
  const mark = `\0${MARK}=${home}\0`
  return readdirSync('/proc')
    .filter(name => /^\d+$/.test(name) && environmentOf(name).includes(mark))
    .map(Number)
    .filter(pid => pid !== process.pid && isAlive(pid))
}

function environmentOf(pid: string) {
  try {
    return `\0${readFileSync(`/proc/${pid}/environ`, 'utf8')}\0`
  } catch {
    return '' // another user's, or gone since it was listed
  }
}

function aliveOr(pid: number | undefined) {
  return isAlive(pid) ? pid : undefined
}

export function isAlive(pid: number | undefined) {
  if (pid === undefined) return false
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    // Another user's process: alive.
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

function readPid(path: string) {
  try {
    const pid = Number(readFileSync(path, 'utf8').trim())
    return Number.isInteger(pid) && pid > 1 ? pid : undefined
  } catch {
    return undefined
  }
}
