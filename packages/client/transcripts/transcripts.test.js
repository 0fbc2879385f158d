// Every transcript, against this client; and that the runner notices a client that does otherwise.
import { readdirSync, readFileSync } from 'node:fs'
import { createStreamWorld } from '../test-stream-world.js'
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
