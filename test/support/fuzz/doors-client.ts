// Doors: what a gateway sends to the client in JavaScript. The gateway of a transcript says one thing that is absurd, or
// at the wrong moment; then the connection is lost, and the next gateway must find the client well.
import { readdirSync, readFileSync } from 'node:fs'
import fc from 'fast-check'
import { createWorld, welcome } from '../../../packages/client/test-support.js'
import { runTranscript } from '../../../packages/client/transcripts/run.js'
import { versionOf } from '../../../packages/protocol/version.js'
import { absurdBytes, absurdJson, twists } from './absurd.ts'
import type { AnyDoor } from './judge.ts'
import { serverBytes, serverMessages } from './messages.ts'

type Say = NonNullable<NonNullable<Parameters<typeof runTranscript>[1]>['say']>

const folder = new URL('../../../packages/client/transcripts/', import.meta.url)
const transcripts = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  .filter(name => name.endsWith('.jsonl'))
  .sort()
  .map(name => ({ name, text: readFileSync(new URL(name, folder), 'utf8') }))

const inJson = (message: unknown) => Buffer.from(JSON.stringify(message))
const asText = (bytes: Buffer) => ({ data: bytes.toString() })
const asBytes = (bytes: Buffer) => ({ data: new Uint8Array(bytes).buffer })

/** A message as it would go over the WebSocket: text, or a line and bytes. */
const framed = (head: Buffer, bytes: Uint8Array | undefined) =>
  bytes ? asBytes(Buffer.concat([head, Buffer.from('\n'), bytes])) : asText(head)

/** What is said in place of a transcript's message. */
const deeds: fc.Arbitrary<Say> = fc.oneof(
  {
    weight: 6,
    arbitrary: twists.map(
      (twist): Say =>
        (message, bytes) =>
          framed(twist('', message).bytes, bytes),
    ),
  },
  {
    weight: 2,
    arbitrary: absurdJson(serverMessages).map(
      ({ bytes }): Say =>
        () =>
          asText(bytes),
    ),
  },
  {
    weight: 1, // at the wrong moment
    arbitrary: fc.constantFrom(...serverMessages).map(
      ([, message]): Say =>
        () =>
          asText(inJson(message)),
    ),
  },
  {
    weight: 1,
    arbitrary: absurdBytes(serverBytes).map(
      ({ bytes }): Say =>
        () =>
          asBytes(bytes),
    ),
  },
  { weight: 1, arbitrary: fc.constant<Say>(() => undefined) },
)

/** One transcript, and the message of its gateway that is another. */
class Play {
  readonly transcript: (typeof transcripts)[number]
  readonly at: number
  readonly deed: Say
  #said = 'nothing'

  constructor(transcript: (typeof transcripts)[number], at: number, deed: Say) {
    this.transcript = transcript
    this.at = at
    this.deed = deed
  }

  /** The gateway of the transcript, up to that message. */
  gateway(): Say {
    let count = 0
    return (message, bytes) => {
      if (count++ !== this.at) return framed(inJson(message), bytes)
      const event = this.deed(message, bytes)
      if (event) this.#said = typeof event.data === 'string' ? event.data : Buffer.from(event.data).toString()
      return event
    }
  }

  [fc.toStringMethod]() {
    return `${this.transcript.name}, in place of message ${this.at}: ${this.#said.slice(0, 500)}`
  }
}

/** A timer beyond this fires at once, in browsers and in Node. */
const TIMER_MS_MAX = 2 ** 31 - 1

/** Timers of a client within the two minutes after: beats, retries, and one of each request under way. */
const WAKES_MAX = 2_000

/** A world whose timers do with strange numbers as real ones do, and whose gateway answers pings. */
function createRealWorld() {
  const world = createWorld()
  const { setTimeout, WebSocket } = world.environment
  let wakes = 0
  world.environment.setTimeout = (task, ms) => {
    wakes++
    return setTimeout(task, ms >= 1 && ms <= TIMER_MS_MAX ? ms : 1)
  }
  world.environment.WebSocket = function dial(url: string, protocol: string) {
    const socket = new WebSocket(url, protocol)
    const { send } = socket
    socket.send = text => {
      send.call(socket, text)
      const { type, id } = JSON.parse(text)
      const pong = inJson({ type: 'pong', id, count: 0 })
      if (type === 'ping' && wakes < WAKES_MAX) setTimeout(() => socket.onmessage?.(asText(pong)), 1)
    }
    return socket
  } as unknown as typeof WebSocket
  return { world, isAwakeAllTheTime: () => wakes >= WAKES_MAX }
}

async function take(play: Play) {
  const { world, isAwakeAllTheTime } = createRealWorld()
  const { keycast } = await runTranscript(play.transcript.text, { world, say: play.gateway() })
  if (!keycast) throw new Error('there is no client')
  // A client that was closed stays closed, and so does one that was refused for good.
  world.page('online')
  world.page('visible')
  world.socket()?.lose(1006)
  await world.pass(60_000)
  if (isAwakeAllTheTime()) throw new Error('the client sets timer after timer')
  if (keycast.state.name === 'closed') return
  const handle = keycast.value('fresh:1')
  world.done()
  world.socket().say(welcome())
  await world.settle()
  const data = Buffer.from('{"fresh":true}')
  const head = { type: 'value', key: 'fresh:1', version: versionOf(data), contentType: 'application/json' }
  world.socket().say(head, data)
  await world.settle()
  await world.pass(1_000)
  const { name } = keycast.state
  // With a token it is the gateway's answer to that which opens the session.
  if (name === 'open' && handle.state.value?.fresh !== true) {
    throw new Error(`the next session gave ${JSON.stringify(handle.state)}`)
  }
  keycast.close()
}

export const clientDoors: AnyDoor[] = [
  {
    name: 'the client in JavaScript',
    inputs: fc
      .tuple(fc.constantFrom(...transcripts), fc.nat(30), deeds)
      .map(([transcript, at, deed]) => new Play(transcript, at, deed)),
    take,
  },
]
