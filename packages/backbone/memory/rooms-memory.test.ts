import { publishTo } from '../gateway/rooms/rooms-backbone.ts'
import { createMemoryRooms } from './rooms-memory.ts'

function setup() {
  const rooms = createMemoryRooms()
  const seen: any[] = []
  const backbone = rooms.backbone({
    onHead: (_, { seq, after }) => seen.push(['head', seq, after]),
    onMessages: (_, { messages }) => seen.push(...messages.map(({ seq }) => seq)),
    onGap: (_, { seq, reason }) => seen.push(['gap', seq, reason]),
    onFailed() {},
  })
  backbone.start()
  const publish = (messageId = undefined) =>
    publishTo(backbone, { room: 'room:1', messageId, from: 'ann', data: Buffer.from('1') }, { deadlineMs: 1_000 })
  return { rooms, backbone, seen, publish }
}

test('a watcher is told the head, then every message', async () => {
  const { backbone, seen, publish } = setup()
  await publish()
  backbone.watch('room:1')
  await undefined
  expect(await publish()).toEqual({ epoch: 'E1', seq: 2, at: expect.any(Number), duplicate: false })
  expect(seen).toEqual([['head', 1, 1], 2])
})

test('what was missed while the journal was away is given, or told', async () => {
  const { rooms, backbone, seen, publish } = setup()
  backbone.watch('room:1', { epoch: 'E1', seq: 0 })
  await undefined
  rooms.setAway(true)
  expect(await publish()).toMatchObject({ code: 'journal_unavailable' })
  const append = () => rooms.append({ room: 'room:1', messageId: undefined, from: '', data: Buffer.from('1') })
  append()
  rooms.setAway(false)
  rooms.setAway(true)
  append()
  append()
  rooms.trim('room:1', 1)
  rooms.setAway(false)
  rooms.startEpoch('E2')
  expect(seen).toEqual([['head', 0, 0], ['head', 1, 0], 1, ['gap', 3, 'trimmed'], ['gap', 0, 'epoch']])
})

test('a history has bounds, and says whether it is whole', async () => {
  const { rooms, backbone, publish } = setup()
  for (let n = 0; n < 5; n++) await publish()
  rooms.trim('room:1', 4)
  const history = async (range: any) => {
    const { messages, ...rest } = (await backbone.history('room:1', range, { deadlineMs: 1_000 })) as any
    return { ...rest, seqs: messages?.map(({ seq }: any) => seq) }
  }
  expect(await history({ after: 0, limit: 2 })).toMatchObject({ seqs: [2, 3], more: true, truncated: true, oldest: 2 })
  expect(await history({ before: 6, limit: 9 })).toMatchObject({ seqs: [2, 3, 4, 5], more: false, truncated: false })
  expect(await history({ epoch: 'E0', after: 0, limit: 2 })).toMatchObject({ code: 'other_epoch' })
})
