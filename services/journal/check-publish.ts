// Checks a publish before it is put into a batch. Gateways have checked its data already.
import { isMessageId, isUser, keyProblem, namespaceOf } from '@keycast/protocol'

/**
 * @typedef {import('@keycast/backbone').PublishCommand} PublishCommand
 * @typedef {'unknown_namespace' | 'too_large' | 'bad_message'} PublishProblem
 */

/**
 * @param {PublishCommand} command
 * @param {import('@keycast/service').JournalNamespaces} namespaces
 * @returns {PublishProblem | undefined}
 */
export function checkPublish({ room, messageId, from, data }, namespaces) {
  const namespace = keyProblem(room) === undefined ? namespaces.get(namespaceOf(room)) : undefined
  if (!namespace) return 'unknown_namespace'
  if (data.length > namespace.bytesMax) return 'too_large'
  const hasGoodId = messageId === undefined || isMessageId(messageId)
  const hasGoodFrom = from === '' || isUser(from)
  return hasGoodId && hasGoodFrom && data.length > 0 ? undefined : 'bad_message'
}
