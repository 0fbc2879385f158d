// A sample of every message that crosses the WebSocket, typed to have every field and no other: when a message changes,
// `tsc` demands the change here. Its documentation is held to them, and fuzzing begins with them.
import type { BytesDelta, BytesValue, ClientMessage, ControlMessage, Value } from './messages.ts'
import type { Member } from './presence-messages.ts'
import type { HistoryAnswer, Message } from './room-messages.ts'
import { versionOf } from './version.js'

export const key = 'conversation:42'
export const version = versionOf(Buffer.from('{}'))
const order = 1_790_000_000_000

export const fromClients: { [T in ClientMessage['type']]: Required<Extract<ClientMessage, { type: T }>> } = {
  get: { type: 'get', id: 1, key, version },
  subscribe: { type: 'subscribe', id: 'a', keys: [{ key, version, order }] },
  unsubscribe: { type: 'unsubscribe', id: 2, keys: [key] },
  ping: { type: 'ping', id: 3 },
  auth: { type: 'auth', id: 4, token: 't' },
  publish: { type: 'publish', id: 5, key: 'room:42', messageId: 'q2VbR0cJmZC0yqk3', data: '{}' },
  history: { type: 'history', id: 6, key: 'room:42', epoch: 'e', after: 1, before: 9, limit: 50 },
  join: { type: 'join', id: 7, key: 'room:42', name: 'Ann', claim: 'mB2nq8xKQ3eV7bTnHw1cXz' },
  leave: { type: 'leave', id: 8, key: 'room:42' },
}

const member: Required<Member> = { id: 'a', user: 'ann', name: 'Ann', tabs: 1 }

export const fromGateways: { [T in ControlMessage['type']]: Required<Extract<ControlMessage, { type: T }>> } = {
  welcome: {
    type: 'welcome',
    session: 's',
    heartbeatMs: 25_000,
    limits: { messageBytes: 262_144, keysPerSession: 5_000, requestsPerSecond: 1_000 },
    user: 'ann',
    expiresInMs: 3_600_000,
  },
  authed: { type: 'authed', id: 1, user: 'ann', expiresInMs: 3_600_000 },
  subscribed: { type: 'subscribed', id: 1, keys: [{ key }] },
  ok: { type: 'ok', id: 1 },
  pong: { type: 'pong', id: 1, count: 2 },
  current: { type: 'current', id: 1, key, version, order },
  stale: { type: 'stale', key, sinceMs: 3.5, code: 'backend_error' },
  error: {
    type: 'error',
    id: 1,
    key,
    subscribed: true,
    code: 'message_refused',
    message: 'none',
    retryAfterMs: 1_000,
    reason: 'profanity',
  },
  closing: { type: 'closing', reconnectAfterMs: 850.5 },
  published: { type: 'published', id: 1, key: 'room:42', epoch: 'e', seq: 7, at: 1_790_000_000_000, duplicate: true },
  gap: { type: 'gap', key: 'room:42', epoch: 'e', seq: 7, oldest: 3, reason: 'trimmed' },
  joined: { type: 'joined', id: 1, key: 'room:42', name: 'Ann', claim: 'mB2nq8xKQ3eV7bTnHw1cXz' },
  members: { type: 'members', key: 'room:42', rev: 7, count: 1, members: [member] },
  presence: { type: 'presence', key: 'room:42', rev: 8, count: 1, joined: [member], left: [member] },
}

const inHistory: Required<HistoryAnswer>['messages'][number] = {
  seq: 7,
  at: 1_790_000_000_000,
  from: 'ann',
  messageId: 'q2VbR0cJmZC0yqk3',
  deleted: true,
  deletes: [[3, 5]],
  data: 0,
}
export const message = { type: 'message', key: 'room:42', ...inHistory } as Required<Message>
export const historyAnswer: Required<HistoryAnswer> = {
  type: 'history',
  id: 1,
  key: 'room:42',
  epoch: 'e',
  oldest: 3,
  newest: 7,
  messages: [inHistory],
  more: true,
  truncated: true,
}

/** Typed likewise; of a value's forms a message has one. */
export const value: Required<Value> = {
  type: 'value',
  id: 1,
  key,
  version,
  order,
  data: 0,
  contentType: 'text/plain',
  text: '',
  base64: '',
}
export const valueBytes: Required<BytesValue> = { type: 'value', id: 1, key, version, order, contentType: 'text/plain' }
export const deltaBytes: Required<BytesDelta> = {
  type: 'delta',
  key,
  from: version,
  version,
  order,
  contentType: 'text/plain',
}
