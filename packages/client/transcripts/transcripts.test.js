// Every transcript, against this client; and that the runner notices a client that does otherwise.
import { readdirSync, readFileSync } from 'node:fs'
import { createStreamWorld } from '../test-stream-world.js'
import { createWaitWorld } from '../test-wait-world.js'
import { runTranscript } from './run.js'

const files = readdirSync(new URL('.', import.meta.url), { recursive: true, encoding: 'utf8' })
  .filter(name => name.endsWith('.jsonl'))
  .sort()

/** @param {string} name */
const read = name => readFileSync(new URL(name, import.meta.url), 'utf8')

test.each(files)('%s', name => runTranscript(read(name)))

// An event stream has no deltas.
test.each(files.filter(name => !read(name).includes('"type":"delta"')))('%s, over an event stream', async name => {
  await runTranscript(read(name), { world: /** @type {any} */ (createStreamWorld()) })
})

/** Rules that requests which wait cannot follow, beside those of rooms, tokens and deltas, by the reason. */
const beyondWaits = {
  'a loss shows with the next request': ['backoff-anew', 'backoff-served', 'kept-over-loss', 'refused-over-loss'],
  'no gateway closes them': [
    'closing-again',
    'final-1003',
    'final-1007',
    'final-1009',
    'final-4007',
    'restarting',
    'wake-in-closing',
  ],
  'they hear nothing unasked': ['current', 'kept-in-doubt', 'unknown-about-value', 'unreadable', 'health'],
  'a namespace that does not exist may be one of rooms': ['error-that-ends', 'retry'],
  'their limits and their heartbeat are their own': [
    'get-again',
    'heartbeat',
    'heartbeat-slow',
    'limits-bytes',
    'limits-keys',
    'limits-message',
    'limits-requests',
    'rate-limited',
  ],
  'they answer an unsubscribe at once': ['share-while-asking'],
}
const overWaits = files.filter(
  name =>
    !name.includes('/') &&
    !read(name).includes('"type":"delta"') &&
    !Object.values(beyondWaits).flat().includes(name.replace('.jsonl', '')),
)

test.each(overWaits)('%s, over requests that wait', async name => {
  await runTranscript(read(name), { world: /** @type {any} */ (createWaitWorld()) })
})

test('a rule that requests which wait can follow is none of those that they cannot', async () => {
  for (const name of Object.values(beyondWaits).flat()) {
    const run = runTranscript(read(`${name}.jsonl`), { world: /** @type {any} */ (createWaitWorld()) })
    await expect(run).rejects.toThrow()
  }
})

test('each begins with its rule', () => {
  expect(files.length).toBeGreaterThan(10)
  for (const name of files) {
    const [first] = readFileSync(new URL(name, import.meta.url), 'utf8').split('\n')
    expect(Object.keys(JSON.parse(first))).toEqual(['rule'])
  }
})

const dialled = '{"rule":"r"}\n{"do":"connect"}\n{"dials":"ws://gateway/ws"}\n'

test.each([
  ['what did not happen', `${dialled}{"out":{"type":"ping"}}`, 'line 4, {"out":{"type":"ping"}}: it did not happen'],
  ['what happened and is not named', '{"rule":"r"}\n{"do":"connect"}\n{"pass":1}', 'the client also did'],
  ['another state', `${dialled}{"state":{"name":"open"}}`, 'it is {"name":"connecting"}'],
  ['a step that does not exist', `${dialled}{"dance":true}`, 'there is no such step'],
])('the runner finds %s', async (_, text, message) => {
  await expect(runTranscript(text)).rejects.toThrow(message)
})
