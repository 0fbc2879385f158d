import type { Namespace } from '@keycast/service'
import { createCounts } from '../../counts.ts'
import { plainEncodings } from '../../encodings/index.ts'
import { createNamespaces, noKind, readFrames } from '../../test-support.ts'
import { createEntry } from './cache.ts'
import { addDueFrames, CURRENT, PROBLEM, VALUE } from './due-values.ts'
import { createValue } from './value.ts'

const namespace = createNamespaces().fetched.get('tick') as Namespace
const contentType = 'application/json'

/** @returns a session that speaks `keycast.v1.NAME` */
const sessionOf = (name: string): any => ({
  encoding: plainEncodings.find(({ subprotocol }) => subprotocol === `keycast.v1.${name}`),
})

function setup({
  value = false,
  stale = false,
  problem = false,
  speaks = 'json',
}: {
  value?: boolean
  stale?: boolean
  problem?: boolean
  speaks?: string
}) {
  const entry = createEntry('tick:1', namespace, noKind)
  entry.askedAtMs = 1_000
  if (value) {
    entry.value = createValue({ key: 'tick:1', version: 'v', contentType, format: 'json', body: Buffer.from('1') })
  }
  entry.stale = stale
  const failed = { code: 'backend_error', message: 'm', retryAfterMs: 5_000 } as const
  if (problem) entry.failure = { problem: failed, atMs: 2_000, isLocal: false }
  const counts = createCounts()
  const session = sessionOf(speaks)
  const sentFor = (due: number, nowMs = 3_000) => {
    const pieces: Buffer[] = []
    const bytes = addDueFrames(pieces, { session, topic: entry, due, clientVersion: undefined }, counts, nowMs)
    expect(bytes).toBe(Buffer.concat(pieces).length)
    return { pieces, messages: readFrames(Buffer.concat(pieces)) }
  }
  return { entry, sent: counts.sent, sentFor }
}

const value = { type: 'value', key: 'tick:1', version: 'v', data: 1 }
const current = { type: 'current', key: 'tick:1', version: 'v' }
const stale = { type: 'stale', key: 'tick:1', sinceMs: 2_000, code: 'backend_error' }
const error = {
  type: 'error',
  key: 'tick:1',
  subscribed: true,
  code: 'backend_error',
  message: 'm',
  retryAfterMs: 4_000,
}

test.each([
  ['the value', { value: true }, VALUE, [value]],
  ['the value, whatever else', { value: true }, VALUE | CURRENT | PROBLEM, [value]],
  ['word that its client has the latest', { value: true }, CURRENT, [current]],
  ['the value of a stale key', { value: true, stale: true, problem: true }, VALUE, [value, stale]],
  ['word of the latest of a stale key', { value: true, stale: true, problem: true }, CURRENT, [current, stale]],
  ['word of a problem', { value: true, stale: true, problem: true }, PROBLEM, [stale]],
  ['word of a problem that is over', { value: true }, PROBLEM, [current]],
  ['the value of a key that failed but is not stale yet', { value: true, problem: true }, VALUE, [value]],
  ['word of a problem where there is no value', { problem: true }, PROBLEM, [error]],
  ['a value that is gone', { problem: true }, VALUE, [error]],
  ['word of a problem where nothing is known', {}, PROBLEM, []],
])('a subscription is due %s', (_, state, due, expected) => {
  expect(setup(state).sentFor(due).messages).toEqual(expected)
})

test.each(['json', 'bytes'])('every session that speaks %s is written the same Buffers', speaks => {
  const { sentFor } = setup({ value: true, stale: true, problem: true, speaks })
  for (const due of [VALUE, CURRENT, PROBLEM]) {
    const [first, second] = [sentFor(due).pieces, sentFor(due).pieces]
    for (const [index, piece] of first.entries()) expect(second[index]).toBe(piece)
  }
})

test('a session that comes a second later is told how old the value is by then', () => {
  const { sentFor } = setup({ value: true, stale: true, problem: true })
  expect(sentFor(PROBLEM, 3_000).messages).toMatchObject([{ sinceMs: 2_000 }])
  expect(sentFor(PROBLEM, 3_999).messages).toMatchObject([{ sinceMs: 2_000 }])
  expect(sentFor(PROBLEM, 4_000).messages).toMatchObject([{ sinceMs: 3_000 }])
})

test('what is sent is counted by type', () => {
  const { sent, sentFor } = setup({ value: true, stale: true, problem: true })
  sentFor(VALUE)
  sentFor(CURRENT)
  expect(sent).toMatchObject({ value: 1, current: 1, stale: 2, error: 0 })
})

test('a client that has the version a delta starts from is sent the delta, which is counted, and has the new one', () => {
  const entry = createEntry('tick:1', namespace, noKind)
  const body = Buffer.alloc(1_000)
  const delta = { from: 'v', bytes: Buffer.from('d') }
  entry.value = createValue({ key: 'tick:1', version: 'w', contentType, format: 'base64', body, delta })
  const session = sessionOf('bytes')
  const subscription = { session, topic: entry, due: VALUE, clientVersion: 'v' }
  const counts = createCounts()
  const pieces: Buffer[] = []

  const bytes = addDueFrames(pieces, subscription, counts, 0)

  expect(readFrames(Buffer.concat(pieces))).toEqual([
    { type: 'delta', key: 'tick:1', from: 'v', version: 'w', contentType, bytes: delta.bytes },
  ])
  expect(counts).toMatchObject({ sent: { delta: 1, value: 0 }, deltaSavedBytes: 1_000 - bytes })
  expect(subscription.clientVersion).toBe('w')
})
