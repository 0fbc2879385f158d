// Commands to one node, in the order given. Each is kept until its result comes or its deadline passes, and repeated
// after a loss under the same id, unless it is to be said once. By this id a node notices a command that it has heard
// already.
import type { Payer } from '@keycast/service'
import { bytesOf, type Encoded, textIn } from '../wire/codec.ts'

/**
 * How a command ended.
 *
 * - `result`: the node did what it did, and says so. Of one that is `isRepeated`, what it did now: an earlier time it
 *   may have done something else.
 * - `refused`: the node does not know this kind of command, and did nothing.
 * - `unsaid`: the node was never told: nothing was done.
 * - `unknown`: the node was told and nothing was heard back: it may have been done. The same id may be sent again.
 */
export type CommandEnd<R> =
  | { type: 'result'; result: R; isRepeated: boolean }
  | { type: 'refused' }
  | { type: 'unsaid' }
  | { type: 'unknown' }

export interface Pending<R> {
  id: string
  /** The key that it is about: the key's owner does it. */
  key: string
  encoded: Encoded
  /** Whom the node charges for it. */
  payer?: Payer
  deadlineAt: number
  /**
   * After a loss it is not said again: by then the node may have done a later one. Nor is it given up before its deadline:
   * until then it may still be on its way, and come after one that is said in its place.
   */
  isOnce?: boolean
  /** Another node has the key by now: what this one did is of no use. */
  isMoved?: boolean
  /** In any incarnation of the link. */
  wasSaid: boolean
  /** Sent more than once. */
  isRepeated: boolean
  done: (end: CommandEnd<R>) => void
}

/** The end of a command without a result. */
export const unheard = ({ wasSaid }: { wasSaid: boolean }): { type: 'unknown' | 'unsaid' } => ({
  type: wasSaid ? 'unknown' : 'unsaid',
})

const isSaidForGood = ({ isOnce, wasSaid }: { isOnce?: boolean; wasSaid: boolean }) => isOnce === true && wasSaid

/** Commands in one request. */
const COMMANDS_PER_REQUEST_MAX = 200

/** Bytes of the commands in one request, one at least: all heads are one part, all others are joined, and a hub takes 1 MiB of each. */
const BYTES_PER_REQUEST = 256 * 1024

/**
 * Commands that were sent, or ended, and still stand in the list; or else as many as are still to be sent. A link that is
 * always behind would keep every publish in memory. Removed one by one, each would move all others.
 */
const SENT_KEPT = 16

export function createCommands<R>({ now }: { now: () => number }) {
  /** Pending commands, in the order given. */
  const pending = new Map<string, Pending<R>>()
  /** Commands not sent in this incarnation, in order, from `next` on; some may have ended meanwhile. */
  let unsaid: Pending<R>[] = []
  let next = 0
  /** Commands in the last request. */
  let lastSaid = 0

  function finish(command: Pending<R>, end: CommandEnd<R>) {
    pending.delete(command.id)
    command.done(end)
  }

  /** @returns the first that was not sent */
  function firstUnsaid(): Pending<R> | undefined {
    while (next < unsaid.length && pending.get(unsaid[next].id) !== unsaid[next]) next++
    if (next === unsaid.length || (next > SENT_KEPT && next * 2 > unsaid.length)) {
      unsaid = unsaid.slice(next)
      next = 0
    }
    return unsaid[next]
  }

  return {
    startAnew() {
      unsaid = [...pending.values()].filter(command => !isSaidForGood(command))
      next = 0
    },

    /** @param command its id differs from that of every other command of this link */
    add(command: Pending<R>) {
      if (pending.has(command.id)) throw new Error(`a command with the id ${command.id} is under way already`)
      pending.set(command.id, command)
      unsaid.push(command)
    },

    /** Removes and returns the commands of some keys, in order, but for those that may not be said again. */
    take(isOf: (key: string) => boolean): Pending<R>[] {
      const taken = []
      for (const command of pending.values()) {
        if (!isOf(command.key)) continue
        if (isSaidForGood(command)) {
          command.isMoved = true
          continue
        }
        pending.delete(command.id)
        taken.push(command)
      }
      return taken
    },

    /** @param nextNumber called once for each request */
    *nextRequests(nextNumber: () => number) {
      const commands = []
      let bytes = 0
      while (commands.length < COMMANDS_PER_REQUEST_MAX) {
        const command = firstUnsaid()
        if (!command) break
        // A token is in the head.
        bytes += bytesOf(command.encoded.parts) + textIn(command.encoded.head)
        if (bytes > BYTES_PER_REQUEST && commands.length > 0) break
        next++
        command.isRepeated = command.wasSaid
        command.wasSaid = true
        const leftMs = Math.max(0, Math.ceil(command.deadlineAt - now()))
        commands.push({ id: command.id, encoded: command.encoded, leftMs, payer: command.payer })
      }
      if (commands.length > 0) {
        lastSaid = commands.length
        yield { number: nextNumber(), saying: { type: 'command' as const, commands } }
      }
    },

    /** Ignores a second result, and one that comes after the deadline. */
    end(id: string, end: { type: 'refused' } | { type: 'result'; result: R }) {
      const command = pending.get(id)
      if (command?.isMoved) finish(command, unheard(command))
      else if (command) finish(command, end.type === 'result' ? { ...end, isRepeated: command.isRepeated } : end)
    },

    /** Ends the commands whose deadline has passed. */
    expire() {
      const at = now()
      for (const command of pending.values()) if (at >= command.deadlineAt) finish(command, unheard(command))
    },

    /** Ends all commands, those of keys that another node has by now at their deadline: the link stops. */
    stop() {
      for (const command of pending.values()) if (!command.isMoved) finish(command, unheard(command))
    },

    isAllSaid: () => firstUnsaid() === undefined,
    /** Whether more were said, and have not ended, than the last request had: another one is under way beside it. */
    isBusy: () => pending.size - (unsaid.length - next) > lastSaid,
    get size() {
      return pending.size
    },
  }
}
