// Checks a publish before it is put into a batch. Gateways have checked its data already.
import type { PublishCommand } from '@keycast/backbone'
import { isMessageId, isUser, namespaceOf } from '@keycast/protocol'
import { type JournalNamespaces, roomProblem } from '@keycast/service'

type PublishProblem = 'unknown_namespace' | 'too_large' | 'bad_message'

export function checkPublish(
  { room, messageId, from, data }: PublishCommand,
  namespaces: JournalNamespaces,
): PublishProblem | undefined {
  const namespace = roomProblem(room) === undefined ? namespaces.get(namespaceOf(room)) : undefined
  if (!namespace) return 'unknown_namespace'
  if (data.length > namespace.bytesMax) return 'too_large'
  const hasGoodId = messageId === undefined || isMessageId(messageId)
  const hasGoodFrom = from === '' || isUser(from)
  return hasGoodId && hasGoodFrom && data.length > 0 ? undefined : 'bad_message'
}
