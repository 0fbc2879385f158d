// Bounds the memory of messages that clients have begun and not finished, over all sessions: each may be as long as the
// largest message allowed, and a client that goes on answering pings may leave one unfinished for ever. Where all take too
// much, the account that takes most loses one: a thousand sessions that take a little each must not cost another its own.
import { accountsOf } from '@keycast/service'
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
  const bytesOf = new Map<Session, number>()
  let totalBytes = 0

  /**
   * Notes the present size of a session's unfinished message.
   *
   * @param bytes 0 where there is none any more
   * @returns the session to be ended because all take too much: the largest of the account that takes most
   */
  function report(session: Session, bytes: number): Session | undefined {
    if (session.ended) return undefined
    totalBytes += bytes - (bytesOf.get(session) ?? 0)
    if (bytes > 0) bytesOf.set(session, bytes)
    else bytesOf.delete(session)
    return totalBytes > bytesMax ? largest() : undefined
  }

  /** The session has ended. */
  function forget(session: Session) {
    totalBytes -= bytesOf.get(session) ?? 0
    bytesOf.delete(session)
  }

  /** Of the network that takes most, the address that takes most, and so on down to a session. */
  function largest(): Session {
    let held = [...bytesOf]
    for (let depth = 0; ; depth++) {
      const shares = Map.groupBy(held, ([{ payer }]) => (payer === undefined ? undefined : accountsOf(payer)[depth]))
      if (shares.size === 1 && shares.has(undefined)) return largestOf(held, ([, bytes]) => bytes)[0]
      held = largestOf([...shares.values()], share => share.reduce((sum, [, bytes]) => sum + bytes, 0))
    }
  }

  return { report, forget, bytes: () => totalBytes }
}

/** @param of at least one */
const largestOf = <T>(of: T[], sizeOf: (each: T) => number) =>
  of.reduce((one, other) => (sizeOf(other) > sizeOf(one) ? other : one))
