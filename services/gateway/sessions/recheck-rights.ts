// keycast.yaml changed: goes through all sessions, in turns, and ends what they may not do any more.
import { createTurns, type World } from '@keycast/service'
import type { Session } from './session.ts'

interface Deps extends Pick<World, 'now' | 'turn'> {
  gate: { reconsider(session: Session, decided: ReadonlySet<string>): void }
  /** Where there are sessions. */
  sessions: (() => Iterable<Session>)[]
}

export function createRecheck({ gate, sessions, now, turn }: Deps) {
  /** Those still to be looked at; another change begins anew. */
  let left: Iterator<Session> = all()
  let decided: ReadonlySet<string> = new Set()
  const turns = createTurns({ now, turn, step })

  function* all() {
    for (const some of sessions) yield* some()
  }

  /** @returns whether there are more */
  function step(): boolean {
    const { done, value: session } = left.next()
    if (done) decided = new Set()
    else if (!session.ended) gate.reconsider(session, decided)
    return !done
  }

  return {
    /** @param names of namespaces where a backend decides who reads, and did not, or the other way round */
    start(names: ReadonlySet<string>) {
      decided = new Set([...decided, ...names])
      left = all()
      turns.start()
    },
  }
}
