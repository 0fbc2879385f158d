import fc from 'fast-check'
import { createCursor, KEYS_MAX, readCursor } from './cursor.ts'

const subscribed = (key: string, epoch: string, seq: number, count = 0) =>
  JSON.stringify({ type: 'subscribed', id: 1, keys: [{ key, epoch, seq, oldest: 1, recovered: true, count }] })
const message = (key: string, seq: number) => `{"type":"message","key":"${key}","seq":${seq},"at":1,"data":`
const keys = ['tick:1', 'room:1', 'room:2']

test('the cursor is where the messages sent so far leave their reader', () => {
  const idAfter = createCursor(keys, new Map())
  expect(idAfter('{"type":"value","key":"tick:1","version":"v","data":1}')).toBeUndefined()
  const begun = idAfter(subscribed('room:1', 'E', 7, 2)) as string
  expect(readCursor(begun, keys)).toEqual(new Map([['room:1', { epoch: 'E', seq: 5 }]]))
  idAfter(subscribed('room:2', 'E', 0))
  idAfter(message('room:1', 6))
  const moved = idAfter(message('room:1', 7)) as string
  expect(readCursor(moved, keys)).toEqual(
    new Map([
      ['room:1', { epoch: 'E', seq: 7 }],
      ['room:2', { epoch: 'E', seq: 0 }],
    ]),
  )
  const gap = idAfter('{"type":"gap","key":"room:1","epoch":"F","seq":3,"oldest":1,"reason":"epoch"}') as string
  expect(readCursor(gap, keys)?.get('room:1')).toEqual({ epoch: 'F', seq: 3 })
})

test('a stream that was resumed goes on from the cursor it came with', () => {
  const idAfter = createCursor(keys, new Map([['room:2', { epoch: 'E', seq: 3 }]]))
  expect(readCursor(idAfter(subscribed('room:1', 'G', 1)) as string, keys)).toEqual(
    new Map([
      ['room:1', { epoch: 'G', seq: 1 }],
      ['room:2', { epoch: 'E', seq: 3 }],
    ]),
  )
})

test('a room that is none of the stream’s own keys is not in its cursor', () => {
  expect(createCursor([], new Map())(subscribed('room:9', 'E', 1))).toBeUndefined()
})

test('any positions are read as they were written', () => {
  // A grapheme may be many characters, and a cursor takes 192 of an epoch, percent-encoded.
  const epochs = fc
    .string({ minLength: 1, maxLength: 64, unit: 'grapheme' })
    .filter(epoch => encodeURIComponent(epoch).length <= 128)
  const positions = fc.array(fc.option(fc.record({ epoch: epochs, seq: fc.maxSafeNat() })), {
    minLength: 1,
    maxLength: 8,
  })
  fc.assert(
    fc.property(positions, each => {
      const names = each.map((_, index) => `room:${index}`)
      const idAfter = createCursor(names, new Map())
      const expected = new Map()
      let text = ''
      for (const [index, position] of each.entries()) {
        if (!position) continue
        expected.set(names[index], position)
        text = idAfter(subscribed(names[index], position.epoch, position.seq)) as string
      }
      if (expected.size > 0) expect(readCursor(text, names)).toEqual(expected)
    }),
  )
})

test('the cursor of as many rooms as a stream takes is below 4 KB', () => {
  const names = Array.from({ length: KEYS_MAX }, (_, index) => `room:${index}`)
  const idAfter = createCursor(names, new Map())
  const ids = names.map(name => idAfter(subscribed(name, 'e'.repeat(64), Number.MAX_SAFE_INTEGER)) as string)
  expect((ids.at(-1) as string).length).toBeLessThan(4_096)
})

test('a cursor that each event would repeat at greater length than any of a stream is none', () => {
  const names = Array.from({ length: KEYS_MAX }, (_, index) => `room:${index}`)
  const [hash] = (createCursor(names, new Map())(subscribed('room:0', 'E', 1)) as string).split('~')
  const of = (epoch: string) => [hash, ...names.map((_, index) => `${epoch}${index}.1`)].join('~')
  expect(readCursor(of('E'.repeat(30)), names)?.size).toBe(KEYS_MAX)
  expect(readCursor(of('E'.repeat(40)), names)).toBeUndefined()
  // Percent-encoded, six characters each.
  expect(readCursor(of('ÿ'.repeat(8)), names)).toBeUndefined()
})

test.each(['', 'x', '1~E.1~', 'nonsense~~'])('what is no cursor of these keys is not taken for one: %s', text => {
  expect(readCursor(text, keys)).toBeUndefined()
})

test('a position that no room can have is not taken for one', () => {
  const text = createCursor(keys, new Map())(subscribed('room:1', 'E', Number.MAX_SAFE_INTEGER)) as string
  expect(readCursor(text, keys)).toBeDefined()
  expect(readCursor(text.replace(/\d{16}/, '9007199254740992'), keys)).toBeUndefined()
})

test('whatever comes for a cursor is read as positions or as none', () => {
  const [hash] = (createCursor(keys, new Map())(subscribed('room:1', 'E', 1)) as string).split('~')
  const part = fc.string({ unit: fc.constantFrom('~', '.', '%', '4', 'E'), maxLength: 12 })
  fc.assert(
    fc.property(part, text => {
      const positions = readCursor(`${hash}~${text}`, keys) ?? new Map()
      for (const { epoch, seq } of positions.values())
        expect([epoch !== '', Number.isSafeInteger(seq)]).toEqual([true, true])
    }),
    { numRuns: 1_000 },
  )
})

test('a cursor of other keys, or of these in another order, is refused', () => {
  const text = createCursor(['room:1', 'room:2'], new Map())(subscribed('room:1', 'E', 1)) as string
  expect(readCursor(text, ['room:2', 'room:1'])).toBeUndefined()
  expect(readCursor(text, ['room:1', 'room:3'])).toBeUndefined()
  expect(readCursor(text, ['room:1', 'room:2'])).toBeDefined()
  expect(readCursor(text.replace('.', ''), ['room:1', 'room:2'])).toBeUndefined()
})
