// Keycast's own protocol as JSON, which the naive server and the bare sender speak as well; and with values as bytes, as
// the client library speaks it.
import { BYTES_SUBPROTOCOL } from '@keycast/protocol'
import type { Dialect } from './dialect.ts'
import { numberAfter } from './fields.ts'

export const keycast: Dialect = {
  onHello: head => (head.startsWith('{"type":"welcome"') ? 'ready' : undefined),
  enter: (room, name) => [
    JSON.stringify({ type: 'subscribe', id: 0, keys: [room] }),
    ...(name === undefined ? [] : [JSON.stringify({ type: 'join', id: 0, key: room, name })]),
  ],
  publish: (id, room, messageId, dueUs) =>
    `{"type":"publish","id":${id},"key":"${room}","messageId":"${messageId}","data":{"us":${dueUs}}}`,
  subscribe: keys => [JSON.stringify({ type: 'subscribe', id: 0, keys })],
  get: (id, key) => `{"type":"get","id":${id},"key":"${key}"}`,
  valueIn: text => JSON.parse(text),
  ping: '{"type":"ping"}',
  messageStart: '{"type":"message"',
  idOf: head => numberAfter(head, '"id":'),
  kindOf(head) {
    if (head.startsWith('{"type":"pong"')) return 'pong'
    if (head.startsWith('{"type":"value"')) return 'value'
    if (head.startsWith('{"type":"message"')) return 'message'
    if (head.startsWith('{"type":"published"')) return 'answered'
    if (head.startsWith('{"type":"subscribed"') || head.startsWith('{"type":"joined"')) return 'entered'
    if (head.startsWith('{"type":"gap"')) return 'gap'
    if (head.startsWith('{"type":"error"')) return 'refused'
    return head.startsWith('{"type":"closing"') ? 'ignored' : 'unexpected'
  },
}

export const keycastBytes: Dialect = {
  ...keycast,
  subprotocol: BYTES_SUBPROTOCOL,
  valueIn(text) {
    const end = text.indexOf('\n')
    return { ...JSON.parse(text.slice(0, end)), data: JSON.parse(text.slice(end)) }
  },
}
