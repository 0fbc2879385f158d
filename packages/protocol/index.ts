// The client protocol. Gateway, page and tests import it; no other file spells the name of a field.
export * from './codes.js'
export { excerpt, shortened } from './excerpt.ts'
export { ProtocolError } from './fields.ts'
export { idOf, keyProblem, namespaceOf, namespaceProblem, partsOf } from './keys.js'
export {
  type Auth,
  BYTES_SUBPROTOCOL,
  type BytesDelta,
  type BytesValue,
  type ClientMessage,
  type ControlMessage,
  deltaLine,
  type ErrorMessage,
  encode,
  errorMessage,
  type Get,
  JSON_SUBPROTOCOL,
  type Ping,
  type RequestId,
  readClientMessage,
  readRequestId,
  type ServerMessage,
  type Subscribe,
  type Unsubscribe,
  VALUE_TAIL,
  valueHead,
  valueLine,
  type Wanted,
} from './messages.ts'
export { NAME_CHARACTERS_MAX, readMemberName } from './names.ts'
export { isClaim, type Join, type Leave, type Member } from './presence-messages.ts'
export { isProblem, type Problem, problemText, retryAfterMsOf } from './problem.ts'
export { rawMember, rawMembers } from './raw-json.ts'
export {
  createMessageHeads,
  DATA_DEPTH_MAX,
  HISTORY_DEFAULT,
  HISTORY_MAX,
  type History,
  historyBody,
  isMessageId,
  MESSAGE_TAIL,
  type Position,
  type Publish,
  type Published,
  positionsAfter,
  type RoomStart,
  type RoomSubscribed,
  readHistoryQuery,
  readPublishFields,
} from './room-messages.ts'
export { isUser, SUB_CHARACTERS_MAX, USER_CHARACTERS_MAX, USER_PREFIX_CHARACTERS_MAX } from './users.ts'
export { VERSION_CHARACTERS_MAX, versionOf } from './version.js'
