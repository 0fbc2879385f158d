// Bounds the memory of messages that clients have begun and not finished, over all sessions: each may be as long as the
// largest message allowed, and a client that goes on answering pings may leave one unfinished for ever. Where all take too
// much, the account that takes most loses one: a thousand sessions that take a little each must not cost another its own.
import { createLoads } from '@keycast/service'
import type { Session } from './session.ts'

/** Room for hundreds of the longest messages of the default size: an honest one is unfinished for milliseconds. */
const BYTES_MAX = 64 * 1024 ** 2

/** With a larger `GATEWAY_MESSAGE_BYTES_MAX`, so many of the longest messages may be under way at once. */
const MESSAGES_MIN = 8

interface Deps {
  messageBytesMax: number
  /** Of all of them together. */
  bytesMax?: number
}

export function createUnfinished({
  messageBytesMax,
  bytesMax = Math.max(BYTES_MAX, MESSAGES_MIN * messageBytesMax),
}: Deps) {
  const loads = createLoads<Session>()

  /**
   * Notes the present size of a session's unfinished message.
   *
   * @param bytes 0 where there is none any more
   * @returns the session to be ended because all take too much: the largest of the account that takes most
   */
  function report(session: Session, bytes: number): Session | undefined {
    if (session.ended) return undefined
    if (bytes > 0) loads.set(session, session.payer, bytes)
    else loads.delete(session)
    return loads.total() > bytesMax ? loads.largest() : undefined
  }

  /** `forget`: the session has ended. */
  return { report, forget: loads.delete, bytes: loads.total }
}
