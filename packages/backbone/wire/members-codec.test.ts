import { decodeFromHub, encodeAnswers } from './envelope.ts'
import { joinKey, membersKey, readPresenceKey, roomOf } from './members-codec.ts'
import { type Answer, historyKey, roomsCodec } from './rooms-codec.ts'

function passed(...answers: Answer[]) {
  const parts = encodeAnswers({ link: 'L', number: 1, reached: 1 }, answers.map(roomsCodec.encodeAnswer), [])
  const decoded = decodeFromHub(
    parts.map(part => Buffer.from(part)),
    roomsCodec,
  )
  return decoded.type === 'answers' ? decoded.answers : undefined
}

const ann = { id: 'a1', user: 'ann', name: 'Ann', tabs: 2 }
const guest = { id: 'b2', name: 'Søren', tabs: 1 }

test('answers come out as they went in', () => {
  const key = 'room:1 members'
  const answers: Answer[] = [
    { type: 'joined', key: 'room:1 join x.1', name: 'Ann' },
    { type: 'left', key: 'room:1 join x.1' },
    { type: 'members', key, epoch: 'E', rev: 7, count: 2, members: [ann, guest] },
    { type: 'members', key, epoch: 'E', rev: 7, count: 1_000 },
    { type: 'presence', key, epoch: 'E', rev: 8, count: 1, joined: [], left: [guest] },
    { type: 'presence', key, epoch: 'E', rev: 8, count: 1_001 },
  ]
  expect(passed(...answers)).toEqual(answers)
})

test('the bytes of a list are made once, however many links are sent it', () => {
  const answer: Answer = { type: 'members', key: 'room:1 members', epoch: 'E', rev: 7, count: 1, members: [ann] }
  expect(roomsCodec.encodeAnswer(answer).parts[0]).toBe(roomsCodec.encodeAnswer(answer).parts[0])
})

test.each([
  [{ type: 'joined', key: 'room:1 join x.1' }, []],
  [{ type: 'members', key: 'room:1 members', epoch: 'E', rev: 1 }, []],
  [{ type: 'members', key: 'room:1 members', epoch: 'E', rev: 1, count: 1 }, ['no JSON']],
  [{ type: 'members', key: 'room:1 members', epoch: 'E', rev: 1, count: 1 }, ['{}']],
  [{ type: 'members', key: 'room:1 members', epoch: 'E', rev: 1, count: 1 }, ['[{"id":"a"}]']],
  [{ type: 'members', key: 'room:1 members', epoch: 'E', rev: 1, count: 1 }, ['[null]']],
  [{ type: 'presence', key: 'room:1 members', epoch: 'E', rev: 1, count: 1 }, ['[[]]']],
  [{ type: 'presence', key: 'room:1 members', epoch: 'E', rev: 1, count: 1 }, ['5']],
])('damaged, it is refused: %j %j', (head, parts) => {
  expect(() => {
    roomsCodec.decodeAnswer(
      head,
      parts.map(part => Buffer.from(part)),
    )
  }).toThrow(expect.objectContaining({ name: 'WireError' }))
})

test('a join says who, and keeps what else a newer gateway says to itself', () => {
  const join = { user: '', name: 'Ann', claim: 'secret', leaving: 'now' }
  expect(roomsCodec.readPayload?.({ ...join, colour: 'red' })).toEqual(join)
  expect(roomsCodec.readPayload?.({ user: 'ann', name: 'Ann' })).toEqual({
    user: 'ann',
    name: 'Ann',
    claim: undefined,
    leaving: undefined,
  })
  for (const bad of [{ user: 'ann' }, { name: 'Ann' }, { user: 1, name: 'Ann' }, { user: '', name: '', claim: 1 }]) {
    expect(() => roomsCodec.readPayload?.(bad)).toThrow('a join is incomplete')
  }
})

test('the keys of joins, members and parts of histories are told apart, and all of a room lead to it', () => {
  expect(readPresenceKey(membersKey('room:1'))).toEqual({ room: 'room:1', tab: undefined })
  expect(readPresenceKey(joinKey('room:1', 'x.1'))).toEqual({ room: 'room:1', tab: 'x.1' })
  const history = historyKey('room:1', { after: 0, limit: 50 })
  for (const key of ['room:1', history, 'room:1 join', 'room:1 members x']) expect(readPresenceKey(key)).toBe(undefined)
  for (const key of ['room:1', history, membersKey('room:1'), joinKey('room:1', 'x.1')]) {
    expect(roomOf(key)).toBe('room:1')
  }
})
