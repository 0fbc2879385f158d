// A thousand members who join one room at once: what each of them is sent, counted, with the real journal behind an
// in-process network.
import { createHub, createRoomsBackbone, type RoomsEvents, roomsCodec } from '@keycast/backbone'
import { createMemoryNetwork } from '@keycast/backbone/memory'
import { realWorld } from '@keycast/service'
import { createJournal } from '../../../../journal/journal.ts'
import { createMemoryLog } from '../../../../journal/log/memory/memory.ts'
import { createNamespaces, createTestGateway, noMetrics } from '../../../test-support.ts'

const key = 'room:1'
const rooms = { room: { members: 'named' as const, names: 'unique' as const } }
const MEMBERS = 1_000

const silent: any = { debug() {}, info() {}, warn() {}, error() {} }

/** Counts every label of every metric to nowhere. */
const metrics = { ...noMetrics, counter: () => ({ inc() {} }) } as any

test('1,000 members who join within a second are sent 15 frames each at most, the answers included', async () => {
  const network = createMemoryNetwork()
  const hub = createHub({ codec: roomsCodec, bind: network.bindOf('n1'), log: silent, ...network })
  const journal = createJournal({
    namespaces: createNamespaces({}, rooms).journal,
    hub,
    log: createMemoryLog({ ...realWorld, bytesMax: 1e6 }),
    metrics,
    report: silent,
    ...network,
  })
  await journal.start()
  const backbone = (events: RoomsEvents) =>
    createRoomsBackbone({
      ...network,
      nodeSource: { start: async found => found(['n1']), stop() {} },
      events,
      log: silent,
    })
  const { gateway, connect } = createTestGateway({ rooms, journal: { backbone } as any })
  await gateway.start()
  await network.settle()
  const clients = []
  for (let n = 0; n < MEMBERS; n++) clients.push(await connect())

  for (let n = 0; n < MEMBERS; n++) {
    clients[n].send({ type: 'subscribe', id: 1, keys: [{ key, presence: true }] })
    clients[n].send({ type: 'join', id: 2, key, name: `Guest ${n}` })
    if (n % (MEMBERS / 50) === 0) await network.pass(20)
  }
  await network.pass(2_000)

  for (const client of clients) {
    const heard = await client.received()
    const of = (type: string) => heard.filter(each => each.type === type).length
    expect([of('subscribed'), of('joined'), of('error')]).toEqual([1, 1, 0])
    expect(heard.length).toBeLessThanOrEqual(15)
    expect(heard.findLast(({ count }) => count !== undefined)).toMatchObject({ count: MEMBERS })
  }
  await gateway.stop()
  await journal.stop()
})
