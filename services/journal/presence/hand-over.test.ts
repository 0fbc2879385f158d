// Rooms that go to another journal and come back, and the backend that is told who is in them.
import { createHub, createRoomsBackbone, roomsCodec } from '@keycast/backbone'
import { createMemoryNetwork } from '@keycast/backbone/memory'
import { realWorld } from '@keycast/service'
import { createMetrics } from '@keycast/service/metrics'
import { createJournal } from '../journal.ts'
import { createMemoryLog } from '../log/memory/memory.ts'

const silent: any = { debug() {}, info() {}, warn() {}, error() {} }
const room = 'room:1'

/** Two journals, and a backend that follows docs/http-api.md#members. */
async function setup() {
  const network = createMemoryNetwork()
  const rules = { history: {}, bytesMax: 1_000, members: 'named', names: 'any', notify: { members: true } } as any
  const namespaces = { get: (name: string) => (name === 'room' ? rules : undefined), names: ['room'] }
  const log = createMemoryLog({ ...realWorld, bytesMax: 1e9 })
  let state = { epoch: '', count: 0 }
  async function post(_: unknown, body: string) {
    for (const told of JSON.parse(body).members) if (told.count > 0 || told.epoch === state.epoch) state = told
    return { kind: 'taken' } as const
  }

  async function startJournal(name: string) {
    const hub = createHub({ codec: roomsCodec, bind: network.bindOf(name), log: silent, ...network })
    const metrics = createMetrics({ service: 'journal' })
    const given = { namespaces, hub, log, metrics, report: silent, post: Object.assign(post, { close() {} }) }
    const journal = createJournal({ ...given, ...network })
    await journal.start()
    return journal
  }

  async function startGateway() {
    const cut = new Set<string>()
    const backbone = createRoomsBackbone({
      ...network,
      dialOf: name => message => {
        const sockets = network.dialOf(name)(parts => cut.has(name) || message(parts))
        return { ...sockets, beat: part => cut.has(name) || sockets.beat(part) }
      },
      nodeSource: { start: async found => found(['n1', 'n2']), stop() {} },
      log: silent,
      events: { onHead() {}, onMessages() {}, onGap() {}, onFailed() {} },
    })
    await backbone.start()
    await network.pass(1_000)
    const join = (user: string) =>
      backbone.join({ room, user, name: user, claim: undefined }, { deadlineMs: 5_000, onLost() {} })
    return { backbone, cut, join }
  }
  const journals = new Map([
    ['n1', await startJournal('n1')],
    ['n2', await startJournal('n2')],
  ])
  return {
    ...network,
    journals,
    startJournal,
    gateways: [await startGateway(), await startGateway()],
    state: () => state,
  }
}

test('a backend does not hear of a journal that its rooms went back to another', async () => {
  const { pass, journals, startJournal, gateways, state } = await setup()
  const [one, other] = gateways
  const owner = one.backbone.ownerOf(room).node as string
  one.join('ann')
  other.join('bob')
  await pass(500)
  expect(state()).toMatchObject({ count: 2 })

  await journals.get(owner)?.stop()
  await pass(2_000)
  expect(state()).toMatchObject({ count: 2 })
  await startJournal(owner)
  other.cut.add(owner)
  await pass(1_500)
  other.cut.clear()
  await pass(20_000)
  for (const { backbone } of gateways) expect(backbone.ownerOf(room).node).toBe(owner)
  expect(state()).toMatchObject({ count: 2 })
})

test('a backend hears again of rooms that came back, or it would not believe that nobody is left', async () => {
  const { pass, gateways, state } = await setup()
  const [one, other] = gateways
  const owner = one.backbone.ownerOf(room).node as string
  const joins = [one.join('ann'), other.join('bob')]
  await pass(500)
  const { epoch } = state()
  for (const { cut } of gateways) cut.add(owner)
  await pass(5_000)
  expect(state()).toMatchObject({ epoch: expect.not.stringContaining(epoch), count: 2 })
  for (const { cut } of gateways) cut.clear()
  await pass(20_000)
  expect(state()).toMatchObject({ epoch, count: 2 })
  for (const [index, { backbone }] of gateways.entries()) backbone.leave(joins[index].tab, 'now')
  await pass(500)
  expect(state()).toMatchObject({ epoch, count: 0 })
})
