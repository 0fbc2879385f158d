// Journals with a log each, named together by mistake: they are two histories. Gateways use one of them, the same, and
// say so; and what each gateway uses can be compared.
import { eventually } from '../support/deadline.ts'
import { ask } from '../support/http.ts'
import { startJournal } from '../support/journal.ts'
import { joinRooms } from '../support/rooms.ts'
import { startRooms } from '../support/system.ts'

type Gateway = Awaited<ReturnType<typeof startRooms>>['gateways'][number]

/** The log that a gateway says it uses. */
async function logOf({ internal }: Gateway) {
  const text = (await ask(`${internal}/metrics`)).body.toString()
  return /^keycast_gateway_journal_log_info\{log="(.+)"\} 1$/m.exec(text)?.[1]
}

const healthOf = async ({ internal }: Gateway) => {
  const { status, json } = await ask(`${internal}/health/ready`)
  return { code: status, ...json() }
}

const startTwo = (...kinds: string[]) => Promise.all(kinds.map(kind => startJournal({ env: { JOURNAL_LOG: kind } })))

/** For all tests. */
const two = await startTwo('lmdb', 'lmdb')

const pairs = [
  ['lmdb', async () => two],
  ['memory', () => startTwo('memory', 'lmdb')],
] as const

test.each(pairs)(
  'gateways that name two journals (%s and lmdb) use one log, all the same, and say so',
  async (_, start) => {
    const journals = await start()
    const [used, other] = [...journals].sort((a, b) => (a.node < b.node ? -1 : 1))
    const { gateways, startGateway } = await startRooms({
      journals: 0,
      gateways: 2,
      env: { JOURNAL_NODES: `${other.node},${used.node}` },
    })
    // Whichever is heard first, and however they are named.
    gateways.push(await startGateway({ JOURNAL_NODES: `${used.node},${other.node}` }))
    const { logId } = used.process().listening
    for (const gateway of gateways) {
      await eventually(
        async () => (await gateway.metric('keycast_gateway_journal_nodes_other_log')) === 1,
        'the other log being noticed',
      )
      expect(await logOf(gateway)).toBe(logId)
      const problem = `journal ${other.node} keeps another log than the one in use (${logId}), and is not used`
      expect(await healthOf(gateway)).toEqual({ code: 200, status: 'degraded', problems: [problem] })
      const said = () => gateway.process.log().filter(({ msg }) => msg.startsWith('a node keeps another log'))
      await eventually(() => said().length > 0, 'the log saying so')
      expect(said()).toEqual([expect.objectContaining({ node: other.node, inUse: logId })])
    }

    const clients = await Promise.all(gateways.map(({ url }) => joinRooms(url)))
    const keys = Array.from({ length: 20 }, (_, n) => `room:${n}`)
    for (const client of clients) await client.subscribe(...keys)
    const answers = await Promise.all(keys.map((key, n) => clients[n % 3].publish(key, n)))
    expect(new Set(answers.map(({ epoch, seq }) => `${epoch} ${seq}`)).size).toBe(1)
    for (const client of clients) {
      await client.until(() => client.all('message').length === 20, 'every message')
      expect(client.all('gap')).toEqual([])
    }
  },
)

test('gateways that name a journal each say different logs', async () => {
  const { startGateway } = await startRooms({ journals: 0, gateways: 0 })
  const logs = []
  for (const { node } of two) logs.push(await logOf(await startGateway({ JOURNAL_NODES: node })))
  expect(logs).toEqual(two.map(journal => journal.process().listening.logId))
  expect(new Set(logs).size).toBe(2)
  for (const [index, journal] of two.entries()) {
    expect(String((await journal.internal('/metrics')).body)).toContain(
      `keycast_journal_log_info{log="${logs[index]}"} 1`,
    )
  }
})

test('while the journal in use is away the other one is not used, and the rooms go on where they were', async () => {
  const [used, other] = [...two].sort((a, b) => (a.node < b.node ? -1 : 1))
  const { gateways } = await startRooms({ journals: 0, env: { JOURNAL_NODES: `${used.node},${other.node}` } })
  const [gateway] = gateways
  const client = await joinRooms(gateway.url)
  await client.subscribe('room:away')
  expect(await client.publish('room:away', 'before')).toMatchObject({ type: 'published', seq: 1 })
  await used.process().kill()
  await eventually(
    async () => (await gateway.metric('keycast_gateway_journal_nodes_alive')) === 0,
    'the journal being missed',
  )
  expect(await client.publish('room:away', 'meanwhile')).toMatchObject({ code: 'journal_unavailable' })
  await used.restart()
  await eventually(
    async () => (await client.publish('room:away', 'after')).type === 'published',
    'the journal answering',
  )
  await client.until(() => client.all('message').length === 2, 'both messages')
  expect(client.all('message').map(({ data }) => data)).toEqual(['before', 'after'])
  expect(client.all('gap')).toEqual([])

  // Where the other one is stopped, nothing is wrong any more.
  await other.process().kill()
  await eventually(async () => (await healthOf(gateway)).status === 'ready', 'the gateway being well')
})
