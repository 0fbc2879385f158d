// The file that a Valkey appends to. Killed within a batch, it has half of that batch at the end, and cuts the last command
// when it starts, not the batch (mended in https://github.com/valkey-io/valkey/pull/4342). What it then appends it reads at
// the next start as the rest of the batch: messages that nobody acknowledged stand where acknowledged ones were.
import type { Session } from './connection.ts'

/**
 * Has a server that was started since it was last written to go on in another file. Before anything is written: what is cut
 * off stays the end of a file.
 *
 * @param replids of the server, and of the primary whose replica it was
 * @returns why it may go on in the same one
 * @throws {Error} where it will begin another one, and has not yet
 */
export async function beginFile(read: Session['read'], replids: (string | undefined)[]): Promise<string | undefined> {
  const known = await read<Buffer | null>(['HGET', 'keycast:log', 'replid'])
  if (known === null || replids.includes(String(known))) return undefined
  try {
    const said = String(await read(['BGREWRITEAOF']))
    if (!said.includes('scheduled')) return undefined
  } catch (error) {
    const { message } = error as Error
    if (message.includes('already in progress')) return undefined
    return `BGREWRITEAOF failed (${message}): where it was killed before, the next start may lose acknowledged messages`
  }
  throw new Error('it writes a snapshot, and begins another file after it')
}
