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

interface Commanded<Command> {
  command: (
    command: { id: string; key: string; command: Command; deadlineMs: number; isOnce: true },
    // biome-ignore lint/suspicious/noExplicitAny: results of other commands are not ended with this
    done: (end: CommandEnd<any>) => void,
  ) => void
}

interface Options<Command extends { key: string }> {
  /** To the key's owner. */
  linkOf: (key: string) => Commanded<Command> | undefined
  commandOf: (value: HandedOver) => Command
  nextCommand: () => string
  /** What the caller is told of one of which no result came. */
  texts: { code: ErrorCode; noNode: string; unknown: string; refused: string }
}

export function createHandOver<Command extends { key: string }>({
  linkOf,
  commandOf,
  nextCommand,
  texts: { code, noNode, unknown, refused },
}: Options<Command>) {
  const whyNot = { unsaid: noNode, unknown, refused }
  const notTaken = (message: string): Taken => ({ code, message, retryAfterMs: RETRY_MS })
  let underWay = 0

  return (value: HandedOver, { deadlineMs }: { deadlineMs: number }): Promise<Taken> =>
    new Promise(done => {
      const link = linkOf(value.key)
      if (!link) return done(notTaken(noNode))
      const bytes = BYTES + (value.content?.body.length ?? 0)
      if (underWay + bytes > BYTES_MAX) return done({ code: 'too_many_waiting', retryAfterMs: RETRY_MS })
      underWay += bytes
      const command = commandOf(value)
      link.command({ id: nextCommand(), key: command.key, command, deadlineMs, isOnce: true }, end => {
        underWay -= bytes
        done(end.type === 'result' ? end.result : notTaken(whyNot[end.type]))
      })
    })
}
