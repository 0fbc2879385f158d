// The sessions there are: how they end, and the order of their pings.
import type { Leaving } from '@keycast/backbone'
import { closeCodes } from '@keycast/protocol'
import { type Containment, createFifo, createTurns, TURN_MS, type World } from '@keycast/service'
import type { Verified } from '../access/tokens/tokens.ts'
import { type Counts, countOne } from '../counts.ts'
import type { CloseCode } from '../delivery/outbox.ts'
import type { Session } from './session.ts'

/** Sessions are pinged in so many slices over the heartbeat, so that no turn of the event loop pings thousands. */
const SLICES = 25

/** A client that is no longer read, or holds memory that others need, has this long to read the reason of its close. */
const CLOSE_READ_MS = 1_000

/**
 * Codes with which a client says that it is done, and will not come back at once. 1005 stands for a close without a
 * code, as a browser's `close()` sends (RFC 6455 section 7.4.1).
 */
const leavingCodes = new Set([1000, 1001, 1005])

interface Deps extends Pick<World, 'after' | 'now' | 'turn'> {
  /** Drops what a session that ended has queued or begun: sessions are ended for the memory that all of them take. */
  discard: (session: Session) => void
  /** Takes back some of what the other parts hold of it; returns whether there is more. */
  takeBack: (session: Session, leaving: Leaving) => boolean
  sessionLog: { opened(session: Session): void; ended(session: Session, reason: string): void }
  containment: Pick<Containment, 'guard'>
  counts: Pick<Counts, 'closed'>
}

export function createSessions({ discard, takeBack, sessionLog, containment, counts, after, now, turn }: Deps) {
  const slices: Set<Session>[] = Array.from({ length: SLICES }, () => new Set())
  let added = 0
  let size = 0
  /** Sessions that ended, of which all is still to be taken back. */
  const left = createFifo<{ session: Session; leaving: Leaving }>()
  const turns = createTurns({ now, turn, step: takeBackNext })
  /** While sessions end in this turn of the event loop, or some are left. */
  let turnEndsAt: number | undefined

  function add(session: Session) {
    session.slice = added++ % SLICES
    slices[session.slice].add(session)
    size++
    sessionLog.opened(session)
  }

  /**
   * Ends a session now and closes its connection. Its queue is dropped: the outbox's `close` has that written first.
   *
   * @param isUrgent whether what its socket still holds must soon be gone
   */
  function end(session: Session, name: CloseCode, isUrgent = false) {
    if (session.ended) return
    session.endReason = name
    detach(session)
    const { transport } = session
    // The client shut down its side or a close frame is out already. ws would wait, without a timer, until the client
    // has read everything: one that stopped reading would stay for ever.
    if (!transport.isOpen()) return transport.terminate()
    const { code, doc } = closeCodes[name]
    transport.close(code, doc)
    // It may go on sending at full speed. Unread that costs nothing, but the answer to the close is not read either.
    const isSending = name === 'abusive' || name === 'unfinished'
    if (isSending) transport.pause()
    if (isSending || isUrgent) after(CLOSE_READ_MS, () => transport.terminate())
  }

  /**
   * Cuts a connection that can carry no more messages.
   *
   * @param reason for the metrics
   */
  function terminate(session: Session, reason: string) {
    session.endReason ??= reason
    detach(session)
    session.transport.terminate()
  }

  /** The session's connection is gone. */
  function closed(session: Session, code: number) {
    detach(session, leavingCodes.has(code) ? 'now' : 'later')
    slices[session.slice].delete(session)
    size--
    const reason = session.endReason ?? reasonOf(code)
    countOne(counts.closed, reason)
    sessionLog.ended(session, reason)
  }

  /** @param leaving the rooms that it joined */
  function detach(session: Session, leaving: Leaving = 'later') {
    if (session.ended) return
    session.ended = true
    discard(session)
    left.add({ session, leaving })
    turns.start()
    turnEndsAt ??= now() + TURN_MS
    // Not beside others, of which one may be half taken back.
    if (left.size > 1) return
    while (left.size > 0 && now() < turnEndsAt) takeBackNext()
  }

  /**
   * Mostly at once. Where a proxy is lost with 200,000 subscriptions, it takes a second, and all others would wait for it.
   *
   * @returns whether there may be more
   */
  function takeBackNext(): boolean {
    const next = left.first()
    if (!next) turnEndsAt = undefined
    else if (!takeBackSome(next.session, next.leaving)) left.take()
    return next !== undefined
  }

  // Nothing else takes back what a session did: what it shares with others is in doubt where this fails.
  const takeBackSome = containment.guard('session', takeBack, () => {}, { isForAll: true })

  /** @returns the number of sessions ended */
  function endAll(isMeant: (session: Session) => boolean, name: CloseCode): number {
    let ended = 0
    for (const session of all()) {
      if (session.ended || !isMeant(session)) continue
      end(session, name)
      ended++
    }
    return ended
  }

  function* all() {
    for (const slice of slices) yield* slice
  }

  return {
    add,
    end,
    terminate,
    closed,
    all,
    slices,
    size: () => size,

    endRevoked: (isRevoked: (token: Verified) => boolean) =>
      endAll(({ verified }) => verified !== undefined && isRevoked(verified), 'revoked'),

    /** @param address as limits are counted by */
    endAddress: (address: string) => endAll(session => session.address === address, 'abusive'),
  }
}

/** @param code a connection was closed with, not by this gateway's own decision */
function reasonOf(code: number) {
  switch (code) {
    case 1006:
      return 'lost'
    case 1007:
      return 'badUtf8'
    case 1009:
      return 'tooBig'
    case 1002:
      return 'protocol'
    case 1008:
      return 'unfinished'
    default:
      return 'client'
  }
}
