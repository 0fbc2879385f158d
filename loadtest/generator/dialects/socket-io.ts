// What the Socket.IO reference speaks: Engine.IO 4 and Socket.IO 5 packets, over WebSocket only.
// https://socket.io/docs/v4/socket-io-protocol/
import type { Dialect } from './dialect.ts'
import { numberAfter } from './fields.ts'

export const socketIo: Dialect = {
  onHello(head) {
    if (head.startsWith('0{')) return { reply: '40' } // Engine.IO is open: connect to the main namespace
    if (head.startsWith('40')) return 'ready'
    return undefined
  },
  enter: (room, name) => [`420${JSON.stringify(['enter', room, name])}`],
  publish: (id, room, messageId, dueUs) => `42${id}["publish","${room}","${messageId}",{"us":${dueUs}}]`,
  subscribe: keys => [`420${JSON.stringify(['subscribe', keys])}`],
  get: (id, key) => `42${id}["get","${key}"]`,
  valueIn: text => JSON.parse(text.slice(text.indexOf('[')))[0],
  ping: '42["ping"]',
  messageStart: '42["message"',
  idOf: head => numberAfter(head, '43'),
  kindOf(head) {
    if (head.startsWith('42["message"')) return 'message'
    if (head.startsWith('42["value"')) return 'value'
    if (head.startsWith('42["pong"')) return 'pong'
    if (head.startsWith('43'))
      return /^43\d+\[{"code"/.test(head) ? 'refused' : head[2] === '0' ? 'entered' : 'answered'
    return head === '2' ? { reply: '3' } : 'unexpected' // Engine.IO's ping
  },
}
