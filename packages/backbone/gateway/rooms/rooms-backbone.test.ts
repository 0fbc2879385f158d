// A gateway's reading of a journal's messages; services/journal tests both together.

import { isProblem } from '@keycast/protocol'
import { createHub } from '../../hub/hub.ts'
import { createMemoryNetwork } from '../../memory/network.ts'
import { keyOfFirst } from '../../memory/test-support.ts'
import { roomsCodec } from '../../wire/rooms-codec.ts'
import { createRoomsBackbone, publishTo } from './rooms-backbone.ts'

const silent: any = { debug() {}, info() {}, warn() {}, error() {} }

/** A journal whose messages the test writes. */
async function setup() {
  const network = createMemoryNetwork()
  const hub = createHub({ codec: roomsCodec, bind: network.bindOf('n1'), log: silent, ...network })
  const heard: any[] = []
  let answers: any[] = []
  let heads: any
  let link = ''
  await hub.start({
    onWatch(from, { key, position }) {
      link = from
      heard.push(['watch', key, position?.seq])
    },
    onUnwatch: (_, key) => void heard.push(['unwatch', key]),
    onGet(from, { key }) {
      link = from
      heard.push(['get', key])
    },
    onCancelGet: (_, key) => void heard.push(['cancelGet', key]),
    onCommand: (from, id, command) => {
      link = from
      heard.push(['publish', id, command])
    },
    onLinkLost() {},
    answersFor: () => ({ answers: answers.splice(0), more: false }),
    headsFor: () => heads,
  })
  const seen: any[] = []
  const backbone = createRoomsBackbone({
    ...network,
    nodeSource: { start: async found => found(['n1']), stop() {} },
    events: {
      onHead: (room, { seq, after }) => seen.push(['head', room, seq, after]),
      onMessages: (_, { messages }) => seen.push(...messages.map(({ seq }) => seq)),
      onGap: (_, { seq, reason }) => seen.push(['gap', seq, reason]),
      onFailed: (_, { code }) => seen.push(['failed', code]),
    },
    log: silent,
  })
  await backbone.start()
  await network.settle()

  async function say(...said: any[]) {
    answers = said
    hub.tell(link, 'any')
    await network.settle()
  }
  return {
    network,
    hub,
    backbone,
    heard,
    seen,
    say,
    setHeads: (said: any) => {
      heads = said
    },
    tellResult: (id: string, result: any) => hub.tellResult(link, id, result),
  }
}

const key = 'room:1'
const head = (seq: number, after = seq) => ({ type: 'head', key, epoch: 'E', seq, oldest: 1, after })
const batch = (...seqs: number[]) => ({
  type: 'messages',
  key,
  epoch: 'E',
  messages: seqs.map(seq => ({ seq, at: 1, from: '', messageId: undefined, data: Buffer.from('1') })),
})

test('messages are passed on as they follow each other; those that were there already are not', async () => {
  const { network, backbone, seen, say } = await setup()
  backbone.watch(key)
  await network.settle()
  await say(head(3), batch(4, 5), batch(5, 6), batch(4))
  expect(seen).toEqual([['head', key, 3, 3], 4, 5, 6])
})

test('a hole is asked for again from the position reached, once, and nothing behind it is passed on', async () => {
  const { network, backbone, heard, seen, say } = await setup()
  backbone.watch(key, { epoch: 'E', seq: 3 })
  await network.settle()
  await say(head(3), batch(4), batch(6), batch(7))
  expect(heard).toEqual([
    ['watch', key, 3],
    ['watch', key, 4],
  ])
  expect(backbone.healed()).toBe(1)
  await say(head(7, 4), batch(5, 6, 7))
  expect(seen).toEqual([['head', key, 3, 3], 4, ['head', key, 7, 4], 5, 6, 7])
})

test('a journal whose answers never fit is asked again once a beat, and not as fast as it answers', async () => {
  const { network, backbone, heard, seen, say } = await setup()
  backbone.watch(key, { epoch: 'E', seq: 3 })
  await network.settle()
  const misfit = { ...head(9), epoch: 'F' }
  for (let round = 0; round < 10; round++) await say(misfit)
  expect(heard).toHaveLength(2)
  await network.pass(1_000)
  expect(heard).toHaveLength(3)
  for (let round = 0; round < 10; round++) await say(misfit)
  await network.pass(1_000)
  expect(heard).toHaveLength(4)

  await say(head(3))
  await say(batch(5))
  expect(seen).toEqual([['head', key, 3, 3]])
  expect(heard).toHaveLength(5)
})

test('a head on a beat shows that the last message was lost', async () => {
  const { network, backbone, heard, say, setHeads } = await setup()
  backbone.watch(key)
  await network.settle()
  await say(head(0), batch(1))
  setHeads([
    { key, epoch: 'E', seq: 1 },
    { key: 'room:2', epoch: 'E', seq: 9 },
  ])
  await network.pass(1_000)
  expect(heard).toHaveLength(1)
  setHeads([{ key, epoch: 'E', seq: 2 }])
  await network.pass(1_000)
  expect(heard.slice(1)).toEqual([['watch', key, 1]])
})

test('after a gap the stream goes on behind the head; a failure is passed on', async () => {
  const { network, backbone, seen, say } = await setup()
  backbone.watch(key, { epoch: 'E', seq: 3 })
  await network.settle()
  await say(
    { type: 'failed', key, code: 'journal_unavailable', message: 'later', retryAfterMs: 1_000 },
    { type: 'gap', key, epoch: 'F', seq: 9, oldest: 5, reason: 'epoch' },
    { ...batch(10), epoch: 'F' },
  )
  expect(seen).toEqual([['failed', 'journal_unavailable'], ['gap', 9, 'epoch'], 10])
  backbone.unwatch(key)
  await say({ ...batch(11), epoch: 'F' })
  expect(seen).toHaveLength(3)
})

test('a gap that was made for an earlier position is no gap: what follows the position is asked for', async () => {
  const { network, backbone, heard, seen, say, setHeads } = await setup()
  backbone.watch(key, { epoch: 'E', seq: 3 })
  await network.settle()
  await say(head(3))
  setHeads([{ key, epoch: 'F', seq: 5 }])
  await network.pass(1_000)
  setHeads(undefined)
  const gap = { type: 'gap', key, epoch: 'F', oldest: 5, reason: 'epoch' }
  await say({ ...gap, seq: 5 }, { ...batch(6, 7), epoch: 'F' }, { ...gap, seq: 9 }, { ...batch(10), epoch: 'F' })
  expect(heard.map(([, , seq]) => seq)).toEqual([3, 3, 7])
  await say({ ...head(10, 7), epoch: 'F' }, { ...batch(8, 9, 10), epoch: 'F' })
  expect(seen).toEqual([['head', key, 3, 3], ['gap', 5, 'epoch'], 6, 7, ['head', key, 10, 7], 8, 9, 10])
})

test('above 64 MiB of data under way a publish is refused, until some of it has ended', async () => {
  const { network, backbone } = await setup()
  const data = Buffer.alloc(2 ** 20 - 1, '1')
  const publish = async () => {
    const end = await publishTo(backbone, { room: key, messageId: undefined, from: '', data }, { deadlineMs: 500 })
    return isProblem(end) ? end.code : 'kept'
  }
  const taken = Array.from({ length: 65 }, publish)
  expect(await publish()).toBe('journal_unavailable')
  await network.pass(600)
  expect(new Set(await Promise.all(taken))).toEqual(new Set(['publish_unknown']))
  const again = publish()
  await network.pass(600)
  expect(await again).toBe('publish_unknown')
})

test('a publish ends with its result, or says whether it may have been kept', async () => {
  const { network, hub, backbone, heard, tellResult } = await setup()
  const publish = (text: string) =>
    publishTo(backbone, { room: key, messageId: undefined, from: 'ann', data: Buffer.from(text) }, { deadlineMs: 500 })
  const kept = publish('1')
  await network.settle()
  const [[, id, command]] = heard
  expect(command).toMatchObject({ room: key, messageId: expect.stringMatching(/^[\w-]{16}$/), from: 'ann' })
  tellResult(id, { epoch: 'E', seq: 1, at: 5, duplicate: false })
  await network.settle()
  expect(await kept).toEqual({ epoch: 'E', seq: 1, at: 5, duplicate: false })

  const unknown = publish('2')
  await network.pass(600)
  expect(await unknown).toMatchObject({ code: 'publish_unknown', retryAfterMs: 1_000 })

  await hub.stop()
  await network.settle()
  expect(backbone.isAvailable(key)).toBe(false)
  expect(await publish('3')).toMatchObject({ code: 'journal_unavailable', retryAfterMs: 1_000 })
})

test('those who ask the same part of a history share one read; each has its deadline', async () => {
  const { network, backbone, heard, say } = await setup()
  const first = backbone.history(key, { after: 0, limit: 50 }, { deadlineMs: 500 })
  await network.settle()
  const second = backbone.history(key, { after: 0, limit: 50 }, { deadlineMs: 5_000 })
  await network.pass(1_000)
  expect(await first).toMatchObject({ code: 'journal_unavailable' })
  expect(heard).toEqual([['get', 'room:1 - after 0 50']])
  const { messages } = batch(1, 2)
  await say({
    type: 'history',
    key: heard[0][1],
    epoch: 'E',
    oldest: 1,
    newest: 2,
    messages,
    more: false,
    truncated: false,
  })
  expect(await second).toMatchObject({ epoch: 'E', newest: 2, messages: [{ seq: 1 }, { seq: 2 }] })

  const left = backbone.history(key, { before: 9, limit: 1 }, { deadlineMs: 500 })
  await network.pass(1_000)
  expect(await left).toMatchObject({ code: 'journal_unavailable' })
  expect(heard.at(-1)).toEqual(['cancelGet', 'room:1 - before 9 1'])

  const other = backbone.history(key, { epoch: 'F', before: 9, limit: 1 }, { deadlineMs: 500 })
  await network.settle()
  await say({ type: 'failed', key: 'room:1 F before 9 1', code: 'other_epoch', message: 'another' })
  expect(await other).toEqual({ code: 'other_epoch', message: 'another' })
})

test('publishes under way go to the next journal of their room when theirs dies, in order and before later ones', async () => {
  const network = createMemoryNetwork()
  const heard = new Map<string, string[]>()
  const silentJournal = async (name: string) => {
    const hub = createHub({ codec: roomsCodec, bind: network.bindOf(name), log: silent, ...network })
    const texts = [] as string[]
    heard.set(name, texts)
    await hub.start({
      onWatch() {},
      onUnwatch() {},
      onGet() {},
      onCancelGet() {},
      onCommand(link, id, command) {
        if (command.type === 'publish') texts.push(command.data.toString())
        if (name === 'n2') hub.tellResult(link, id, { epoch: 'E', seq: texts.length, at: 1, duplicate: false })
      },
      onLinkLost() {},
      answersFor: () => ({ answers: [], more: false }),
    })
  }
  await silentJournal('n1')
  await silentJournal('n2')
  const backbone = createRoomsBackbone({
    ...network,
    nodeSource: { start: async found => found(['n1', 'n2']), stop() {} },
    events: { onHead() {}, onMessages() {}, onGap() {}, onFailed() {} },
    log: silent,
  })
  await backbone.start()
  await network.settle()
  const room = keyOfFirst(['n1', 'n2'])
  const publish = (text: string) =>
    publishTo(backbone, { room, messageId: undefined, from: '', data: Buffer.from(text) }, { deadlineMs: 60_000 })

  const ends = [publish('1'), publish('2')]
  await network.settle()
  expect(heard.get('n1')).toEqual(['1', '2'])
  network.swallowed.add('n1 answers').add('n1 beats').add('n1 requests')
  ends.push(publish('3'))
  await network.pass(4_000)
  ends.push(publish('4'))
  await network.settle()
  expect(heard.get('n2')).toEqual(['1', '2', '3', '4'])
  expect(await Promise.all(ends)).toMatchObject([1, 2, 3, 4].map(seq => ({ seq })))
  await backbone.stop()
})

test('a repeated publish that is not kept now may have been kept before: its outcome is unknown', async () => {
  const { network, backbone, heard, tellResult } = await setup()
  const publish = { room: 'room:1', messageId: undefined, from: '', data: Buffer.from('1') }
  const first = publishTo(backbone, publish, { deadlineMs: 60_000 })
  await network.settle()
  network.swallowed.add('n1 answers').add('n1 beats')
  tellResult(heard[0][1], { epoch: 'E', seq: 1, at: 1, duplicate: false })
  await network.pass(4_000)
  network.swallowed.clear()
  await network.pass(4_000)
  const ids = heard.filter(([what]) => what === 'publish').map(([, id]) => id)
  expect(ids.length).toBeGreaterThan(1)
  tellResult(ids[0], { code: 'log_full' })
  await network.settle()
  expect(await first).toMatchObject({ code: 'publish_unknown' })
})
