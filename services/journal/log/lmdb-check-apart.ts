// Checks a log in a process of its own: LMDB maps the file, and a damaged page can end the process that reads it.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { checkLogFile, folderOf } from './folder.ts'
import { checkTables } from './lmdb-check.ts'
import { openTables } from './lmdb-layout.ts'
import { LogMissing, LogRefused } from './log.ts'

/** @typedef {import('./lmdb-check.ts').Report} Report */

const file = fileURLToPath(import.meta.url)

/**
 * @param {string} path of a log's folder, which a journal may have open, or of a backup
 * @returns {Promise<Report>}
 * @throws {LogMissing}
 */
export async function checkLog(path) {
  try {
    checkLogFile(path)
  } catch (error) {
    if (error instanceof LogMissing || !(error instanceof LogRefused)) throw error
    return withProblem(error.message)
  }
  const { folder, release } = folderOf(path)
  try {
    const child = fork(file, [folder], { stdio: ['ignore', 'ignore', 'pipe', 'ipc'], execArgv: [] })
    let said = ''
    child.stderr?.on('data', chunk => {
      said += chunk
    })
    /** @type {Report | undefined} */
    let report
    child.once('message', message => {
      report = /** @type {Report} */ (message)
    })
    const [code, signal] = await once(child, 'close')
    if (report) return report
    const end = signal ? `by ${signal}` : `with ${code}`
    return withProblem(`reading it ended a process ${end}${said ? `: ${said.trim().split('\n')[0]}` : ''}`)
  } finally {
    release()
  }
}

/** @param {string} problem @returns {Report} */
const withProblem = problem => ({ rooms: 0, messages: 0, bytes: 0, problems: [problem], more: 0 })

if (process.send && process.argv[1] === file) {
  const tables = openTables(process.argv[2], { readOnly: true })
  const report = tables.rooms ? checkTables(tables) : withProblem('it has none of the tables of a log')
  process.send(report, () => process.exit(0))
}
