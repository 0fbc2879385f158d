// Finds clients that are gone without a close: each is pinged once a period, and cut when nothing came until the next ping.
import type { World } from '@keycast/service'
import type { Session } from './session.ts'

interface Deps {
  slices: Set<Session>[]
  /** Between two pings of a session. */
  periodMs: number
  outbox: { sendFrame(session: Session, frame: Buffer): void; isWritable(session: Session): boolean }
  isUnread: (session: Session) => boolean
  terminate: (session: Session) => void
  now: () => number
  every: World['every']
}

export function createHeartbeat({ slices, periodMs, outbox, isUnread, terminate, now, every }: Deps) {
  const tickMs = periodMs / slices.length
  let next = 0
  let lastTickMs = now()
  let stop = () => {}

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
      if (!session.heard && !wasBlocked && !isUnread(session) && session.transport.answersPings) {
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
      stop = every(tickMs, tick)
    },
    stop: () => stop(),
  }
}
