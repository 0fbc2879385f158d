// Rooms in Keycast's own protocol, which the naive server speaks as well.
import { numberAfter } from './number-after.js'

/** @type {import('./dialect.js').Dialect} */
export const keycast = {
  onHello: head => (head.startsWith('{"type":"welcome"') ? 'ready' : undefined),
  enter: rooms => JSON.stringify({ type: 'subscribe', id: 0, keys: rooms }),
  publish: (id, room, messageId, dueUs) =>
    `{"type":"publish","id":${id},"key":"${room}","messageId":"${messageId}","data":{"us":${dueUs}}}`,
  messageStart: '{"type":"message"',
  idOf: head => numberAfter(head, '"id":'),
  kindOf(head) {
    if (head.startsWith('{"type":"message"')) return 'message'
    if (head.startsWith('{"type":"published"')) return 'published'
    if (head.startsWith('{"type":"subscribed"')) return 'entered'
    if (head.startsWith('{"type":"gap"')) return 'gap'
    if (head.startsWith('{"type":"error"')) return 'refused'
    return head.startsWith('{"type":"closing"') || head.startsWith('{"type":"pong"') ? 'ignored' : 'unexpected'
  },
}
