// Values that a backend hands over: both ends, on the memory network.
import type { HandedOver, Taken } from '../backbone.ts'
import { ownersAmong } from '../gateway/rendezvous.ts'
import { createMemoryBackbone } from './backbone-memory.ts'

const KEY = 'doc:1'
const names = ['n1', 'n2']
const owner = ownersAmong(names)(KEY) as string
const other = names.find(name => name !== owner) as string

const content = { version: 'v', contentType: 'text/plain', format: 'text' as const, body: Buffer.from('hello') }
const value: HandedOver = { key: KEY, content, rank: 7 }
const options = { deadlineMs: 5_000 }

/** Nodes that keep what they hear, and answer when told. */
async function setup() {
  const network = createMemoryBackbone()
  const refreshed: Record<string, string[]> = { n1: [], n2: [] }
  const told: Record<string, { link: string; id: string; command: any; leftMs: number }[]> = {}
  const hubs: Record<string, ReturnType<typeof network.hub>> = {}
  for (const name of names) {
    const heard: (typeof told)[string] = []
    told[name] = heard
    hubs[name] = network.hub(name)
    await hubs[name].start({
      onWatch() {},
      onGet() {},
      onUnwatch() {},
      onCancelGet() {},
      onLinkLost() {},
      answersFor: () => ({ answers: [], more: false }),
      onNotice: (_, { keys }) => refreshed[name].push(...keys),
      onCommand: (link, id, command, leftMs) => heard.push({ link, id, command, leftMs }),
    })
  }
  const backbone = network.backbone(names, { held: () => undefined, onAnswer() {} })
  await backbone.start()
  await network.settle()
  return {
    network,
    backbone,
    told,
    refreshed,
    answer(name: string, taken: Taken) {
      for (const { link, id } of told[name].splice(0)) hubs[name].tellResult(link, id, taken)
    },
  }
}

function cutOff({ swallowed }: ReturnType<typeof createMemoryBackbone>, node: string) {
  for (const what of ['requests', 'beats', 'answers']) swallowed.add(`${node} ${what}`)
}

test('the owner of the key is given the value, and what it says comes back', async () => {
  const { network, backbone, told, answer } = await setup()
  for (const taken of [{ outcome: 'taken' }, { outcome: 'older', rank: 9 }] as Taken[]) {
    const handing = backbone.handOver(value, options)
    await network.settle()
    expect(told[owner].map(({ command }) => command)).toEqual([{ type: 'put', ...value }])
    expect(told[owner][0].leftMs).toBeGreaterThan(0)
    answer(owner, taken)
    await network.settle()
    expect(await handing).toEqual(taken)
  }
  const removing = backbone.handOver({ key: KEY, content: undefined }, options)
  await network.settle()
  expect(told[owner][0].command).toEqual({ type: 'put', key: KEY, content: undefined, rank: undefined })
  answer(owner, { code: 'capacity', message: 'full', retryAfterMs: 5 })
  await network.settle()
  expect(await removing).toEqual({ code: 'capacity', message: 'full', retryAfterMs: 5 })
  expect(told[other]).toEqual([])
})

test('other nodes are told that the key changed: one of them may have it for a gateway that sees another owner', async () => {
  const { network, backbone, refreshed, answer } = await setup()
  const hand = async (taken: Taken) => {
    const handing = backbone.handOver(value, options)
    await network.settle()
    answer(owner, taken)
    await network.settle()
    await handing
    await network.settle()
  }
  await hand({ outcome: 'older', rank: 9 })
  expect(refreshed).toEqual({ [owner]: [], [other]: [] })
  await hand({ outcome: 'taken' })
  await hand({ outcome: 'taken' })
  await network.pass(1_000)
  expect(refreshed).toEqual({ [owner]: [], [other]: [KEY] })

  cutOff(network, other)
  await network.pass(4_000)
  await hand({ outcome: 'taken' })
  await network.pass(1_000)
  expect(refreshed[other]).toEqual([KEY])
  network.swallowed.clear()
  await network.pass(4_000)
  expect(refreshed).toEqual({ [owner]: [], [other]: [KEY, KEY] })
})

test('a node that dies with a value leaves it unknown: it is given to no other node, which may have a newer one', async () => {
  const { network, backbone, told } = await setup()
  const handing = backbone.handOver(value, options)
  await network.settle()
  cutOff(network, owner)
  let isEnded = false
  void handing.then(() => {
    isEnded = true
  })
  // Its keys are the other node's by then. Until the deadline it may still be on its way, and come after the next.
  await network.pass(4_500)
  expect(isEnded).toBe(false)
  await network.pass(600)
  expect(await handing).toMatchObject({ code: 'fetcher_unavailable', message: expect.stringContaining('perhaps') })
  expect(told[other]).toEqual([])
})

test('a node that is listed no more has a value perhaps until the deadline: till then it may come after the next', async () => {
  const { network, backbone, told, answer } = await setup()
  const handing = backbone.handOver(value, options)
  await network.settle()
  await network.list([other])
  const next = backbone.handOver(value, options)
  await network.settle()
  answer(other, { outcome: 'taken' })
  await network.settle()
  expect(await next).toEqual({ outcome: 'taken' })
  let isEnded = false
  void handing.then(() => {
    isEnded = true
  })
  await network.pass(4_800)
  expect([isEnded, told[owner].length]).toEqual([false, 1])
  await network.pass(300)
  expect(await handing).toMatchObject({ code: 'fetcher_unavailable', message: expect.stringContaining('perhaps') })
})

test('a value that no node was told of is not taken', async () => {
  const { network, backbone, told } = await setup()
  for (const name of names) cutOff(network, name)
  await network.pass(4_000)
  const handing = backbone.handOver(value, { deadlineMs: 500 })
  await network.pass(600)
  expect(await handing).toMatchObject({ code: 'fetcher_unavailable', message: expect.stringContaining('nothing was') })
  expect(told[owner]).toEqual([])
})

test('values under way are bounded: the others are to come again', async () => {
  const { network, backbone } = await setup()
  const large = { ...content, body: Buffer.alloc(2 ** 20 - 1_024) }
  const handing = Array.from({ length: 65 }, () => backbone.handOver({ key: KEY, content: large }, options))
  expect(await handing[64]).toMatchObject({ code: 'too_many_waiting', retryAfterMs: 1_000 })
  await backbone.stop()
  await network.settle()
  const ends = await Promise.all(handing.slice(0, 64))
  expect(new Set(ends.map(end => 'code' in end && end.code))).toEqual(new Set(['fetcher_unavailable']))
})
