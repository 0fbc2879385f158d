import { createEntry } from '../keys/entry.js'
import { createValue } from '../keys/value.js'
import { createCounts } from '../metrics.js'
import { createNamespaces, readFrames } from '../test-support.js'
import { CURRENT, makeUp, TROUBLE, VALUE } from './due.js'

const namespace = /** @type {import('@keycast/service').Namespace} */ (createNamespaces().get('tick'))
const contentType = 'application/json'

/** @param {{ value?: boolean, stale?: boolean, problem?: boolean, bytes?: boolean }} state */
function setup({ value = false, stale = false, problem = false, bytes: speaksBytes = false }) {
  const entry = createEntry('tick:1', namespace)
  entry.askedAtMs = 1_000
  if (value) {
    entry.value = createValue({ key: 'tick:1', version: 'v', contentType, format: 'json', body: Buffer.from('1') })
  }
  entry.stale = stale
  if (problem) entry.problem = { code: 'backend_error', message: 'm', retryAfterMs: 5, atMs: 2_000, local: false }
  const counts = createCounts()
  const session = /** @type {import('../sessions/session.js').Session} */ ({ bytes: speaksBytes })
  /** @param {number} lacks @param {number} [nowMs] */
  const sentFor = (lacks, nowMs = 3_000) => {
    /** @type {Buffer[]} */
    const pieces = []
    const bytes = makeUp(pieces, { session, entry, lacks, held: undefined }, counts, nowMs)
    expect(bytes).toBe(Buffer.concat(pieces).length)
    return { pieces, messages: readFrames(Buffer.concat(pieces)) }
  }
  return { entry, sent: counts.sent, sentFor }
}

const value = { type: 'value', key: 'tick:1', version: 'v', data: 1 }
const current = { type: 'current', key: 'tick:1', version: 'v' }
const stale = { type: 'stale', key: 'tick:1', sinceMs: 2_000, code: 'backend_error' }
const error = { type: 'error', key: 'tick:1', code: 'backend_error', message: 'm', retryAfterMs: 5 }

test.each([
  ['the value', { value: true }, VALUE, [value]],
  ['the value, whatever else', { value: true }, VALUE | CURRENT | TROUBLE, [value]],
  ['word that it holds the latest', { value: true }, CURRENT, [current]],
  ['the value of a key in trouble', { value: true, stale: true, problem: true }, VALUE, [value, stale]],
  ['word of the latest of a key in trouble', { value: true, stale: true, problem: true }, CURRENT, [current, stale]],
  ['word of trouble', { value: true, stale: true, problem: true }, TROUBLE, [stale]],
  ['word of trouble that is over', { value: true }, TROUBLE, [current]],
  ['the value of a key that failed but is not stale yet', { value: true, problem: true }, VALUE, [value]],
  ['word of trouble where nothing is held', { problem: true }, TROUBLE, [error]],
  ['a value that is gone', { problem: true }, VALUE, [error]],
  ['word of trouble where nothing is known', {}, TROUBLE, []],
])('who lacks %s', (_, state, lacks, expected) => {
  expect(setup(state).sentFor(lacks).messages).toEqual(expected)
})

test.each([false, true])('everybody is written the same Buffers, where bytes are spoken: %s', bytes => {
  const { sentFor } = setup({ value: true, stale: true, problem: true, bytes })
  for (const lacks of [VALUE, CURRENT, TROUBLE]) {
    const [first, second] = [sentFor(lacks).pieces, sentFor(lacks).pieces]
    for (const [index, piece] of first.entries()) expect(second[index]).toBe(piece)
  }
})

test('who comes a second later is told how old the value is by then', () => {
  const { sentFor } = setup({ value: true, stale: true, problem: true })
  expect(sentFor(TROUBLE, 3_000).messages).toMatchObject([{ sinceMs: 2_000 }])
  expect(sentFor(TROUBLE, 3_999).messages).toMatchObject([{ sinceMs: 2_000 }])
  expect(sentFor(TROUBLE, 4_000).messages).toMatchObject([{ sinceMs: 3_000 }])
})

test('what is sent is counted by type', () => {
  const { sent, sentFor } = setup({ value: true, stale: true, problem: true })
  sentFor(VALUE)
  sentFor(CURRENT)
  expect(sent).toMatchObject({ value: 1, current: 1, stale: 2, error: 0 })
})

test('a session that holds the version a delta starts from is sent that, which is counted, and holds the new one', () => {
  const entry = createEntry('tick:1', namespace)
  const body = Buffer.alloc(1_000)
  const delta = { from: 'v', bytes: Buffer.from('d') }
  entry.value = createValue({ key: 'tick:1', version: 'w', contentType, format: 'base64', body, delta })
  const session = /** @type {import('../sessions/session.js').Session} */ ({ bytes: true })
  const subscription = { session, entry, lacks: VALUE, held: 'v' }
  const counts = createCounts()
  /** @type {Buffer[]} */
  const pieces = []

  const bytes = makeUp(pieces, subscription, counts, 0)

  expect(readFrames(Buffer.concat(pieces))).toEqual([
    { type: 'delta', key: 'tick:1', from: 'v', version: 'w', contentType, bytes: delta.bytes },
  ])
  expect(counts).toMatchObject({ sent: { delta: 1, value: 0 }, deltaSavedBytes: 1_000 - bytes })
  expect(subscription.held).toBe('w')
})
