// The client protocol. Gateway, page and tests import it; no other file spells the name of a field.
export * from './codes.js'
export { excerpt, shortened } from './excerpt.js'
export { ProtocolError } from './fields.js'
export { idOf, keyProblem, namespaceOf, namespaceProblem } from './keys.js'
export {
  BYTES_SUBPROTOCOL,
  deltaLine,
  encode,
  errorMessage,
  JSON_SUBPROTOCOL,
  readClientMessage,
  readRequestId,
  VALUE_TAIL,
  valueHead,
  valueLine,
} from './messages.js'
export { NAME_CHARACTERS_MAX, readMemberName } from './names.js'
export { isClaim } from './presence-messages.js'
export {
  createMessageHeads,
  HISTORY_DEFAULT,
  HISTORY_MAX,
  historyBody,
  isMessageId,
  MESSAGE_TAIL,
  readHistoryQuery,
  readPublishFields,
} from './room-messages.js'
export { isUser, SUB_CHARACTERS_MAX, USER_CHARACTERS_MAX, USER_PREFIX_CHARACTERS_MAX } from './users.js'
export { VERSION_CHARACTERS_MAX, versionOf } from './version.js'

/**
 * @typedef {import('./messages.js').Auth} Auth
 * @typedef {import('./messages.js').BytesDelta} BytesDelta
 * @typedef {import('./messages.js').BytesValue} BytesValue
 * @typedef {import('./messages.js').ClientMessage} ClientMessage
 * @typedef {import('./messages.js').ControlMessage} ControlMessage
 * @typedef {import('./messages.js').Get} Get
 * @typedef {import('./messages.js').History} History
 * @typedef {import('./messages.js').Ping} Ping
 * @typedef {import('./messages.js').Publish} Publish
 * @typedef {import('./messages.js').Published} Published
 * @typedef {import('./presence-messages.js').Join} Join
 * @typedef {import('./presence-messages.js').Leave} Leave
 * @typedef {import('./presence-messages.js').Member} Member
 * @typedef {import('./messages.js').RequestId} RequestId
 * @typedef {import('./room-messages.js').RoomStart} RoomStart
 * @typedef {import('./room-messages.js').RoomSubscribed} RoomSubscribed
 * @typedef {import('./messages.js').ServerMessage} ServerMessage
 * @typedef {import('./messages.js').Subscribe} Subscribe
 * @typedef {import('./messages.js').Unsubscribe} Unsubscribe
 * @typedef {import('./messages.js').Wanted} Wanted
 */
