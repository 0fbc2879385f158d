// Two journals on one log, and gateways that each reach one of them: a unique name is granted twice, and once the network
// heals one of the two is told.
import { createHub, createRoomsBackbone, roomsCodec } from '@keycast/backbone'
import { createMemoryNetwork } from '@keycast/backbone/memory'
import { errorCodes, type Problem } from '@keycast/protocol'
import { realWorld } from '@keycast/service'
import { createMetrics } from '@keycast/service/metrics'
import { createJournal } from '../journal.ts'
import { createMemoryLog } from '../log/memory/memory.ts'

const silent: any = { debug() {}, info() {}, warn() {}, error() {} }

/** Gateways take a silent node for dead after 3 s, and try it again with each beat. */
const NOTICED_MS = 6_000

const room = 'room:1'

async function setup() {
  const network = createMemoryNetwork()
  const rules = { history: {}, bytesMax: 1_000, members: 'named', names: 'unique' } as any
  const namespaces = { get: (name: string) => (name === 'room' ? rules : undefined), names: ['room'] }
  const log = createMemoryLog({ ...realWorld, bytesMax: 1e9 })
  for (const node of ['n1', 'n2']) {
    const hub = createHub({ codec: roomsCodec, bind: network.bindOf(node), log: silent, ...network })
    const metrics = createMetrics({ service: 'journal' })
    await createJournal({ namespaces, hub, log, metrics, report: silent, ...network }).start()
  }

  async function startGateway() {
    /** Nodes that this gateway does not reach. */
    const cut = new Set<string>()
    let members = new Map<string, string>()
    const backbone = createRoomsBackbone({
      ...network,
      dialOf: name => message => {
        const sockets = network.dialOf(name)(parts => cut.has(name) || message(parts))
        return {
          ...sockets,
          request: async parts => cut.has(name) || sockets.request(parts),
          beat: part => cut.has(name) || sockets.beat(part),
        }
      },
      nodeSource: { start: async found => found(['n1', 'n2']), stop() {} },
      log: silent,
      events: {
        onHead() {},
        onMessages() {},
        onGap() {},
        onFailed() {},
        onMembers(_, said) {
          members = new Map(said.members?.map(({ id, name }) => [id, name]))
        },
        onPresence(_, { joined = [], left = [] }) {
          for (const { id } of left) members.delete(id)
          for (const { id, name } of joined) members.set(id, name)
        },
      },
    })
    await backbone.start()
    await network.pass(1_000)
    backbone.watchMembers(room)
    const lost: string[] = []

    async function join(user: string, name: string) {
      const options = { deadlineMs: 5_000, onLost: (problem: Problem) => void lost.push(problem.code) }
      const { joined } = backbone.join({ room, user, name, claim: undefined }, options)
      await network.pass(500)
      return joined
    }
    return { backbone, cut, lost, join, names: () => [...members.values()].sort() }
  }
  return { network, one: await startGateway(), other: await startGateway() }
}

test.each(['n1', 'n2'])(
  'of two who were granted one name in a partition, one is told (%s is lost by one)',
  async lostByOne => {
    const { network, one, other } = await setup()
    const { node: owner } = one.backbone.ownerOf(room)
    one.cut.add(lostByOne)
    other.cut.add(lostByOne === 'n1' ? 'n2' : 'n1')
    await network.pass(NOTICED_MS)
    expect(await one.join('ann', 'Ann')).toMatchObject({ name: 'Ann' })
    expect(await other.join('bob', 'Ann')).toMatchObject({ name: 'Ann' })

    for (const { cut } of [one, other]) cut.clear()
    await network.pass(NOTICED_MS)
    // The member at the room's own journal keeps the name.
    const [keeps, loses] = lostByOne === owner ? [other, one] : [one, other]
    expect({ keeps: keeps.lost, loses: loses.lost }).toEqual({ keeps: [], loses: ['name_taken'] })
    for (const { names } of [one, other]) expect(names()).toEqual(['Ann'])
    expect(await loses.join('cal', 'Ann')).toEqual({ code: 'name_taken', message: errorCodes.name_taken })
  },
)
