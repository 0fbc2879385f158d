import type { ServerResponse } from 'node:http'
import { Writable } from 'node:stream'
import { createTestGateway } from '../test-support.ts'
import { createEventStream } from './event-stream.ts'

const ends: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const end of ends.splice(0)) await end()
})

/** A stream whose client reads when it is told to, and whose events have long ids. */
async function setup() {
  const { gateway, connect, turn } = createTestGateway({
    rooms: { room: {} },
    settings: { requestsPerSecondMax: 10_000 },
  })
  await gateway.start()
  ends.push(gateway.stop)
  let text = ''
  let taken = () => {}
  const socket = new Writable({
    highWaterMark: 64 * 1_024,
    writev(chunks, done) {
      text += Buffer.concat(chunks.map(({ chunk }) => chunk))
      taken = done
    },
  })
  const response = { socket, removeHeader() {}, writeHead() {}, write() {} } as unknown as ServerResponse
  const idAfter = () => 'x'.repeat(4_000)
  const stream = createEventStream({ response, headers: {}, idAfter, world: { random: Math.random } })
  gateway.open(stream, { peer: { address: '192.0.2.1', isNamed: true } })
  const read = async () => {
    const done = taken
    taken = () => {}
    done()
    await turn()
  }
  return { stream, socket, connect, turn, read, text: () => text }
}

/** Hundreds of messages wait for the stream. */
async function behind() {
  const test = await setup()
  const client = await test.connect()
  const [{ keys }] = await client.ask({ type: 'subscribe', keys: ['room:1'] })
  for (let data = 1; data <= 300; data++) client.send({ type: 'publish', key: 'room:1', data })
  const after = { epoch: keys[0].epoch, seq: 0 }
  await test.turn()
  test.stream.hear(Buffer.from(JSON.stringify({ type: 'subscribe', keys: [{ key: 'room:1', after }] })))
  for (let reads = 0; reads < 100 && !test.stream.isStalled(); reads++) await test.read()
  return test
}

const seqsIn = (text: string) =>
  [...text.matchAll(/"type":"message","key":"room:1","seq":(\d+)/g)].map(found => Number(found[1]))

test('of messages whose ids are many times as long a client that does not read is written little, and all once it reads', async () => {
  const { stream, socket, read, text } = await behind()
  expect(socket.writableLength).toBeLessThan(200_000)
  for (let reads = 0; reads < 1_000 && stream.isStalled(); reads++) await read()
  expect(seqsIn(text())).toEqual(Array.from({ length: 300 }, (_, index) => index + 1))
})

test('a stream that is closed in the middle of what it was written ends with a whole event, and why', async () => {
  const { stream, read, text } = await behind()
  stream.close(1012, 'restarting')
  for (let reads = 0; reads < 10; reads++) await read()
  const events = text().split('\n\n')
  expect(events.splice(-2)).toEqual(['event: close\ndata: {"code":1012,"reason":"restarting"}', ''])
  expect(events.at(-1)).toMatch(/^id: x{4000}\ndata: \{.*\}$/)
  expect(seqsIn(text()).length).toBeLessThan(300)
})
