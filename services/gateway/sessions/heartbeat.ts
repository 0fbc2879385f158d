// Finds clients that are gone without a close: each is pinged once a period, and cut when nothing came until the next ping.
import type { Outbox } from '../delivery/outbox.ts'
import type { Session } from './session.ts'

interface Deps {
  slices: Set<Session>[]
  /** Between two pings of a session. */
  periodMs: number
  outbox: Pick<Outbox, 'sendFrame' | 'isWritable'>
  terminate: (session: Session) => void
  /** Monotonic, in milliseconds. */
  now: () => number
}

export function createHeartbeat({ slices, periodMs, outbox, terminate, now }: Deps) {
  const tickMs = periodMs / slices.length
  let next = 0
  let lastTickMs = now()
  let timer: NodeJS.Timeout | undefined

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
