// Sends at most 64 questions of a viewer to backends at a time; the others wait. All clients without a token are one
// viewer, so accounts take turns. A decision has one question at a time, so it stands for its question here.
import { createTurns, createUniqueQueue } from '@keycast/service'
import { createFairQueue } from './fair-queue.ts'

/**
 * @typedef {import('./verdicts.ts').Decision} Decision
 * @typedef {import('./viewers.ts').Viewer} Viewer
 *
 * The questions about one viewer.
 * @typedef {{ underWay: number, waiting: import('./fair-queue.ts').FairQueue<Decision> }} Line
 */

/** Of one viewer: more would keep the others from being asked for. */
const UNDER_WAY_MAX = 64

/**
 * @template A the known part of the backend's answer
 * @param {object} deps
 * @param {(decision: Decision) => Promise<A> | undefined} deps.ask sends the question; `undefined` where no token of the
 *   viewer is valid. The promise never rejects
 * @param {(decision: Decision, answer: A | undefined) => void} deps.conclude the question has ended; `undefined` where it
 *   was not sent
 * @param {() => number} deps.now in milliseconds
 */
export function createQuestionQueue({ ask, conclude, now }) {
  /** Of each viewer who has questions under way. @type {Map<Viewer, Line>} */
  const lines = new Map()
  /** Those that cannot be sent. @type {import('@keycast/service').UniqueQueue<Decision>} */
  const unsent = createUniqueQueue()
  // 20,000 questions may wait when the token that they are to be asked with ends.
  const concluding = createTurns({ now, step: concludeUnsent })

  /** @returns {boolean} whether there are more */
  function concludeUnsent() {
    const decision = unsent.take()
    if (!decision) return false
    conclude(decision, undefined)
    const line = lines.get(decision.viewer)
    if (line) sendNext(decision.viewer, line)
    return unsent.size > 0
  }

  /** @param {Viewer} viewer @param {Line} line */
  function sendNext(viewer, line) {
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

  /** @param {Viewer} viewer @param {Line} line @param {Decision} decision @param {A} answer */
  function ended(viewer, line, decision, answer) {
    line.underWay--
    sendNext(viewer, line)
    conclude(decision, answer)
  }

  return {
    /**
     * Sends a question now, or as soon as there is room.
     *
     * @param {Decision} decision that is not being asked about
     * @param {unknown} lane for whom; those of one viewer take turns
     */
    add(decision, lane) {
      const { viewer } = decision
      const line = lines.get(viewer) ?? { underWay: 0, waiting: createFairQueue() }
      lines.set(viewer, line)
      line.waiting.add(decision, lane)
      sendNext(viewer, line)
    },

    /**
     * Another account waits for the same answer.
     *
     * @param {Decision} decision that is being asked about
     * @param {unknown} lane
     */
    coalesce(decision, lane) {
      const waiting = lines.get(decision.viewer)?.waiting
      if (waiting?.has(decision)) waiting.add(decision, lane)
    },

    /**
     * Nobody waits for the answer any more.
     *
     * @param {Decision} decision
     * @returns {boolean} whether the question was still waiting to be sent
     */
    cancel: decision => lines.get(decision.viewer)?.waiting.delete(decision) === true,
  }
}
