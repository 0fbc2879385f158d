// Sends the clients of a gateway that stops to other gateways, spread over time: all at once they would overload those.
import type { ControlMessage } from '@keycast/protocol'
import type { World } from '@keycast/service'
import type { CloseCode } from '../delivery/outbox.ts'
import type { Session } from './session.ts'

/**
 * One arriving client costs another gateway and the proxy this much time: a few clients need not be spread over
 * seconds.
 */
const ARRIVAL_MS = 2

/** A client that stays this long after its own `reconnectAfterMs` is closed. */
const LEAVE_MS = 500

/** Closes must be answered within this time. */
const CLOSE_MS = 500

/** The sessions whose time has come are closed at this interval. */
const STEP_MS = 50

interface Deps {
  sessions: { all: () => Iterable<Session>; size: () => number; terminate: (session: Session, reason: string) => void }
  outbox: { send(session: Session, message: ControlMessage): void; close(session: Session, code: CloseCode): void }
  /** Over which clients leave at most. */
  spreadMs: number
  after: World['after']
  random: () => number
}

/**
 * Sends `closing` to every session, each with a random time to reconnect after. Sessions still there after that time are
 * closed with 1012; those that do not answer the close are cut.
 */
export async function drain({ sessions, outbox, spreadMs, random, after }: Deps) {
  const wait = (ms: number) => new Promise<void>(resolve => void after(ms, resolve))
  /** Sessions by the step at which they are closed. */
  const leaving = new Map<number, Session[]>()
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
