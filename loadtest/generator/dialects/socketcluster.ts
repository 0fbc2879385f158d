// What SocketCluster speaks since its version 15 (protocol 2), as its server and its client are written: JSON packets
// with an `event`, and a `cid` where an answer is wanted, which comes with the same number as `rid`. An empty message is
// the server's ping, and the client's pong.
import type { Dialect } from './dialect.ts'
import { numberAfter } from './fields.ts'

export const socketCluster: Dialect = {
  greeting: '{"event":"#handshake","data":{"authToken":null},"cid":0}',
  onHello: head => (head.startsWith('{"rid":0,"data":{"id":') ? 'ready' : undefined),
  enter: (room, name) => [
    ...(name === undefined ? [] : [JSON.stringify({ event: 'claim', data: { room, name }, cid: 0 })]),
    ...socketCluster.subscribe([room]),
  ],
  publish: (id, room, messageId, dueUs) =>
    `{"event":"#publish","data":{"channel":"${room}","data":{"messageId":"${messageId}","data":{"us":${dueUs}}}},"cid":${id}}`,
  subscribe: keys => keys.map(channel => JSON.stringify({ event: '#subscribe', data: { channel }, cid: 0 })),
  get: (id, key) => `{"event":"get","data":"${key}","cid":${id}}`,
  valueIn: text => JSON.parse(text).data,
  ping: '{"event":"ping"}',
  messageStart: '{"event":"#publish"',
  idOf: head => numberAfter(head, '"rid":'),
  kindOf(head) {
    if (head.startsWith('{"event":"#publish"')) return 'message'
    if (head.startsWith('{"event":"pong"')) return 'pong'
    if (head.startsWith('{"rid":')) {
      if (/^{"rid":\d+,"error"/.test(head)) return 'refused'
      return head[7] === '0' ? 'entered' : 'answered'
    }
    return head === '' ? { reply: '' } : 'unexpected'
  },
}
