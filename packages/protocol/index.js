// The client protocol. Gateway, page and tests import it; no other file spells the name of a field.
export * from './codes.js'
export { idOf, keyProblem, namespaceOf, namespaceProblem } from './keys.js'
export {
  BYTES_SUBPROTOCOL,
  deltaLine,
  encode,
  errorMessage,
  JSON_SUBPROTOCOL,
  ProtocolError,
  readClientMessage,
  readRequestId,
  subprotocols,
  VALUE_TAIL,
  valueHead,
  valueLine,
} from './messages.js'
export { NAME_CHARACTERS_MAX, readMemberName } from './names.js'
export { VERSION_CHARACTERS_MAX, versionOf } from './version.js'

/**
 * @typedef {import('./messages.js').Auth} Auth
 * @typedef {import('./messages.js').BytesDelta} BytesDelta
 * @typedef {import('./messages.js').BytesValue} BytesValue
 * @typedef {import('./messages.js').ClientMessage} ClientMessage
 * @typedef {import('./messages.js').ControlMessage} ControlMessage
 * @typedef {import('./messages.js').Get} Get
 * @typedef {import('./messages.js').Ping} Ping
 * @typedef {import('./messages.js').RequestId} RequestId
 * @typedef {import('./messages.js').ServerMessage} ServerMessage
 * @typedef {import('./messages.js').Subscribe} Subscribe
 * @typedef {import('./messages.js').Unsubscribe} Unsubscribe
 */
