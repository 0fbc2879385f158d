// The functions that run inside Valkey (valkey.lua). They are loaded under a name that has the hash of their text: journals
// of two releases do not change each other's.
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { Session } from './connection.ts'

const source = readFileSync(new URL('valkey.lua', import.meta.url), 'utf8')
const library = `keycast_${createHash('sha256').update(source).digest('hex').slice(0, 12)}`
const functions = `#!lua name=${library}\n${source.replaceAll('VERSION', library)}`

export async function loadFunctions({ read, write }: Session) {
  // A Valkey without memory left refuses to load them, also where it has them.
  if ((await read<unknown[]>(['FUNCTION', 'LIST', 'LIBRARYNAME', library])).length > 0) return
  try {
    await write(['FUNCTION', 'LOAD', functions])
  } catch (error) {
    if (!/already exists/.test((error as Error).message)) throw error
  }
}

/** Calls a function that may write. */
export const call = <Reply>({ write }: Session, name: string, ...args: (string | Buffer)[]): Promise<Reply> =>
  write(['FCALL', `${library}_${name}`, '0', ...args])

/** Calls one that only reads: texts come as Buffers. */
export const look = <Reply>({ read }: Session, name: string, ...args: string[]): Promise<Reply> =>
  read(['FCALL_RO', `${library}_${name}`, '0', ...args])

/**
 * Some members of a sorted set, perhaps twice, and never by their places: others that go move those up.
 *
 * @param cursor '0' at first, then as it was returned; '0' again at the end
 */
export async function scan({ read }: Session, key: string, cursor: string, count: number) {
  const [next, flat] = await read<[Buffer, Buffer[]]>(['ZSCAN', key, cursor, 'COUNT', String(count)])
  const members: { room: string; score: number }[] = []
  for (let index = 0; index < flat.length; index += 2) {
    members.push({ room: String(flat[index]), score: Number(flat[index + 1]) })
  }
  return { members, cursor: String(next) }
}

/** All of them. Of one session: to another server, or the same one started again, a cursor says nothing. */
export async function* scanAll(session: Session, key: string, count: number) {
  let cursor = '0'
  do {
    const part = await scan(session, key, cursor, count)
    yield* part.members
    cursor = part.cursor
  } while (cursor !== '0')
}
