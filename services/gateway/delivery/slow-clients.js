// The sessions whose sockets do not drain: who of them takes nothing at all, and who holds too much of the memory there
// is for what is written and not yet sent. Looked at now and then, never per message.
/**
 * @typedef {import('../transport/transport.js').Piece} Piece
 * @typedef {import('../sessions/session.js').Session} Session
 * @typedef {ReturnType<typeof createStalls>} Stalls
 *
 * @typedef {object} Stall
 * @property {number} takenBytes of its socket, when it last was more than before
 * @property {number} takenAtMs
 * @property {number} copiedBytes of what was written: memory of its own
 * @property {ArrayBufferLike[]} pinned what was written as it is, and is kept for others as well or was
 */

/**
 * @param {object} deps
 * @param {(session: Session, code: 'slow', isUrgent: boolean) => void} deps.end closes it; where it is urgent, soon also
 *   what it has in its socket must be gone
 * @param {{ stallMsMax: number, unsentTotalBytesMax: number }} deps.limits
 * @param {() => number} deps.now monotonic, in milliseconds
 */
export function createStalls({ end, limits, now }) {
  /** @type {Map<Session, Stall>} */
  const stalls = new Map()
  /** How many sessions hold each: a value written to thousands takes its memory once. @type {Map<ArrayBufferLike, number>} */
  const pins = new Map()
  let pinnedBytes = 0

  /**
   * The session's socket did not take all that was just written.
   *
   * @param {Session} session
   * @param {Piece[]} pieces
   */
  function begin(session, pieces) {
    /** @type {Stall} */
    const stall = { takenBytes: session.transport.takenBytes(), takenAtMs: now(), copiedBytes: 0, pinned: [] }
    for (const piece of pieces) {
      const copied = session.transport.copiedBytes(piece)
      if (copied === 0 && typeof piece !== 'string') pin(stall, piece.buffer)
      stall.copiedBytes += copied
    }
    stalls.set(session, stall)
  }

  /** @param {Stall} stall @param {ArrayBufferLike} memory */
  function pin(stall, memory) {
    const holders = pins.get(memory) ?? 0
    if (holders === 0) pinnedBytes += memory.byteLength
    pins.set(memory, holders + 1)
    stall.pinned.push(memory)
  }

  /** It took all, or has ended. @param {Session} session */
  function finish(session) {
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

  /** @param {ArrayBufferLike} memory that is pinned */
  const holdersOf = memory => /** @type {number} */ (pins.get(memory))

  /** Closes the sessions that have not taken anything for too long, and those that hold most where all hold too much. */
  function sweep() {
    const nowMs = now()
    let ownBytes = 0
    for (const [session, stall] of stalls) {
      const taken = session.transport.takenBytes()
      if (taken > stall.takenBytes) {
        stall.takenBytes = taken
        stall.takenAtMs = nowMs
      } else if (nowMs - stall.takenAtMs >= limits.stallMsMax) {
        end(session, 'slow', false)
        continue
      }
      ownBytes += ownBytesOf(session, stall)
    }
    if (ownBytes + pinnedBytes > limits.unsentTotalBytesMax) relieve(ownBytes)
  }

  /** @param {number} ownBytes of all that are stalled */
  function relieve(ownBytes) {
    const largestFirst = [...stalls]
      .map(([session, stall]) => ({ session, own: ownBytesOf(session, stall), shared: shareOf(stall) }))
      .sort((one, other) => other.own + other.shared - one.own - one.shared)
    let leftBytes = ownBytes
    for (const { session, own } of largestFirst) {
      if (leftBytes + pinnedBytes <= limits.unsentTotalBytesMax) return
      leftBytes -= own
      end(session, 'slow', true)
    }
  }

  /** Its part of what it holds together with others. @param {Stall} stall */
  function shareOf({ pinned }) {
    return pinned.reduce((bytes, memory) => bytes + memory.byteLength / holdersOf(memory), 0)
  }

  return { begin, finish, sweep, size: () => stalls.size }
}

/** What waits for the session or in its socket, and for nobody else. @param {Session} session @param {Stall} stall */
function ownBytesOf({ pieceBytes }, { copiedBytes }) {
  return pieceBytes + copiedBytes
}
