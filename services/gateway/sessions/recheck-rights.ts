// keycast.yaml changed: goes through all sessions, in turns, and ends what they may not do any more. With 10,000 sessions
// that takes seconds: one that is to be written to before its turn is looked at first.
import { createTurns, type World } from '@keycast/service'
import type { Outbox } from '../delivery/outbox.ts'
import type { Session } from './session.ts'

interface Deps extends Pick<World, 'now' | 'turn'> {
  gate: { reconsider(session: Session, decided: ReadonlySet<string>): void }
  outbox: Pick<Outbox, 'recheckFirst'>
  /** Where there are sessions. */
  sessions: (() => Iterable<Session>)[]
}

export function createRecheck({ gate, outbox, sessions, now, turn }: Deps) {
  /** Those that may still have to be looked at; another change begins anew. */
  let left: Iterator<Session> = all()
  /** Those that were. */
  let looked = new Set<Session>()
  /** The one that is looked at: some of its keys were not yet. */
  let current: Session | undefined
  let decided: ReadonlySet<string> = new Set()
  const turns = createTurns({ now, turn, step })

  function* all() {
    for (const some of sessions) yield* some()
  }

  /** @returns whether there are more */
  function step(): boolean {
    const { done, value: session } = left.next()
    if (done) {
      decided = new Set()
      looked = new Set()
      outbox.recheckFirst(undefined)
    } else if (!session.ended) look(session)
    return !done
  }

  function isDue(session: Session) {
    return session === current || !looked.has(session)
  }

  /** Looks at a session, if that is due. @returns false where that is under way: nothing may be written to it meanwhile */
  function look(session: Session): boolean {
    if (session === current) return false
    if (!isDue(session)) return true
    looked.add(session)
    current = session
    try {
      gate.reconsider(session, decided)
    } finally {
      current = undefined
    }
    return true
  }

  return {
    /** @param names of namespaces where a backend decides who reads, and did not, or the other way round */
    start(names: ReadonlySet<string>) {
      decided = new Set([...decided, ...names])
      left = all()
      looked = new Set()
      outbox.recheckFirst({ look, isDue })
      turns.start()
    },
  }
}
