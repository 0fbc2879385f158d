// Absurd answers to a real gateway: a fetcher node and a journal that it takes for its own say what they like. The gateway
// does not end, meets no error that nobody foresaw, does not grow, and serves what honest nodes give it all along.
// An hour of it: FUZZ_SECONDS=3600 npm run test:e2e -- --testPathPatterns fuzz
import fc from 'fast-check'
import { Pull, Router } from 'zeromq'
import { decodeRequest } from '../../packages/backbone/wire/envelope.ts'
import { roomsCodec } from '../../packages/backbone/wire/rooms-codec.ts'
import { valuesCodec } from '../../packages/backbone/wire/values-codec.ts'
import { atEnd } from '../support/cleanup.ts'
import { pause } from '../support/deadline.ts'
import { show } from '../support/figures.ts'
import { type Absurd, absurdParts, type Named } from '../support/fuzz/absurd.ts'
import { seconds, seed, timeoutMs } from '../support/fuzz/length.ts'
import { fromFetcher, fromJournal, LINK, NUMBER } from '../support/fuzz/messages.ts'
import { MIB, watchMemory } from '../support/memory.ts'
import { isAlive } from '../support/processes.ts'
import { joinRooms } from '../support/rooms.ts'
import { startSite } from '../support/sites.ts'
import { startSystem } from '../support/system.ts'

/** Beyond it something grows with what strangers say. */
const GROWTH_BYTES_MAX = 400 * MIB

/** Each of the two goes on beyond its time until it has said so many: a busy machine says few a second. */
const SAID_MIN = 100

interface Peer {
  routingId: Buffer
  link: string
  number: number
}

/** A node that answers every beat as it should, and says absurd things beside. */
async function startFake(codec: typeof valuesCodec | typeof roomsCodec, valid: Named<Buffer[]>[]) {
  const pull = new Pull({ linger: 0 })
  const router = new Router({ linger: 0, sendTimeout: 100 })
  await pull.bind('tcp://127.0.0.1:*')
  await router.bind('tcp://127.0.0.1:*')
  const [requestsPort, answersPort] = [pull, router].map(({ lastEndpoint }) => String(lastEndpoint).split(':').at(-1))
  let peer: Peer | undefined
  let heard = 0
  let said = 0
  /** Of the link, so that they are answered: an absurd result to a command, or an answer to a get. */
  const ids: string[] = []

  async function read() {
    for await (const parts of pull) {
      heard++
      const request = decodeRequest([...parts], codec as typeof valuesCodec)
      if (request.body.type === 'command') for (const { id } of request.body.commands) ids.push(id)
    }
  }

  async function beats() {
    for await (const [routingId, part] of router) {
      const { type, link } = JSON.parse(part.toString())
      if (type !== 'beat') continue
      if (peer?.link !== link) peer = { routingId, link, number: 0 }
      const beat = { type: 'beat', link, wire: codec.wire, reached: heard, answered: peer?.number ?? 0, log: 'fuzz' }
      await router.send([routingId, JSON.stringify(beat)]).catch(() => {})
    }
  }

  const own = ({ parts: [head = Buffer.alloc(0), ...rest] }: Absurd, { link, number }: Peer) => {
    const text = head.toString()
    const changed = text
      .replaceAll(LINK, link)
      .replace(`"number":${NUMBER}`, `"number":${number}`)
      .replaceAll(/"id":"c\d"/g, () => `"id":"${ids.shift() ?? 'c1'}"`)
    return [changed === text ? head : Buffer.from(changed), ...rest]
  }

  async function speak(until: number) {
    const isOver = () => said >= SAID_MIN && performance.now() >= until
    for (let round = 0; !isOver(); round++) {
      for (const input of fc.sample(absurdParts(valid), { numRuns: 100, seed: seed + round })) {
        if (isOver()) return
        await pause(2)
        if (!peer) continue
        // Now and then one is lost, as far as the gateway can tell.
        peer.number += said % 50 === 49 ? 2 : 1
        await router.send([peer.routingId, ...own(input, peer)]).catch(() => {})
        said++
      }
    }
  }

  atEnd(() => {
    pull.close()
    router.close()
  })
  void read().catch(() => {})
  void beats().catch(() => {})
  return { node: `127.0.0.1:${requestsPort}:${answersPort}`, speak, counts: () => ({ heard, said }) }
}

const backend = await startSite((_, response) => response.end(JSON.stringify({ at: performance.now() })))

test(
  `for ${seconds} s a node and a journal say absurd things to a gateway, which serves what honest ones give it`,
  async () => {
    const [fetcher, journal] = [await startFake(valuesCodec, fromFetcher), await startFake(roomsCodec, fromJournal)]
    const { startGateway, fetchers } = await startSystem({
      namespaces: {
        conversation: { url: `${backend}/{id}`, refresh: '100ms' },
        room: { source: 'journal', members: 'named' },
      },
      gateways: 0,
      access: { anonymous: { read: ['*:**'], publish: ['*:**'], join: ['*:**'] } },
      env: { JOURNAL_NODES: journal.node },
    })
    const gateway = await startGateway({ FETCHER_NODES: [fetchers[0].node, fetcher.node].join() })
    await gateway.usesAllNodes()
    const keys = Array.from({ length: 50 }, (_, n) => `conversation:${n}`)
    const owners = await Promise.all(keys.map(async key => (await gateway.inspect(key)).owner.node))
    const honest = keys.filter((_, n) => owners[n] === fetchers[0].node)
    expect(honest.length).toBeGreaterThan(5)
    const until = performance.now() + seconds * 1_000
    const speaking = Promise.all([fetcher.speak(until), journal.speak(until)])
    let served = 0
    const growth = watchMemory(gateway.process.pid)
    while (performance.now() < until) {
      const client = await joinRooms(gateway.url)
      client.send({ type: 'subscribe', keys: [...keys, { key: 'room:42', presence: true }] })
      client.send({ type: 'publish', id: 'p', key: 'room:42', data: served })
      client.send({ type: 'history', id: 'h', key: 'room:42', before: 900, limit: 50 })
      client.send({ type: 'join', id: 'j', key: 'room:42', name: 'Ann' })
      const values = () => new Set(client.all('value').map(({ key }) => key))
      await client.until(() => honest.every(key => values().has(key)), "the values of the honest node's keys")
      expect(await client.request({ type: 'ping' })).toMatchObject({ type: 'pong' })
      client.socket.close()
      served++
    }
    await speaking
    show(`a node ${JSON.stringify(fetcher.counts())}, a journal ${JSON.stringify(journal.counts())}, seed ${seed}`)
    show(`${served} clients were served`)
    expect([gateway.process.name, isAlive(gateway.process.pid)]).toEqual([gateway.process.name, true])
    expect(await gateway.metric('keycast_gateway_unexpected_errors_total')).toBe(0)
    const grown = growth()
    show(`the gateway has grown by ${Math.round(grown / MIB)} MiB`)
    expect(grown).toBeLessThan(GROWTH_BYTES_MAX)
  },
  timeoutMs,
)
