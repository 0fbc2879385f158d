// Rooms as the Socket.IO reference has them: Engine.IO 4 and Socket.IO 5 packets, over WebSocket only.
// https://socket.io/docs/v4/socket-io-protocol/
import { numberAfter } from './number-after.js'

/** @type {import('./dialect.js').Dialect} */
export const socketIo = {
  onHello(head) {
    if (head.startsWith('0{')) return { reply: '40' } // Engine.IO is open: connect to the main namespace
    if (head.startsWith('40')) return 'ready'
    return undefined
  },
  enter: rooms => `420${JSON.stringify(['enter', rooms])}`,
  publish: (id, room, messageId, dueUs) => `42${id}["publish","${room}","${messageId}",{"us":${dueUs}}]`,
  messageStart: '42["message"',
  idOf: head => numberAfter(head, '43'),
  kindOf(head) {
    if (head.startsWith('42["message"')) return 'message'
    if (head.startsWith('430')) return 'entered'
    if (head.startsWith('43')) return 'published'
    return head === '2' ? { reply: '3' } : 'unexpected' // Engine.IO's ping
  },
}
