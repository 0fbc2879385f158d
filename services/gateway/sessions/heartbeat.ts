// Finds clients that are gone without a close: each is pinged once a period, and cut when nothing came until the next ping.

/** @typedef {import('./session.ts').Session} Session */

/**
 * @param {object} deps
 * @param {Set<Session>[]} deps.slices
 * @param {number} deps.periodMs between two pings of a session
 * @param {Pick<import('../delivery/outbox.ts').Outbox, 'sendFrame' | 'isWritable'>} deps.outbox
 * @param {(session: Session) => void} deps.terminate
 * @param {() => number} deps.now monotonic, in milliseconds
 */
export function createHeartbeat({ slices, periodMs, outbox, terminate, now }) {
  const tickMs = periodMs / slices.length
  let next = 0
  let lastTickMs = now()
  /** @type {NodeJS.Timeout | undefined} */
  let timer

  function tick() {
    const nowMs = now()
    // A gateway that was stopped or blocked has answers in its sockets that it has not read: it cuts no client for them.
    const wasBlocked = nowMs - lastTickMs > tickMs + periodMs / 2
    lastTickMs = nowMs
    const slice = slices[next]
    next = (next + 1) % slices.length
    for (const session of slice) {
      // One that does not read may be alive and slow: slow-clients.ts closes it when that takes too long.
      if (session.ended || !outbox.isWritable(session)) continue
      if (!session.heard && !wasBlocked) {
        terminate(session)
        continue
      }
      session.heard = false
      outbox.sendFrame(session, session.transport.pingFrame)
    }
  }

  return {
    tick,
    start() {
      lastTickMs = now()
      timer = setInterval(tick, tickMs)
    },
    stop() {
      clearInterval(timer)
    },
  }
}
