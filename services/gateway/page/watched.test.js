import { activityOf, createWatched, take } from './watched.js'

/** @param {object} message @param {ReturnType<typeof createWatched>} [watched] @param {number} [nowMs] */
function receive(message, watched = createWatched('a:1'), nowMs = 1_000) {
  take(watched, message, { text: JSON.stringify(message), nowMs })
  return watched
}

const value = (/** @type {string} */ version, /** @type {object} */ content) => ({
  type: 'value',
  key: 'a:1',
  version,
  ...content,
})

test('the first value is no change, the next version is', () => {
  const watched = receive(value('v1', { data: { n: 1 } }))
  expect(watched).toMatchObject({ version: 'v1', changes: 0, changedAtMs: 1_000, bytes: 7 })
  receive(value('v2', { data: { n: 20 } }), watched, 2_000)
  expect(watched).toMatchObject({ version: 'v2', changes: 1, changedAtMs: 2_000, bytes: 8 })
})

test('the same version again, as after a reconnect, changes nothing', () => {
  const watched = receive(value('v1', { data: 1 }))
  receive(value('v1', { data: 1 }), watched, 9_000)
  expect(watched).toMatchObject({ changes: 0, changedAtMs: 1_000 })
})

test.each([
  ['JSON', { data: 'é' }, 4],
  ['text', { contentType: 'text/plain', text: 'é\n' }, 3],
  ['bytes', { contentType: 'image/png', base64: 'aGk=' }, 2],
])('%s is counted in the bytes the backend gave', (_, content, bytes) => {
  expect(receive(value('v', content)).bytes).toBe(bytes)
})

test('stale says since when and why, until a value or current follows', () => {
  const watched = receive(value('v1', { data: 1 }))
  receive({ type: 'stale', key: 'a:1', sinceMs: 4_000, code: 'backend_timeout' }, watched, 10_000)
  expect(watched.stale).toMatchObject({ sinceMs: 6_000, text: expect.stringContaining('did not answer') })
  receive({ type: 'current', key: 'a:1', version: 'v1' }, watched)
  expect(watched.stale).toBeUndefined()
})

test('an error says whether the key is still watched, and a value ends it', () => {
  const watched = receive({
    type: 'error',
    key: 'a:1',
    code: 'backend_error',
    message: 'it said 500',
    subscribed: true,
    retryAfterMs: 500,
  })
  expect(watched.error).toEqual({ code: 'backend_error', text: 'it said 500', subscribed: true, retryAtMs: 1_500 })
  receive({ type: 'error', key: 'a:1', code: 'unknown_namespace', subscribed: false, message: '' }, watched)
  expect(watched.error).toMatchObject({ retryAtMs: undefined, text: expect.stringContaining('no such namespace') })
  receive(value('v1', { data: 1 }), watched)
  expect(watched.error).toBeUndefined()
})

test('the chart shows the last minute’s changes, the newest last, and forgets the others', () => {
  const watched = receive(value('v0', { data: 0 }), undefined, 0)
  for (const [index, nowMs] of [1_000, 30_000, 61_000, 61_500].entries()) {
    receive(value(`v${index + 1}`, { data: index }), watched, nowMs)
  }
  expect(activityOf(watched, 62_000, 4)).toEqual([0, 1, 0, 2])
  expect(watched.activity).toHaveLength(3)
  expect(activityOf(watched, 500_000, 4)).toEqual([0, 0, 0, 0])
  expect(watched.activity).toHaveLength(0)
})

test('of a key that the backend no longer has nothing is kept', () => {
  const watched = receive(value('v1', { data: 1 }))
  receive(
    { type: 'error', key: 'a:1', code: 'not_found', subscribed: true, message: 'gone', retryAfterMs: 500 },
    watched,
  )
  expect(watched).toMatchObject({ content: undefined, version: undefined, bytes: 0, error: { code: 'not_found' } })
})
