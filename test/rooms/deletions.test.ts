// An operator has messages deleted: no process and no file gives them away any more, and whoever read them is told.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { atEnd, newFolder } from '../support/cleanup.ts'
import { eventually } from '../support/deadline.ts'
import { ask } from '../support/http.ts'
import { joinRooms, type RoomClient } from '../support/rooms.ts'
import { startRooms } from '../support/system.ts'
import { startValkey } from '../support/valkey.ts'

const folder = newFolder()

const auditLog = join(folder, 'audit.log')
const env = { GATEWAY_AUDIT_LOG: auditLog }

const messagesOf = ({ received }: RoomClient) => received.filter(({ type }) => type === 'message')

const withoutTimes = (messages: any[]) =>
  messages.map(({ seq, data, from, deleted, deletes }) => ({ seq, data, from, deleted, deletes }))

const valkey = await startValkey()
atEnd(() => valkey.remove())

describe.each([
  ['lmdb', { journals: 1, journalEnv: { JOURNAL_DATA: join(folder, 'log') } }],
  ['valkey', { journals: 2, journalEnv: { JOURNAL_LOG: 'valkey', VALKEY_URL: valkey.url, VALKEY_ALLOW_LOSS: 'true' } }],
])('with the log in %s', (_, options) => {
  test('readers at every gateway are told in their order, later ones find places, and nothing brings it back', async () => {
    const { gateways } = await startRooms({ gateways: 2, env, ...options })
    const [{ url, call }, other] = gateways
    const say = (key: string, from: string, data: string) => call('/v1/publish', { key, from, data })
    const [here, there] = [await joinRooms(url), await joinRooms(other.url)]
    for (const client of [here, there]) await client.subscribe('room:1')
    await say('room:1', 'ann', 'one')
    await say('room:1', 'bob', 'two')
    await say('room:1', 'ann', 'three')
    await say('room:2', 'bob', 'four')
    await eventually(() => messagesOf(there).length === 3, 'the messages')

    expect((await other.call('/v1/rooms/room:1/messages/1', undefined, 'DELETE')).json()).toEqual({
      messagesDeleted: 1,
    })
    expect((await call('/v1/users/bob/messages', undefined, 'DELETE')).json()).toEqual({ messagesDeleted: 2 })
    for (const client of [here, there]) {
      await eventually(() => messagesOf(client).length === 5, 'readers being told')
      expect(withoutTimes(messagesOf(client).slice(3))).toEqual([
        { seq: 4, deletes: [[1, 1]], data: null },
        { seq: 5, deletes: [[2, 2]], data: null },
      ])
    }

    const late = await joinRooms(url)
    await late.subscribe({ key: 'room:1', last: 10 })
    await eventually(() => messagesOf(late).length === 5, 'the history')
    expect(withoutTimes(messagesOf(late))).toEqual([
      { seq: 1, deleted: true, data: null },
      { seq: 2, deleted: true, data: null },
      { seq: 3, from: 'ann', data: 'three' },
      { seq: 4, deletes: [[1, 1]], data: null },
      { seq: 5, deletes: [[2, 2]], data: null },
    ])

    expect((await call('/v1/rooms/room:1', undefined, 'DELETE')).json()).toEqual({ messagesDeleted: 5 })
    await eventually(() => messagesOf(there).length === 6, 'readers being told')
    expect(withoutTimes(messagesOf(there).slice(5))).toEqual([{ seq: 6, deletes: [[1, 5]], data: null }])
    const history = (await ask(`${other.http}/v1/messages/room:1`)).json()
    expect(withoutTimes(history.messages)).toEqual([{ seq: 6, deletes: [[1, 5]], data: null }])
    expect((await say('room:1', 'ann', 'five')).json()).toMatchObject({ seq: 7 })
  })
})

test('the audit log has who called, and what came of it', () => {
  const lines = readFileSync(auditLog, 'utf8').trim().split('\n')
  expect(lines.slice(0, 3).map(line => JSON.parse(line))).toEqual([
    { at: expect.any(String), caller: 'test', method: 'DELETE', path: '/v1/rooms/room:1/messages/1', status: 200 },
    { at: expect.any(String), caller: 'test', method: 'DELETE', path: '/v1/users/bob/messages', status: 200 },
    { at: expect.any(String), caller: 'test', method: 'DELETE', path: '/v1/rooms/room:1', status: 200 },
  ])
})
