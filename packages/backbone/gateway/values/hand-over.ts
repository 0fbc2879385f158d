// Gives values that backends hand over to the nodes of their keys, each once.
import type { ErrorCode } from '@keycast/protocol'
import type { HandedOver, Taken } from '../../backbone.ts'
import type { CommandEnd } from '../commands.ts'

/** Of values under way to their owners. Above it new ones are refused: the nodes are behind. */
const BYTES_MAX = 64 * 2 ** 20

/** The cost of one beside its body. */
const BYTES = 1_024

/** The caller repeats one that was not taken after this time. */
const RETRY_MS = 1_000

interface Options<Command extends { key: string }> {
  /** Of the router. */
  command: (
    asked: { key: string; command: Command; deadlineMs: number; isOnce: true },
    // biome-ignore lint/suspicious/noExplicitAny: results of other commands are not ended with this
    done: (end: CommandEnd<any>) => void,
  ) => void
  commandOf: (value: HandedOver) => Command
  /** What the caller is told of one of which no result came. */
  texts: { code: ErrorCode; noNode: string; unknown: string; refused: string }
}

export function createHandOver<Command extends { key: string }>({
  command,
  commandOf,
  texts: { code, noNode, unknown, refused },
}: Options<Command>) {
  const whyNot = { unsaid: noNode, unknown, refused }
  const notTaken = (message: string): Taken => ({ code, message, retryAfterMs: RETRY_MS })
  let underWay = 0

  return (value: HandedOver, { deadlineMs }: { deadlineMs: number }): Promise<Taken> =>
    new Promise(done => {
      const bytes = BYTES + (value.content?.body.length ?? 0)
      if (underWay + bytes > BYTES_MAX) return done({ code: 'too_many_waiting', retryAfterMs: RETRY_MS })
      underWay += bytes
      const put = commandOf(value)
      command({ key: put.key, command: put, deadlineMs, isOnce: true }, end => {
        underWay -= bytes
        done(end.type === 'result' ? end.result : notTaken(whyNot[end.type]))
      })
    })
}
