// Bounds the memory of values that are being sent over HTTP: a client that does not read holds its value's bytes, also
// once the cache has newer ones. Each account has a share: else one that reads nothing would keep all others from theirs.
import type { ServerResponse } from 'node:http'
import type { Problem } from '@keycast/protocol'
import { createStock, type Holder, type Payer } from '@keycast/service'

export type UnreadBodies = ReturnType<typeof createUnreadBodies>

const TOO_MANY_UNREAD: Problem = {
  code: 'too_many_waiting',
  message: 'too many answers of this user or address are not read yet: read them first',
  retryAfterMs: 1_000,
}

/** What one account has under way of a body. */
interface Share {
  responses: number
  charged: Holder | undefined
}

/** @param bytesMax of all values under way; one sent to many counts once */
export function createUnreadBodies(bytesMax: number) {
  /** Of each body, who asked for it. */
  const holders = new Map<Buffer, Map<Payer | undefined, Share>>()
  let bytes = 0
  const places = createStock({ free: () => bytesMax - bytes })

  /**
   * Counts a body as held until its response is over.
   *
   * @param payer who asked for it, and is charged for it once
   * @returns why there is no room for it
   */
  function hold(body: Buffer, response: ServerResponse, payer: Payer | undefined): Problem | undefined {
    // Its client left while the body was fetched: the event that would release it has passed.
    if (response.destroyed) return undefined
    const shares = holders.get(body) ?? new Map<Payer | undefined, Share>()
    // One is always allowed: a value larger than the limit would otherwise never be served.
    if (shares.size === 0 && bytes > 0 && bytes + body.length > bytesMax) return { code: 'capacity' }
    let share = shares.get(payer)
    if (!share) {
      // Nor would one that is larger than the account's part.
      const isFirst = payer === undefined || places.loadOf(payer) === 0
      if (!isFirst && !places.hasRoom(payer, body.length)) return TOO_MANY_UNREAD
      share = { responses: 0, charged: places.charge(payer, body.length) }
      shares.set(payer, share)
    }
    if (!holders.has(body)) {
      holders.set(body, shares)
      bytes += body.length
    }
    share.responses++
    response.once('close', () => release(body, shares, payer))
    return undefined
  }

  function release(body: Buffer, shares: Map<Payer | undefined, Share>, payer: Payer | undefined) {
    const share = shares.get(payer) as Share
    share.responses--
    if (share.responses > 0) return
    shares.delete(payer)
    if (share.charged) places.change(share.charged, -body.length)
    if (shares.size > 0) return
    holders.delete(body)
    bytes -= body.length
  }

  return { hold, bytes: () => bytes }
}
