// Looks into a log beside the journal that may write it: docs/decisions/0043-a-log-is-looked-into-beside-its-lock.md.
import { closeSync, constants, mkdtempSync, openSync, readdirSync, rmSync, statSync, symlinkSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { realWorld } from '@keycast/service'
import { LogInUse } from '../log.ts'
import { DATA_FILE, isLock, lockFolder } from './folder.ts'

/** A journal that does not answer within this time stands still. */
const HOLD_MS = 10_000

/**
 * The folder to look into a log in: another one, with a link to the log, so that LMDB's lock file is another one, too. Who
 * opens a log writes into that file which commit is the last, as LMDB read it a moment before. A journal that committed
 * since would build its next batch on the older commit, and an acknowledged batch would be lost.
 *
 * Until it is released nothing is overwritten: whoever has the log's folder sees to that, or nobody else can take it.
 *
 * @param path of a log's folder, or of a backup
 * @throws {LogInUse}
 */
export async function lookInto(path: string): Promise<{ folder: string; release: () => Promise<void> }> {
  const isFolder = statSync(path).isDirectory()
  const { release } = isFolder ? await holdFolder(path) : { release: async () => {} }
  const folder = mkdtempSync(join(tmpdir(), 'keycast-log-'))
  symlinkSync(resolve(isFolder ? join(path, DATA_FILE) : path), join(folder, DATA_FILE))
  return {
    folder,
    release() {
      rmSync(folder, { recursive: true, force: true })
      return release()
    },
  }
}

async function holdFolder(folder: string) {
  try {
    return await lockFolder(folder, realWorld)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EROFS') return { release: async () => {} } // nobody writes there
    if (!(error instanceof LogInUse)) throw error
  }
  const directory = openSync(folder, constants.O_RDONLY | constants.O_DIRECTORY)
  const path = `/proc/self/fd/${directory}`
  const answers = await Promise.all(
    readdirSync(path)
      .filter(isLock)
      .map(name => askToHold(join(path, name))),
  )
  closeSync(directory)
  const holders = answers.filter(socket => socket !== undefined)
  if (holders.length === 0) throw new LogInUse(`${folder}: the journal there does not answer. Try again`)
  return {
    /** @throws {LogInUse} where what was read may be of two states */
    async release() {
      const isHeld = holders.some(socket => !socket.destroyed)
      for (const socket of holders) socket.destroy()
      if (!isHeld) throw new LogInUse(`${folder}: the journal there ended meanwhile. Try again`)
    },
  }
}

/** @returns a connection: while it is open the log is held */
function askToHold(path: string): Promise<Socket | undefined> {
  return new Promise(resolve => {
    const socket = connect(path, () => socket.write('hold'))
    socket.setTimeout(HOLD_MS, () => socket.destroy())
    socket.once('data', () => {
      socket.setTimeout(0)
      resolve(socket)
    })
    socket.on('error', () => {})
    socket.once('close', () => resolve(undefined))
  })
}
