// Doors: what a fetcher or a journal says to a gateway. The gateway is whole, with its links; only the sockets between
// are a stand-in.
import { setImmediate } from 'node:timers/promises'
import { createRoomsBackbone } from '@keycast/backbone'
import { createMemoryNetwork } from '@keycast/backbone/memory'
import { versionOf } from '@keycast/protocol'
import { noContainment, realWorld } from '@keycast/service'
import fc from 'fast-check'
import type { Dial } from '../../../packages/backbone/gateway/link.ts'
import { createValuesBackbone } from '../../../packages/backbone/gateway/values/values-backbone.ts'
import type { Encoded } from '../../../packages/backbone/wire/codec.ts'
import { encodeAnswers, encodeMessage } from '../../../packages/backbone/wire/envelope.ts'
import { readHistoryKey, roomsCodec } from '../../../packages/backbone/wire/rooms-codec.ts'
import { valuesCodec } from '../../../packages/backbone/wire/values-codec.ts'
import { createGateway } from '../../../services/gateway/gateway.ts'
import {
  createNamespaces,
  createPolicy,
  defaults,
  FakeConnection,
  noMetrics,
} from '../../../services/gateway/test-support.ts'
import { atEnd } from '../cleanup.ts'
import { type Absurd, absurdParts, type Named } from './absurd.ts'
import type { AnyDoor } from './judge.ts'
import { fromFetcher, fromJournal, LINK, NUMBER } from './messages.ts'

const silent = { debug() {}, info() {}, warn() {}, error() {} }

/**
 * A node that a gateway has dialled. It answers beats, so that the link lives, and wants; and says what it is told to.
 */
function createFakeNode(wire: string, answerTo: (key: string) => Encoded | undefined) {
  let message: (parts: Buffer[]) => void = () => {}
  let link = ''
  let answered = 0
  let heard = 0
  const dial: Dial = onMessage => {
    message = onMessage
    answered = 0
    heard = 0
    return {
      async request(parts) {
        const { number, wants = [] } = JSON.parse(parts[0].toString())
        heard = number
        const answers = wants.flatMap(({ key }: { key: string }) => answerTo(key) ?? [])
        if (answers.length > 0) queueMicrotask(() => node.answer(answers))
        return true
      },
      beat(part) {
        const beat = JSON.parse(part.toString())
        link = beat.link
        if (beat.type === 'beat') message([encodeMessage({ type: 'beat', link, wire, reached: heard, answered })])
      },
      close() {},
    }
  }
  const node = {
    dial,
    /** Says a message as this link's next one, where the places for that are still in it. */
    say({ parts: [head = Buffer.alloc(0), ...rest] }: Pick<Absurd, 'parts'>) {
      const text = head.toString().replaceAll(LINK, link)
      const numbered = text.replace(`"number":${NUMBER}`, `"number":${answered + 1}`)
      if (numbered !== text) answered++
      message([numbered === head.toString() ? head : Buffer.from(numbered), ...rest])
    },
    /** Sends answers as a node that is well. */
    answer(answers: Encoded[]) {
      message(encodeAnswers({ link, number: ++answered, reached: heard }, answers, []))
    },
  }
  return node
}

/** A journal in which nothing was ever published. */
function emptyRoom(key: string): Encoded | undefined {
  const asked = readHistoryKey(key)
  const empty = { key, epoch: 'e', oldest: 1 }
  if (asked) {
    return roomsCodec.encodeAnswer({
      type: 'history',
      ...empty,
      newest: 0,
      messages: [],
      more: false,
      truncated: false,
    })
  }
  return key.includes(' ') ? undefined : roomsCodec.encodeAnswer({ type: 'head', ...empty, seq: 0, after: 0 })
}

function createWorld() {
  const network = createMemoryNetwork()
  const { now, every } = network
  const fetcher = createFakeNode(valuesCodec.wire, () => undefined)
  const journal = createFakeNode(roomsCodec.wire, emptyRoom)
  const around = (dial: Dial) => ({
    nodeSource: { start: async (found: (names: string[]) => void) => found(['n1']), stop() {} },
    dialOf: () => dial,
    ...realWorld,
    now,
    every,
    log: silent,
  })
  const gateway = createGateway({
    ...realWorld,
    settings: defaults,
    namespaces: createNamespaces({ conversation: {} }, { room: { members: 'named' } }),
    policy: createPolicy({}),
    createBackbone: events => createValuesBackbone({ ...around(fetcher.dial), events }),
    createRoomsBackbone: events => createRoomsBackbone({ ...around(journal.dial), events }),
    metrics: noMetrics,
    containment: noContainment,
    now,
  })

  /** A client that looks at what the node is asked for. */
  async function connect() {
    const connection = new FakeConnection()
    connection.protocol = 'keycast.v1.json'
    gateway.open(connection.asTransport, { peer: { address: '127.0.0.1', isNamed: false } })
    for (const request of [
      { type: 'subscribe', keys: ['conversation:42', { key: 'room:42', presence: true }] },
      { type: 'join', key: 'room:42', name: 'Ann' },
      { type: 'publish', key: 'room:42', data: 1, messageId: 'q2VbR0cJmZC0yqk3' },
      { type: 'history', key: 'room:42', before: 900 },
      { type: 'get', key: 'conversation:43' },
    ]) {
      connection.emit('message', Buffer.from(JSON.stringify(request)), false)
    }
    return connection
  }
  return { network, gateway, fetcher, journal, connect }
}

type World = ReturnType<typeof createWorld> & { client?: FakeConnection; revision: number }

async function start(): Promise<World> {
  const world = createWorld()
  atEnd(() => world.gateway.stop())
  await Promise.all([world.gateway.start(), world.network.pass(2_000)])
  return { ...world, client: await world.connect(), revision: 0 }
}

/** Time in which a link that was given up is dialled again, introduced, and asked for all its keys. */
const MENDED_MS = 12_000

function door(name: string, which: 'fetcher' | 'journal', valid: Named<Buffer[]>[]): AnyDoor {
  let world: World | undefined
  const absurd = absurdParts(valid)
  const right = fc.constantFrom(...valid).map(([, parts]) => ({ parts }))
  const message = fc.oneof({ weight: 1, arbitrary: right }, { weight: 4, arbitrary: absurd })
  return {
    name,
    inputs: fc.array(message, { minLength: 1, maxLength: 8 }),
    async take(messages: Pick<Absurd, 'parts'>[]) {
      world ??= await start()
      try {
        const { network, gateway, fetcher } = world
        for (const each of messages) {
          world[which].say(each)
          await setImmediate()
          gateway.sweep()
        }
        await network.pass(MENDED_MS)
        gateway.sweep()
        if (!world.client || world.client.closed || world.client.terminated) world.client = await world.connect()
        // Whatever was said before, the next value comes through. A refusal ends a subscription, by right.
        world.client.emit('message', Buffer.from('{"type":"subscribe","keys":["conversation:42"]}'), false)
        await network.pass(2_000)
        world.client.read()
        const body = Buffer.from(JSON.stringify({ revision: ++world.revision }))
        const version = versionOf(body)
        const content = { contentType: 'application/json', format: 'json' } as const
        const answer = { type: 'value', key: 'conversation:42', version, ageMs: 0, maxAgeMs: 0, store: true } as const
        fetcher.answer([valuesCodec.encodeAnswer({ ...answer, ...content, body })])
        await network.pass(100)
        const received = world.client.read()
        const isServed = received.some(({ type, data }) => type === 'value' && data?.revision === world?.revision)
        if (!isServed) throw new Error(`the bystander was sent ${JSON.stringify(received).slice(0, 300)}`)
      } catch (error) {
        world = undefined
        throw error
      }
    },
  }
}

export const nodeDoors: AnyDoor[] = [
  door('a gateway with an absurd fetcher', 'fetcher', fromFetcher),
  door('a gateway with an absurd journal', 'journal', fromJournal),
]
