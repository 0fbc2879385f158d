// Sends the clients of a gateway that stops to others, spread over time: all at once they would storm those.
import { setTimeout as sleep } from 'node:timers/promises'

/** @typedef {import('./session.js').Session} Session */

/** What one client's coming costs another gateway and the proxy: a few clients need no spreading over seconds. */
const ARRIVAL_MS = 2

/** How long after its own `reconnectAfterMs` a client that is still there is closed. */
const LEAVE_MS = 500

/** How long closes may take to be answered. */
const CLOSE_MS = 500

/** How often it is looked at whose time has come. */
const STEP_MS = 50

/**
 * Says `closing` to every session, each with a random time to reconnect after; closes with 1012 who is still there after
 * it, and cuts who does not answer that.
 *
 * @param {object} deps
 * @param {{ all: () => Iterable<Session>, size: () => number, terminate: (session: Session, reason: string) => void }} deps.sessions
 * @param {Pick<import('../delivery/outbox.js').Outbox, 'send' | 'close'>} deps.outbox
 * @param {number} deps.spreadMs over which clients leave at most
 * @param {() => number} [deps.random] 0 to 1
 * @param {(ms: number) => Promise<unknown>} [deps.wait]
 */
export async function drain({ sessions, outbox, spreadMs, random = Math.random, wait = sleep }) {
  /** Sessions by the step at which they are closed. @type {Map<number, Session[]>} */
  const leaving = new Map()
  const overMs = Math.min(spreadMs, sessions.size() * ARRIVAL_MS)
  for (const session of sessions.all()) {
    const reconnectAfterMs = Math.round(random() * overMs)
    outbox.send(session, { type: 'closing', reconnectAfterMs })
    const step = Math.ceil((reconnectAfterMs + LEAVE_MS) / STEP_MS)
    const others = leaving.get(step)
    if (others) others.push(session)
    else leaving.set(step, [session])
  }

  const lastStep = Math.max(0, ...leaving.keys())
  for (let step = 1; step <= lastStep && sessions.size() > 0; step++) {
    await wait(STEP_MS)
    for (const session of leaving.get(step) ?? []) outbox.close(session, 'restarting')
  }
  for (let waitedMs = 0; waitedMs < CLOSE_MS && sessions.size() > 0; waitedMs += STEP_MS) await wait(STEP_MS)
  for (const session of sessions.all()) sessions.terminate(session, 'restarting')
}
