import { activityOf, createWatched, take } from './watched.js'

/** @typedef {import('../../packages/client/keycast.js').ValueState} ValueState */

const nothing = { value: undefined, version: undefined, stale: false, error: undefined, changedAt: undefined }

/** @param {Partial<ValueState>} state @param {ReturnType<typeof createWatched>} [watched] @param {number} [nowMs] */
function receive(state, watched = createWatched('a:1'), nowMs = 1_000) {
  take(watched, /** @type {ValueState} */ ({ ...nothing, changedAt: nowMs, ...state }), nowMs)
  return watched
}

/** @param {string} version @param {unknown} value */
const json = (version, value) => ({
  version,
  value,
  contentType: 'application/json',
  sizeBytes: JSON.stringify(value).length,
})

test('the first value is no change, the next version is', () => {
  const watched = receive(json('v1', { n: 1 }))
  expect(watched).toMatchObject({ version: 'v1', changes: 0, changedAtMs: 1_000, bytes: 7 })
  receive(json('v2', { n: 20 }), watched, 2_000)
  expect(watched).toMatchObject({ version: 'v2', changes: 1, changedAtMs: 2_000, bytes: 8 })
})

test('the same version again, as after a reconnect, changes nothing', () => {
  const watched = receive(json('v1', 1))
  receive(json('v1', 1), watched, 9_000)
  expect(watched).toMatchObject({ changes: 0, changedAtMs: 1_000 })
})

test.each([
  ['JSON', 'application/json', 'x', { format: 'json', data: 'x' }],
  ['text', 'text/plain; charset=utf-8', 'é\n', { format: 'text', text: 'é\n' }],
  ['bytes', 'image/png', Uint8Array.of(104), { format: 'bytes', bytes: Uint8Array.of(104) }],
])('%s is told from the others', (_, contentType, value, content) => {
  expect(receive({ version: 'v', contentType, value, sizeBytes: 3 })).toMatchObject({ content, bytes: 3 })
})

test('stale says since when and why, until a value follows', () => {
  const value = json('v1', 1)
  const watched = receive(value)
  receive({ ...value, stale: { code: 'backend_timeout', askedAt: 6_000 } }, watched, 10_000)
  expect(watched.stale).toMatchObject({ sinceMs: 6_000, text: expect.stringContaining('did not answer') })
  receive(value, watched)
  expect(watched.stale).toBeUndefined()
})

/** @param {any} code @param {number} [retryAfterMs] @param {string} [message] @returns {any} */
const errorOf = (code, retryAfterMs, message = '') => ({ code, message, retryAfterMs })

test('an error with retryAfterMs heals by itself, one without needs a person', () => {
  const error = errorOf('backend_error', 500, 'it said 500')
  const watched = receive({ error })
  expect(watched.error).toMatchObject({ code: 'backend_error', text: 'it said 500', retryAtMs: 1_500 })
  receive({ error, stale: { code: 'backend_error', askedAt: 0 } }, watched, 1_200)
  expect(watched.error).toMatchObject({ retryAtMs: 1_500 })
  receive({ error: errorOf('unknown_namespace') }, watched)
  expect(watched.error).toMatchObject({ retryAtMs: undefined, text: expect.stringContaining('no such namespace') })
  receive(json('v1', 1), watched)
  expect(watched.error).toBeUndefined()
})

test('whether a key is still watched is what the gateway says of it, not whether it says when it asks again', () => {
  const watched = receive({ error: { ...errorOf('backend_error'), subscribed: true } })
  expect(watched.error).toMatchObject({ subscribed: true, retryAtMs: undefined })
  receive({ error: errorOf('too_many_waiting', 500) }, watched)
  expect(watched.error).toMatchObject({ subscribed: false, retryAtMs: 1_500 })
})

test('the chart shows the last minute’s changes, the newest last, and forgets the others', () => {
  const watched = receive(json('v0', 0), undefined, 0)
  for (const [index, nowMs] of [1_000, 30_000, 61_000, 61_500].entries()) {
    receive(json(`v${index + 1}`, index), watched, nowMs)
  }
  expect(activityOf(watched, 62_000, 4)).toEqual([0, 1, 0, 2])
  expect(watched.activity).toHaveLength(3)
  expect(activityOf(watched, 500_000, 4)).toEqual([0, 0, 0, 0])
  expect(watched.activity).toHaveLength(0)
})

test('of a key that the backend no longer has nothing is kept', () => {
  const watched = receive(json('v1', 1))
  receive({ error: errorOf('not_found', 500) }, watched)
  expect(watched).toMatchObject({ content: undefined, version: undefined, bytes: 0, error: { code: 'not_found' } })
})
