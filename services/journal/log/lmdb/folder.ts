// The folder of an embedded log: one process at a time, and files that were not cut short.
import {
  chownSync,
  closeSync,
  constants,
  existsSync,
  fstatSync,
  linkSync,
  mkdirSync,
  openSync,
  readdirSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { basename, dirname, join, resolve } from 'node:path'
import type { World } from '@keycast/service'
import { LogInUse, LogMissing, LogRefused } from '../log.ts'

/** LMDB's names. */
export const DATA_FILE = 'data.mdb'
export const LMDB_LOCK_FILE = 'lock.mdb'

/** Sockets, not files with a process id: the kernel knows whether their owners live, also in another container. */
const LOCK_NAME = /^lock\..*socket/
const STARTING = '.starting'

/** @param name of a file in a log's folder */
export const isLock = (name: string) => LOCK_NAME.test(name)

/** Processes that start at the same moment come to an end with each other within this time. */
const CONTEND_MS = 10_000
const ASK_AGAIN_MS = 10

/**
 * Takes the folder for this process until released. It is made where there is none.
 *
 * Each process first listens on a socket of its own there, then looks for others that live: of two, one sees the other
 * at least. A socket that all shared would have to be removed after a crash, and with it goes the one that another
 * process just made.
 *
 * @param hold keeps all that can be read as it is, for a process that looks into the log; gives what ends that, or
 *   `undefined` where the log is not open
 * @throws {LogInUse}
 */
export async function lockFolder(
  folder: string,
  { now, wallNow, after, randomBytes }: World,
  hold: () => (() => void) | undefined = () => () => {},
): Promise<{ release: () => Promise<void> }> {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  // By way of an open directory: the path of a socket may have 107 bytes, a folder's any number.
  const directory = openSync(folder, constants.O_RDONLY | constants.O_DIRECTORY)
  const path = `/proc/self/fd/${directory}`
  // A process that came earlier goes first. Where a clock was set back, the later one waits in vain, and gives up.
  const id = randomBytes(6).toString('hex')
  const own = `lock.${wallNow()}-${id}.socket`
  // Goes before all: one that came earlier and looks later is told at once, and does not wait for this one to leave.
  const held = `lock.-${id}.socket`
  const visitors = new Set<Socket>()
  // A process that wants the folder only looks whether somebody listens. One that looks into the log (look.ts) sends bytes.
  const server = createServer(socket => {
    visitors.add(socket)
    let letGo: (() => void) | undefined
    socket.once('data', () => {
      letGo = hold()
      if (letGo) socket.write('held')
      else socket.destroy()
    })
    socket.on('error', () => {}) // it is gone
    socket.once('close', () => {
      visitors.delete(socket)
      letGo?.()
    })
  })
  const release = async () => {
    rmSync(join(path, held), { force: true })
    rmSync(join(path, own), { force: true })
    for (const socket of visitors) socket.destroy()
    if (server.listening) await new Promise(resolve => server.close(resolve))
    closeSync(directory)
  }
  try {
    // Others see it once it listens: before, it would be as that of a process that is gone, and they would remove it.
    const starting = join(path, `${own}${STARTING}`)
    await listen(server, starting)
    giveToOwner(starting) // who may not connect could not tell that a process that root started is gone
    renameSync(starting, join(path, own))
    for (const startedAt = now(); ; await new Promise<void>(resolve => after(ASK_AGAIN_MS, resolve))) {
      const { living, dead } = await othersIn(path, own)
      if (living.length === 0) {
        for (const name of dead) rmSync(join(path, name), { force: true })
        // A second name of the socket. With a change of its name others could look while it has none.
        linkSync(join(path, own), join(path, held))
        break
      }
      if (living.some(name => name < own) || now() - startedAt > CONTEND_MS) {
        throw new LogInUse(`${folder} is in use by another journal: only one process may have it`)
      }
    }
  } catch (error) {
    await release()
    throw error
  }
  server.unref()
  return { release }
}

async function othersIn(folder: string, own: string) {
  const names = readdirSync(folder).filter(name => isLock(name) && !name.endsWith(STARTING) && name !== own)
  const isLiving = await Promise.all(names.map(name => isTaken(join(folder, name))))
  return { living: names.filter((_, index) => isLiving[index]), dead: names.filter((_, index) => !isLiving[index]) }
}

function listen(server: Server, path: string) {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(path, () => resolve(undefined))
  })
}

/** Nobody listens: the process that did is gone. */
const FREE_CODES = new Set(['ECONNREFUSED', 'ENOENT'])

/**
 * @param path of a socket
 * @returns true also where it cannot be known: e.g. of a process too busy to answer
 */
function isTaken(path: string): Promise<boolean> {
  return new Promise(resolve => {
    const socket = connect(path)
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', error => resolve(!FREE_CODES.has((error as NodeJS.ErrnoException).code ?? '')))
  })
}

// LMDB's file begins with two meta pages, written in turn; a crash can spoil only one of them.
const META_PAGES = 2
const META_OFFSET = 24
const MAGIC = 0xbeefc0de
const PAGE_BYTES = 4096
const TRANSACTION_OFFSET = META_OFFSET + 128
const LAST_PAGE_OFFSET = META_OFFSET + 120

/**
 * Refuses a file that is no log, or one that was cut short: LMDB maps it, and a read beyond its end would end the
 * process without a message.
 *
 * @throws {LogRefused} that names the file
 */
export function checkDataFile(folder: string, name: string) {
  const file = join(folder, name)
  if (!existsSync(file)) return
  const start = Buffer.alloc(META_PAGES * PAGE_BYTES)
  const descriptor = openSync(file, 'r')
  const read = readSync(descriptor, start, 0, start.length, 0)
  // Looked up after the meta pages were read: a journal that runs makes the file longer, and then names its last page.
  const { size } = fstatSync(descriptor)
  closeSync(descriptor)
  const metas = [0, 1]
    .map(page => start.subarray(page * PAGE_BYTES, (page + 1) * PAGE_BYTES))
    .filter(page => page.readUInt32LE(META_OFFSET) === MAGIC)
    .sort((one, other) => Number(other.readBigUInt64LE(TRANSACTION_OFFSET) - one.readBigUInt64LE(TRANSACTION_OFFSET)))
  if (read < start.length || metas.length === 0) {
    throw new LogRefused(`${file} is damaged: it does not begin as a log does. Restore a backup; nothing was changed`)
  }
  const bytesMin = (Number(metas[0].readBigUInt64LE(LAST_PAGE_OFFSET)) + 1) * PAGE_BYTES
  if (size < bytesMin) {
    throw new LogRefused(
      `${file} is damaged: it has ${size} bytes, and should have ${bytesMin}. Restore a backup; nothing was changed`,
    )
  }
}

/**
 * Refuses the same files as {@link checkDataFile}, and a folder without a log.
 *
 * @param path of a log's folder, or of a backup
 * @throws {LogRefused}
 */
export function checkLogFile(path: string) {
  const stats = statSync(path, { throwIfNoEntry: false })
  if (!stats) throw new LogMissing(`${path} is not there`)
  if (!stats.isDirectory()) return checkDataFile(dirname(path), basename(path))
  if (!existsSync(join(path, DATA_FILE))) throw new LogMissing(`${path} has no log: there is no ${DATA_FILE} in it`)
  return checkDataFile(path, DATA_FILE)
}

/** Gives a file to the owner of its folder: root may look after the log of a journal that is not root. */
export function giveToOwner(file: string) {
  if (process.getuid?.() !== 0) return
  const { uid, gid } = statSync(dirname(resolve(file)))
  chownSync(file, uid, gid)
}
