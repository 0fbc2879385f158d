// A backend hands a value over: it is checked, and kept as the room of one message that stands for its key.
import { encodeKept, type PutCommand, readPushedKey, type Taken } from '@keycast/backbone'
import { idOf, keyProblem, namespaceOf, type Problem } from '@keycast/protocol'
import { idProblem, type PushedNamespaces } from '@keycast/service'
import type { Outcome, Publish, Retention } from '../log/log.ts'

/** A value stays until the next one, or its removal. */
const KEPT: Retention = { messages: 1, ageMs: 36_525 * 24 * 3_600_000, bytes: 2 ** 30 }

/** A record that there is no value keeps the rank in mind: so long a process may be behind that has an older one. */
const REMOVED: Retention = { ...KEPT, ageMs: 24 * 3_600_000 }

export const isPushed = (namespaces: Pick<PushedNamespaces, 'get'>, key: string | undefined): key is string => {
  if (key === undefined || keyProblem(key) !== undefined) return false
  const namespace = namespaces.get(namespaceOf(key))
  return namespace !== undefined && idProblem(namespace, idOf(key)) === undefined
}

/** @returns what the log is to keep, or why it is refused */
export function publishOf(
  { key, content, rank }: PutCommand,
  { namespaces, share }: { namespaces: PushedNamespaces; share: number },
): Publish | Problem {
  const named = readPushedKey(key)
  if (!isPushed(namespaces, named)) {
    return { code: 'unknown_namespace', message: 'the journal has another configuration than the gateway' }
  }
  if (content && content.body.length > (namespaces.get(namespaceOf(named))?.bytesMax ?? 0)) return { code: 'too_large' }
  const data = encodeKept(content)
  return {
    room: key,
    messageId: undefined,
    from: '',
    data,
    retention: content ? KEPT : REMOVED,
    share,
    value: { rank },
  }
}

/** What the backend is told. */
export function takenOf(outcome: Outcome | { error: 'publish_unknown' | 'rate_limited' }): Taken {
  if (outcome.error === undefined) return { outcome: 'taken' }
  switch (outcome.error) {
    case 'older':
      return { outcome: 'older', rank: outcome.rank }
    case 'log_full':
      return {
        code: 'capacity',
        message: 'nothing was changed: the log has no room (JOURNAL_BYTES_MAX, or the disk)',
      }
    case 'publish_unknown':
      return {
        code: 'journal_unavailable',
        message: 'the log did not say whether it has the value: perhaps. Call again',
      }
    default:
      return {
        code: 'journal_unavailable',
        message: 'nothing was changed: the journal cannot take more now',
      }
  }
}
