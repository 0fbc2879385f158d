// The file that a Valkey appends to. A Valkey that was killed within a batch has half of that batch at the end of the file.
// At its next start it cuts off the last command, and not the batch, so the commands that it appends from then on belong to
// that half batch. The start after that one puts messages that nobody acknowledged where acknowledged ones were. Mended in
// https://github.com/valkey-io/valkey/pull/4342.
import type { Session } from './connection.ts'

/** Such as with a full disk: another try can succeed. */
export const CANNOT = /Can't execute an AOF/

/**
 * Has a server that was started since it was last written to begin another file. To be called before anything is written,
 * so that a half batch stays the end of its file.
 *
 * @param replids of the server, and of the primary whose replica it was
 * @returns what may be lost, where the server has begun none
 * @throws {Error} where the server begins another file only later
 */
export async function beginFile(read: Session['read'], replids: (string | undefined)[]): Promise<string | undefined> {
  // One without a log may have been killed within the first batch of it.
  const known = await read<Buffer | null>(['HGET', 'keycast:log', 'replid'])
  if (known !== null && replids.includes(String(known))) return undefined
  try {
    const said = String(await read(['BGREWRITEAOF']))
    if (!said.includes('scheduled')) return undefined
  } catch (error) {
    const { message } = error as Error
    if (message.includes('already in progress')) return undefined
    // Where it only could not fork, it began the file before, and counts it.
    if (CANNOT.test(message) && /aof_rewrites:[1-9]/.test(String(await read(['INFO', 'persistence'])))) return undefined
    return `BGREWRITEAOF failed (${message}): where it was killed before, the next start may lose acknowledged messages`
  }
  throw new Error('it writes a snapshot, and begins another file after it')
}
