// The client protocol. Gateway, page and tests import it; no other file spells the name of a field.
export * from './codes.js'
export { excerpt, shortened } from './excerpt.ts'
export { ProtocolError } from './fields.ts'
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
} from './messages.ts'
export { NAME_CHARACTERS_MAX, readMemberName } from './names.ts'
export { isClaim } from './presence-messages.ts'
export {
  createMessageHeads,
  HISTORY_DEFAULT,
  HISTORY_MAX,
  historyBody,
  isMessageId,
  MESSAGE_TAIL,
  readHistoryQuery,
  readPublishFields,
} from './room-messages.ts'
export { isUser, SUB_CHARACTERS_MAX, USER_CHARACTERS_MAX, USER_PREFIX_CHARACTERS_MAX } from './users.ts'
export { VERSION_CHARACTERS_MAX, versionOf } from './version.js'

/**
 * @typedef {import('./messages.ts').Auth} Auth
 * @typedef {import('./messages.ts').BytesDelta} BytesDelta
 * @typedef {import('./messages.ts').BytesValue} BytesValue
 * @typedef {import('./messages.ts').ClientMessage} ClientMessage
 * @typedef {import('./messages.ts').ControlMessage} ControlMessage
 * @typedef {import('./messages.ts').Get} Get
 * @typedef {import('./messages.ts').History} History
 * @typedef {import('./messages.ts').Ping} Ping
 * @typedef {import('./messages.ts').Publish} Publish
 * @typedef {import('./messages.ts').Published} Published
 * @typedef {import('./presence-messages.ts').Join} Join
 * @typedef {import('./presence-messages.ts').Leave} Leave
 * @typedef {import('./presence-messages.ts').Member} Member
 * @typedef {import('./messages.ts').RequestId} RequestId
 * @typedef {import('./room-messages.ts').RoomStart} RoomStart
 * @typedef {import('./room-messages.ts').RoomSubscribed} RoomSubscribed
 * @typedef {import('./messages.ts').ServerMessage} ServerMessage
 * @typedef {import('./messages.ts').Subscribe} Subscribe
 * @typedef {import('./messages.ts').Unsubscribe} Unsubscribe
 * @typedef {import('./messages.ts').Wanted} Wanted
 */
