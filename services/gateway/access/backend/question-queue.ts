// Sends at most 64 questions of a viewer to backends at a time; the others wait. All clients without a token are one
// viewer, so accounts take turns. A decision has one question at a time, so it stands for its question here.
import {
  createFairQueue,
  createTurns,
  createUniqueQueue,
  type FairQueue,
  type LanePath,
  type UniqueQueue,
  type World,
} from '@keycast/service'
import type { Decision } from './verdicts.ts'
import type { Viewer } from './viewers.ts'

/** The questions about one viewer. */
interface Line {
  underWay: number
  waiting: FairQueue<Decision>
}

/** Of one viewer: more would keep the others from being asked for. */
const UNDER_WAY_MAX = 64

interface Deps<A> {
  /** Sends the question; `undefined` where no token of the viewer is valid. The promise never rejects. */
  ask: (decision: Decision) => Promise<A> | undefined
  /** The question has ended; `undefined` where it was not sent. */
  conclude: (decision: Decision, answer: A | undefined) => void
  now: () => number
  turn: World['turn']
}

/** @template A the known part of the backend's answer */
export function createQuestionQueue<A>({ ask, conclude, now, turn }: Deps<A>) {
  /** Of each viewer who has questions under way. */
  const lines = new Map<Viewer, Line>()
  /** Those that cannot be sent. */
  const unsent: UniqueQueue<Decision> = createUniqueQueue()
  // 20,000 questions may wait when the token that they are to be asked with ends.
  const concluding = createTurns({ now, turn, step: concludeUnsent })

  /** @returns whether there are more */
  function concludeUnsent(): boolean {
    const decision = unsent.take()
    if (!decision) return false
    conclude(decision, undefined)
    const line = lines.get(decision.viewer)
    if (line) sendNext(decision.viewer, line)
    return unsent.size > 0
  }

  function sendNext(viewer: Viewer, line: Line) {
    while (line.underWay < UNDER_WAY_MAX) {
      const decision = line.waiting.take()
      if (!decision) break
      const asked = ask(decision)
      if (!asked) {
        unsent.add(decision)
        return concluding.start()
      }
      line.underWay++
      void asked.then(answer => ended(viewer, line, decision, answer))
    }
    if (line.underWay === 0) lines.delete(viewer)
  }

  function ended(viewer: Viewer, line: Line, decision: Decision, answer: A) {
    line.underWay--
    sendNext(viewer, line)
    conclude(decision, answer)
  }

  return {
    /**
     * Sends a question now, or as soon as there is room.
     *
     * @param decision that is not being asked about
     * @param path for whom; those of one viewer take turns
     */
    add(decision: Decision, path: LanePath) {
      const { viewer } = decision
      const line = lines.get(viewer) ?? { underWay: 0, waiting: createFairQueue() }
      lines.set(viewer, line)
      line.waiting.add(decision, path)
      sendNext(viewer, line)
    },

    /**
     * Another account waits for the same answer.
     *
     * @param decision that is being asked about
     */
    coalesce(decision: Decision, path: LanePath) {
      const waiting = lines.get(decision.viewer)?.waiting
      if (waiting?.has(decision)) waiting.add(decision, path)
    },

    /**
     * Nobody waits for the answer any more.
     *
     * @returns whether the question was still waiting to be sent
     */
    cancel: (decision: Decision): boolean => lines.get(decision.viewer)?.waiting.delete(decision) === true,
  }
}
