// The folder of our own pm2, and which npm start uses it. A pm2 that the user runs has another folder and is never touched.
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** pm2's sockets lie in its folder, and a socket's path ends at 103 characters on macOS, 107 on Linux. */
const SOCKET_PATH_CHARACTERS_MAX = 103
const LONGEST_SOCKET_NAME = 'interactor.sock'

/**
 * @param {object} options
 * @param {string} options.given by the user, or empty
 * @param {string} options.repository
 * @param {string} options.temporary folder for temporary files, with a short path
 */
export function homeFor({ given, repository, temporary }) {
  if (given) return given
  const beside = join(repository, '.pm2')
  if (fitsSockets(beside)) return beside
  const name = createHash('sha256').update(repository).digest('hex').slice(0, 12)
  return join(temporary, `keycast-${name}`)
}

/** @param {string} home */
export function fitsSockets(home) {
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
 * @param {string} home
 * @returns {{ daemon: number | undefined, starter: number | undefined, abandoned: boolean, left: number[] }} processes
 *   that are alive; `left`: those of an abandoned system
 */
export function inspect(home) {
  const starter = claimant(home)
  const abandoned = starter !== undefined && !isAlive(starter)
  const daemon = aliveOr(readPid(join(home, 'pm2.pid')))
  return { daemon, starter: aliveOr(starter), abandoned, left: abandoned ? marked(home) : [] }
}

/** Notes that this process runs a system there. @param {string} home */
export function claim(home) {
  mkdirSync(home, { recursive: true, mode: 0o700 })
  // The daemon's log of earlier runs, which would grow without bound.
  rmSync(join(home, 'pm2.log'), { force: true })
  writeFileSync(join(home, 'starter.pid'), `${process.pid}\n`)
}

/** The process that claimed the folder and did not release it, whether or not it is alive. @param {string} home */
export function claimant(home) {
  return readPid(join(home, 'starter.pid'))
}

/** @param {string} home */
export function release(home) {
  rmSync(join(home, 'starter.pid'), { force: true })
}

/** Whether marked processes can be found: only Linux shows the environment of a process as a file. */
export const canLook = existsSync('/proc/self/environ')

/**
 * Processes that carry the mark of a folder; none on systems other than Linux.
 *
 * @param {string} home
 */
export function marked(home) {
  if (!canLook) return []
  const mark = `\0${MARK}=${home}\0`
  return readdirSync('/proc')
    .filter(name => /^\d+$/.test(name) && environmentOf(name).includes(mark))
    .map(Number)
    .filter(pid => pid !== process.pid && isAlive(pid))
}

/** @param {string} pid */
function environmentOf(pid) {
  try {
    return `\0${readFileSync(`/proc/${pid}/environ`, 'utf8')}\0`
  } catch {
    return '' // another user's, or gone since it was listed
  }
}

/** @param {number | undefined} pid */
function aliveOr(pid) {
  return isAlive(pid) ? pid : undefined
}

/** @param {number | undefined} pid */
export function isAlive(pid) {
  if (pid === undefined) return false
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    // Another user's process: alive.
    return /** @type {NodeJS.ErrnoException} */ (error).code === 'EPERM'
  }
}

/** @param {string} path */
function readPid(path) {
  try {
    const pid = Number(readFileSync(path, 'utf8').trim())
    return Number.isInteger(pid) && pid > 1 ? pid : undefined
  } catch {
    return undefined
  }
}
