// Deletes messages for an operator: a room's, or a user's in every room. The log forgets them, readers are told by a
// message, and so is whoever keeps copies.
import { type DeleteCommand, type Deleted, readPushedKey } from '@keycast/backbone'
import { type Problem, problemText } from '@keycast/protocol'
import { RESERVED_PREFIX } from '@keycast/service'
import type { Between } from './group-commit.ts'
import type { Deletion, Log, Untold } from './log/log.ts'

/** Messages that one look for a user's reads. */
const LOOK_MESSAGES = 500
const LOOK_BYTES = 2 ** 20

interface Deps {
  log: {
    delete: Log['delete']
    read: Log['read']
    rooms: Log['rooms']
    outbox: Pick<Log['outbox'], 'read' | 'remove' | 'rooms'>
  }
  /** Whether a backend is told of the room's messages. */
  isTold: (room: string) => boolean
  between: Between
  /** Once for each part of a room that went. */
  onDeleted: (room: string, notice: NonNullable<Deletion['notice']>) => void
  turn: (run: () => void) => void
}

export function createDeletions({ log, isTold, between, onDeleted, turn }: Deps) {
  /** By user, the messages deleted in the end: who asks again waits for the same. */
  const underWay = new Map<string, Promise<number>>()

  const nextTurn = () => new Promise<void>(resolve => turn(resolve))

  /** No backend is to be told of these any more: only that they were deleted. */
  async function removeUntold(room: string, isGone: (message: Untold) => boolean) {
    for (let after = 0; ; ) {
      const { messages } = await log.outbox.read(room, { after, limit: LOOK_MESSAGES, bytesMax: LOOK_BYTES })
      if (messages.length === 0) return
      const seqs = messages.filter(message => !message.deletes && isGone(message)).map(({ seq }) => seq)
      if (seqs.length > 0) await between(() => log.outbox.remove(room, seqs))
      after = messages[messages.length - 1].seq
      await nextTurn()
    }
  }

  /** @throws {NotDeleted} @throws {Error} where nobody knows */
  async function deleteIn(room: string, seqs: number[] | undefined): Promise<number> {
    await removeUntold(room, ({ seq }) => seqs?.includes(seq) ?? true)
    for (let messages = 0; ; ) {
      const deletion = await between(() => log.delete(room, seqs, isTold(room)))
      if ('error' in deletion) throw new NotDeleted(deletion.error)
      messages += deletion.messages
      if (deletion.notice) onDeleted(room, deletion.notice)
      if (!deletion.more) return messages
      messages-- // What tells of this part goes with the next one: readers hear of each, whatever ends the next.
    }
  }

  async function removeUntoldOf(user: string) {
    for await (const { room } of log.outbox.rooms()) await removeUntold(room, ({ from }) => from === user)
  }

  async function deleteOf(user: string): Promise<number> {
    let messages = 0
    await removeUntoldOf(user)
    for await (const room of log.rooms()) {
      // In reserved rooms names of users say nothing about who published, and values are nobody's messages.
      if (!room.startsWith(RESERVED_PREFIX) && readPushedKey(room) === undefined)
        messages += await deleteOfIn(room, user)
    }
    return messages
  }

  async function deleteOfIn(room: string, user: string): Promise<number> {
    let deleted = 0
    let end = Number.POSITIVE_INFINITY
    for (let after = 0; after < end; ) {
      const { head, messages } = await log.read(room, { after, limit: LOOK_MESSAGES, bytesMax: LOOK_BYTES })
      end = Math.min(end, head.seq)
      const seqs = messages.filter(({ from }) => from === user).map(({ seq }) => seq)
      if (seqs.length > 0) deleted += await deleteIn(room, seqs)
      after = messages.at(-1)?.seq ?? end
      await nextTurn()
    }
    return deleted
  }

  function deleteOnce(user: string): Promise<number> {
    const deleting = underWay.get(user) ?? deleteOf(user).finally(() => underWay.delete(user))
    underWay.set(user, deleting)
    return deleting
  }

  return {
    /** Never rejects. Said again it does no harm. */
    async delete(command: DeleteCommand): Promise<Deleted | Problem> {
      try {
        if ('user' in command) return { messages: await deleteOnce(command.user) }
        return { messages: await deleteIn(command.room, command.seqs) }
      } catch (error) {
        const code = error instanceof NotDeleted ? error.code : 'journal_unavailable'
        return { code, message: problemText({ code, message: (error as Error).message }) }
      }
    },
  }
}

class NotDeleted extends Error {
  readonly code

  constructor(code: 'log_full' | 'journal_unavailable') {
    super(code === 'log_full' ? 'the disk is full: to delete takes some space, too' : 'the log cannot be reached')
    this.code = code
  }
}
