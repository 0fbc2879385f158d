// Checks a log in a process of its own: LMDB maps the file, and a damaged page can end the process that reads it.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { LogMissing, LogRefused } from '../log.ts'
import { checkTables, type Report } from './check.ts'
import { checkLogFile } from './folder.ts'
import { openTables } from './layout.ts'
import { lookInto } from './look.ts'

const file = fileURLToPath(import.meta.url)

/**
 * @param path of a log's folder, which a journal may have open, or of a backup
 * @throws {LogMissing}
 */
export async function checkLog(path: string): Promise<Report> {
  try {
    checkLogFile(path)
  } catch (error) {
    if (error instanceof LogMissing || !(error instanceof LogRefused)) throw error
    return withProblem(error.message)
  }
  const { folder, release } = await lookInto(path)
  try {
    const child = fork(file, [folder], { stdio: ['ignore', 'ignore', 'pipe', 'ipc'], execArgv: [] })
    let said = ''
    child.stderr?.on('data', chunk => {
      said += chunk
    })
    let report: Report | undefined
    child.once('message', message => {
      report = message as Report
    })
    const [code, signal] = await once(child, 'close')
    if (report) return report
    const end = signal ? `by ${signal}` : `with ${code}`
    return withProblem(`reading it ended a process ${end}${said ? `: ${said.trim().split('\n')[0]}` : ''}`)
  } finally {
    await release()
  }
}

const withProblem = (problem: string): Report => ({ rooms: 0, messages: 0, bytes: 0, problems: [problem], more: 0 })

if (process.send && process.argv[1] === file) {
  const tables = openTables(process.argv[2], { readOnly: true })
  const report = tables.rooms ? checkTables(tables) : withProblem('it has none of the tables of a log')
  process.send(report, () => process.exit(0))
}
