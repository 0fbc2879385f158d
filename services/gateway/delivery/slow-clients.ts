// Slow clients: sessions whose sockets do not drain. Those that take nothing at all for too long are closed. Where all of
// them together hold too much memory, the account that holds most loses its largest. They are checked now and then, never
// per message. A session whose own queue passes its limit is cut by outbox.ts.
import { createLoads } from '@keycast/service'
import type { Session } from '../sessions/session.ts'
import type { Piece } from '../transport/transport.ts'

export type SlowClients = ReturnType<typeof createSlowClients>

interface Stall {
  /** Bytes taken from its socket, when that number last grew. */
  takenBytes: number
  takenAtMs: number
  /** Bytes of the session's own memory that were written. */
  copiedBytes: number
  /** Memory that was written as it is, and may be shared with other sessions. */
  pinned: ArrayBufferLike[]
}

/** Closes a session, which calls {@link SlowClients.finish}. An urgent end also frees the socket's memory soon. */
type End = (session: Session, code: 'slow', isUrgent: boolean) => void

interface Deps {
  stallMsMax: number
  unsentTotalBytesMax: number
  now: () => number
}

export function createSlowClients({ stallMsMax, unsentTotalBytesMax, now }: Deps) {
  const stalls = new Map<Session, Stall>()
  /** The number of slow sessions that hold each piece of memory. A value sent to thousands counts once. */
  const pins = new Map<ArrayBufferLike, number>()
  let pinnedBytes = 0

  /** The session's socket did not take all that was just written. */
  function begin(session: Session, pieces: Piece[]) {
    const stall: Stall = { takenBytes: session.transport.takenBytes(), takenAtMs: now(), copiedBytes: 0, pinned: [] }
    for (const piece of pieces) {
      const copied = session.transport.copiedBytes(piece)
      if (copied === 0 && typeof piece !== 'string') pin(stall, piece.buffer)
      stall.copiedBytes += copied
    }
    stalls.set(session, stall)
  }

  function pin(stall: Stall, memory: ArrayBufferLike) {
    const holders = pins.get(memory) ?? 0
    if (holders === 0) pinnedBytes += memory.byteLength
    pins.set(memory, holders + 1)
    stall.pinned.push(memory)
  }

  /** The session took all, or has ended. */
  function finish(session: Session) {
    const stall = stalls.get(session)
    if (!stall) return
    stalls.delete(session)
    for (const memory of stall.pinned) {
      const holders = holdersOf(memory) - 1
      if (holders > 0) {
        pins.set(memory, holders)
      } else {
        pins.delete(memory)
        pinnedBytes -= memory.byteLength
      }
    }
  }

  /** @param memory that is pinned */
  const holdersOf = (memory: ArrayBufferLike) => pins.get(memory) as number

  /**
   * Closes the sessions that have not taken anything for too long, and the largest of those who hold most where all hold
   * too much.
   */
  function sweep(end: End) {
    const nowMs = now()
    let ownBytes = 0
    for (const [session, stall] of stalls) {
      const taken = session.transport.takenBytes()
      if (taken > stall.takenBytes) {
        stall.takenBytes = taken
        stall.takenAtMs = nowMs
      } else if (nowMs - stall.takenAtMs >= stallMsMax) {
        end(session, 'slow', false)
        continue
      }
      ownBytes += ownBytesOf(session, stall)
    }
    if (ownBytes + pinnedBytes > unsentTotalBytesMax) relieve(ownBytes, end)
  }

  /** @param ownBytes of all that are stalled */
  function relieve(ownBytes: number, end: End) {
    const loads = createLoads<Session>()
    for (const [session, stall] of stalls)
      loads.set(session, session.payer, ownBytesOf(session, stall) + shareOf(stall))
    let leftBytes = ownBytes
    for (let session = loads.largest(); session; session = loads.largest()) {
      if (leftBytes + pinnedBytes <= unsentTotalBytesMax) return
      leftBytes -= ownBytesOf(session, stalls.get(session) as Stall)
      loads.delete(session)
      end(session, 'slow', true)
    }
  }

  /** A session's share of the memory that it holds together with others. */
  function shareOf({ pinned }: Stall) {
    return pinned.reduce((bytes, memory) => bytes + memory.byteLength / holdersOf(memory), 0)
  }

  return { begin, finish, sweep, size: () => stalls.size }
}

/** The bytes that only this session holds, queued or in its socket. */
function ownBytesOf(session: Session, { copiedBytes }: Stall) {
  return queuedBytesOf(session) + copiedBytes
}

/** The cost of a queued piece beside its bytes. Measured: 110 bytes for a pong's Buffer and its place in the list. */
const PIECE_BYTES = 128

/** The cost of a get that waits for its client to read: key and id, each up to hundreds of characters, and records. */
const DEFERRED_GET_BYTES = 512

/** The cost of an answer that waits for a message: key and id, and records. */
const HELD_ANSWER_BYTES = 512

/** The memory that is queued for a session. */
export function queuedBytesOf({
  pieces,
  pieceBytes,
  deferredGets,
  answersHeld,
}: Pick<Session, 'pieces' | 'pieceBytes' | 'deferredGets' | 'answersHeld'>) {
  const waitingBytes = deferredGets.length * DEFERRED_GET_BYTES + answersHeld * HELD_ANSWER_BYTES
  return pieceBytes + pieces.length * PIECE_BYTES + waitingBytes
}
