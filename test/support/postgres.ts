// A PostgreSQL of a test's own: a cluster in a temporary folder, reached by a Unix socket alone.
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { atEnd, newFolder } from './cleanup.ts'
import { within } from './deadline.ts'
import { startTool } from './tool.ts'

const RELEASES = '/usr/lib/postgresql'

/** Enough for one test: memory that is not touched, and no process that works now and then. */
const SETTINGS = ['shared_buffers=16MB', 'max_connections=20', 'autovacuum=off', 'listen_addresses=']

export async function startPostgres() {
  const release = readdirSync(RELEASES).sort((a, b) => Number(b) - Number(a))[0]
  const program = (name: string) => join(RELEASES, release, 'bin', name)
  const folder = newFolder()
  const owner = ownerOf(folder)
  const data = join(folder, 'data')
  const init = ['-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--no-locale', '--no-sync']
  execFileSync(program('initdb'), init, { ...owner, cwd: folder, stdio: 'pipe' })

  const settings = SETTINGS.flatMap(setting => ['-c', setting])
  const isReady = (said: string) => said.includes('ready to accept connections')
  // SIGINT has it close its clients' connections, not wait for them.
  await startTool(program('postgres'), ['-D', data, '-k', folder, ...settings], isReady, {
    ...owner,
    cwd: folder,
    endWith: 'SIGINT',
  })
  return { env: { PGHOST: folder, PGUSER: 'postgres' }, run: createSession(program('psql'), folder) }
}

/** PostgreSQL does not run as root: then it runs as the user that its package made. */
function ownerOf(folder: string) {
  if (process.getuid?.() !== 0) return {}
  const idOf = (option: string) => Number(execFileSync('id', [option, 'postgres']))
  const owner = { uid: idOf('-u'), gid: idOf('-g') }
  chownSync(folder, owner.uid, owner.gid)
  return owner
}

/** @returns runs SQL, one text after the other */
function createSession(psql: string, folder: string) {
  const child = spawn(psql, ['-h', folder, '-U', 'postgres', '-XqAt', '-v', 'ON_ERROR_STOP=1'])
  atEnd(() => child.kill('SIGKILL'))
  let said = ''
  child.stderr.on('data', chunk => {
    said += chunk
  })
  const ended = once(child, 'close').then(() => Promise.reject(new Error(`psql: ${said}`)))
  ended.catch(() => {})
  const lines = createInterface(child.stdout)
  return async (sql: string) => {
    const done = once(lines, 'line')
    child.stdin.write(`${sql};\n\\echo done\n`)
    await within(Promise.race([done, ended]), `the end of ${sql.slice(0, 80)}`)
  }
}
