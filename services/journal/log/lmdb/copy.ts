// Copies of a log in LMDB: a backup of one that may be in use, and a log made from a backup.
import {
  chmodSync,
  closeSync,
  copyFileSync,
  existsSync,
  fsyncSync,
  mkdtempSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
} from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { realWorld } from '@keycast/service'
import { LogRefused } from '../log.ts'
import { checkLogFile, DATA_FILE, giveToOwner, isLock, LMDB_LOCK_FILE, lockFolder } from './folder.ts'
import { openTables } from './layout.ts'
import { lookInto } from './look.ts'

/** Not a log's: leftovers of an ended journal, and what a file system has at its root. */
const EMPTY = new Set([LMDB_LOCK_FILE, 'lost+found'])

/**
 * Writes all of a log into one file that was not there. A journal may go on writing: LMDB copies one state of it.
 *
 * @throws {LogRefused}
 */
export async function backUp(folder: string, file: string) {
  if (existsSync(file)) throw new LogRefused(`${file} is there already: name a new file`)
  const beside = dirname(resolve(file))
  if (!existsSync(beside)) throw new LogRefused(`${beside} is not there: make the folder first`)
  checkLogFile(folder)
  // Written beside the file, then moved into place whole: a file that was cut short would pass for a backup.
  const work = mkdtempSync(join(beside, '.keycast-backup-'))
  try {
    const look = await lookInto(folder)
    try {
      const { env } = openTables(look.folder, { readOnly: true })
      await env.backup(work, true)
      await env.close()
    } finally {
      await look.release()
    }
    await forgetFile(work)
    moveIntoPlace(join(work, DATA_FILE), file)
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}

/**
 * Makes a log of a backup. The journal that opens it begins another epoch.
 *
 * @param folder made where there is none
 * @throws {LogRefused} where a journal has the folder, or there is something in it
 */
export async function restore(file: string, folder: string) {
  checkLogFile(file)
  const isNew = !existsSync(folder)
  const lock = await lockFolder(folder, realWorld)
  try {
    if (isNew) giveToOwner(folder)
    const others = readdirSync(folder).filter(name => !EMPTY.has(name) && !isLock(name))
    if (others.length > 0) {
      throw new LogRefused(`${folder} is not empty: it has ${others.join(', ')}. Move the folder away first`)
    }
    const work = mkdtempSync(join(folder, '.restoring-'))
    try {
      copyFileSync(file, join(work, DATA_FILE))
      await forgetFile(work)
      rmSync(join(folder, LMDB_LOCK_FILE), { force: true })
      moveIntoPlace(join(work, DATA_FILE), join(folder, DATA_FILE))
    } finally {
      rmSync(work, { recursive: true, force: true })
    }
  } finally {
    await lock.release()
  }
}

/**
 * Makes the next journal that opens the log begin another epoch. Another file is not enough: a file system may give a
 * new file the inode of one that was removed.
 */
async function forgetFile(folder: string) {
  const { env, meta } = openTables(folder)
  await meta.remove('inode')
  await env.flushed
  await env.close()
}

/** @param to in the same file system */
function moveIntoPlace(from: string, to: string) {
  chmodSync(from, 0o600)
  sync(from)
  renameSync(from, to)
  giveToOwner(to)
  sync(dirname(resolve(to)))
}

/** @param path of a file or folder */
function sync(path: string) {
  const descriptor = openSync(path, 'r')
  fsyncSync(descriptor)
  closeSync(descriptor)
}
