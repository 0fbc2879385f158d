// Journals with their log in Valkey, under load: a Valkey that is killed, fails over or is full, and a journal that
// dies. Each acknowledged message is there once, or everybody is told that another history began.
import { publishTo } from '@keycast/backbone'

import { isProblem } from '@keycast/protocol'
import { startBlackhole } from '../support/blackhole.ts'
import { createChecker } from '../support/checker.ts'
import { atEnd } from '../support/cleanup.ts'
import { eventually } from '../support/deadline.ts'
import { show } from '../support/figures.ts'
import { startJournal } from '../support/journal.ts'
import { startRooms } from '../support/journal-links.ts'
import { expectWhole, startRun } from '../support/journal-run.ts'
import { writeConfig } from '../support/keycast-yaml.ts'
import { startSwitch } from '../support/tcp-switch.ts'
import { startValkey } from '../support/valkey.ts'

async function newValkey(options?: Parameters<typeof startValkey>[0]) {
  const valkey = await startValkey(options)
  atEnd(() => valkey.remove())
  return valkey
}

const journalOn = (url: string, { env, config }: { env?: Record<string, string>; config?: string } = {}) =>
  startJournal({ env: { JOURNAL_LOG: 'valkey', VALKEY_URL: url, ...env }, config })

/** The clock of this process is a day ahead. */
const dayAhead = { NODE_OPTIONS: '--import=data:text/javascript,const%20now=Date.now;Date.now=()=>now()+86400000' }

const hello = { room: 'room:1', messageId: undefined, from: 'ann', data: Buffer.from('"hello"') }

/** @param node of a journal */
const newGateway = (node: string) => startRooms('gateway', node, createChecker())

/** @param count more of each gateway */
async function acknowledgeMore({ loads }: Awaited<ReturnType<typeof startRun>>, count: number) {
  const before = loads.map(load => load.acknowledged())
  for (const [index, load] of loads.entries()) {
    await eventually(() => load.acknowledged() > before[index] + count, 'publishes being acknowledged')
  }
}

test('a Valkey killed and started again under load has every acknowledged message once', async () => {
  const valkey = await newValkey()
  const run = await startRun(1_000, { journals: [await journalOn(valkey.url)] })
  for (let round = 0; round < 3; round++) {
    await acknowledgeMore(run, 300)
    await valkey.kill()
    await eventually(() => run.loads[0].errors.journal_unavailable > 0, 'publishers being told')
    await valkey.restart()
  }
  await acknowledgeMore(run, 300)
  const { sent } = await expectWhole(run)
  show(`3 kills of Valkey: ${sent} sent and kept once, errors on the way ${JSON.stringify(run.loads[0].errors)}`)
})

test('after a failover to a replica that lags, everybody is told that another history began', async () => {
  const primary = await newValkey()
  const replica = await newValkey({ settings: ['--replicaof', '127.0.0.1', String(primary.port)] })
  const address = await startSwitch(primary.port)
  const run = await startRun(500, { journals: [await journalOn(`valkey://127.0.0.1:${address.port}`)] })
  await acknowledgeMore(run, 200)
  await eventually(() => replica.cli('INFO', 'replication').includes('master_link_status:up'), 'the replica following')
  replica.cli('REPLICAOF', '127.0.0.1', '1') // leads nowhere: the replica keeps its present content
  await acknowledgeMore(run, 200)
  const before = run.gateways.map(gateway => gateway.positionOf('room:0')?.epoch)
  await primary.kill()
  replica.cli('REPLICAOF', 'NO', 'ONE')
  address.leadTo(replica.port)
  await acknowledgeMore(run, 200)
  for (const [index, gateway] of run.gateways.entries()) {
    for (const room of run.rooms) {
      await eventually(() => gateway.positionOf(room)?.epoch !== before[index], `${room} having another epoch`)
    }
  }
  const { sent, lost } = await expectWhole(run, { mayBeLost: ({ result }) => result.epoch === before[0] })
  expect(lost).toBeGreaterThan(0)
  show(`a failover to a replica that lags: of ${sent} acknowledged ${lost} were lost, and said so by another epoch`)
})

test('a primary cut off from its replica acknowledges nothing that a failover to the replica loses', async () => {
  const primary = await newValkey({ settings: ['--min-replicas-to-write', '1', '--repl-diskless-sync-delay', '0'] })
  const toPrimary = await startSwitch(primary.port)
  const replica = await newValkey({ settings: ['--replicaof', '127.0.0.1', String(toPrimary.port)] })
  const hasFile = ['master_link_status:up', 'aof_rewrite_in_progress:0', 'aof_rewrite_scheduled:0']
  await eventually(() => hasFile.every(line => replica.cli('INFO').includes(line)), 'the replica having all on disk')

  const url = `valkey://127.0.0.1:${primary.port}`
  const cutOff = await journalOn(url, { env: { VALKEY_REPLICAS_MIN: '1' } })
  const run = await startRun(500, { journals: [cutOff], deadlineMs: 5_000 })
  await acknowledgeMore(run, 200)
  const before = run.gateways[0].positionOf('room:0')?.epoch

  toPrimary.silence()
  replica.cli('REPLICAOF', 'NO', 'ONE')
  await eventually(() => run.loads[0].errors.publish_unknown > 100, 'publishers being told that nobody knows')
  await eventually(() => run.loads[0].errors.journal_unavailable > 100, 'the primary noticing that it is alone')
  const onPrimary = await historyLength(run)
  await cutOff.process().kill()
  await cutOff.restart({ VALKEY_URL: replica.url, VALKEY_REPLICAS_MIN: '0' })

  await acknowledgeMore(run, 200)
  const { sent } = await expectWhole(run)
  const results = await Promise.all(run.loads.map(load => load.stop()))
  const ofPrimary = results.flat().filter(({ result }) => result.epoch === before).length
  expect(ofPrimary).toBeGreaterThan(400)
  show(
    `a primary cut off from its replica: it kept ${onPrimary} messages and acknowledged ${ofPrimary} of ${sent}, ` +
      'all of them on the replica',
  )
})

/** Messages of all rooms, as their journal has them now. */
async function historyLength({ gateways, rooms }: Awaited<ReturnType<typeof startRun>>) {
  let sum = 0
  for (const room of rooms) {
    const part = await gateways[0].history(room, { before: 1, limit: 1 }, { deadlineMs: 10_000 })
    if (isProblem(part)) throw new Error(part.code)
    sum += part.newest
  }
  return sum
}

test.concurrent('a journal whose clock is a day ahead trims nothing of what all share', async () => {
  const valkey = await newValkey()
  const config = writeConfig({ room: { source: 'journal', history: { age: '1h' } } })
  const right = await journalOn(valkey.url, { config })
  const wrong = await journalOn(valkey.url, { config, env: dayAhead })
  const [one, other] = [await newGateway(right.node), await newGateway(wrong.node)]
  for (let n = 0; n < 10; n++) await publishTo(one, hello, { deadlineMs: 10_000 })
  const last = await publishTo(other, hello, { deadlineMs: 10_000 })
  expect(last).toMatchObject({ seq: 11 })
  expect(await one.history('room:1', { after: 0, limit: 20 }, { deadlineMs: 10_000 })).toMatchObject({
    oldest: 1,
    newest: 11,
  })
  expect((last as any).at - Date.now()).toBeLessThan(3_600_000)
})

test.concurrent('a journal that starts with an older, shorter history trims nothing of what others keep', async () => {
  const valkey = await newValkey()
  const roomsOf = (messages: number) => {
    return writeConfig({ room: { source: 'journal', history: { messages } } })
  }
  const right = await journalOn(valkey.url, { config: roomsOf(1_000) })
  const one = await newGateway(right.node)
  for (let n = 0; n < 20; n++) await publishTo(one, hello, { deadlineMs: 10_000 })
  const old = await journalOn(valkey.url, { config: roomsOf(5) })
  const other = await newGateway(old.node)
  expect(await publishTo(other, hello, { deadlineMs: 10_000 })).toMatchObject({ seq: 21 })
  expect(await one.history('room:1', { after: 0, limit: 50 }, { deadlineMs: 10_000 })).toMatchObject({
    oldest: 1,
    newest: 21,
  })
  expect(String((await old.internal('/metrics')).body)).toContain('keycast_journal_shorter_histories 1')
})

test('a Valkey out of memory keeps nothing more, can be read, and heals', async () => {
  const valkey = await newValkey()
  const journal = await journalOn(valkey.url)
  const run = await startRun(500, { journals: [journal] })
  await acknowledgeMore(run, 200)
  valkey.cli('CONFIG', 'SET', 'maxmemory', '1mb')
  await eventually(() => run.loads[0].errors.log_full > 0, 'publishers being told')
  const [gateway] = run.gateways
  expect(await gateway.history('room:0', { after: 0, limit: 1 }, { deadlineMs: 10_000 })).toMatchObject({ oldest: 1 })
  expect((await journal.internal('/health/ready')).status).toBe(200)
  valkey.cli('CONFIG', 'SET', 'maxmemory', '0')
  await acknowledgeMore(run, 200)
  await expectWhole(run)
})

test('of two journals one is killed: the other goes on with its rooms, and nobody misses a message', async () => {
  const valkey = await newValkey()
  const journals = [await journalOn(valkey.url), await journalOn(valkey.url)]
  // Enough that both own some of them, whatever their ports.
  const run = await startRun(1_000, { journals, rooms: 24 })
  await acknowledgeMore(run, 300)
  await eventually(() => run.gateways.every(gateway => gateway.nodesAlive() === 2), 'the gateways hearing both')
  const owners = new Set(run.rooms.map(room => run.gateways[0].ownerOf(room).node))
  expect(owners.size).toBe(2)
  journals[1].process().signal('SIGKILL')
  await eventually(() => run.gateways.every(gateway => gateway.nodesAlive() === 1), 'the gateways noticing')
  await acknowledgeMore(run, 300)
  await journals[1].restart()
  await eventually(() => run.gateways.every(gateway => gateway.nodesAlive() === 2), 'the gateways noticing')
  await acknowledgeMore(run, 300)
  const { sent } = await expectWhole(run)
  show(`a journal of two killed and started: ${sent} sent and kept once, ${JSON.stringify(run.loads[0].errors)}`)
})

test('of two journals one is cut off from Valkey: the other goes on with its rooms, and nobody misses a message', async () => {
  const valkey = await newValkey()
  const hole = await startBlackhole(valkey.port, { isPlain: true })
  const journals = [await journalOn(valkey.url), await journalOn(`valkey://127.0.0.1:${hole.port}`)]
  const run = await startRun(200, { journals, rooms: 24 })
  await acknowledgeMore(run, 100)
  const owners = () => new Set(run.gateways.flatMap(gateway => run.rooms.map(room => gateway.ownerOf(room).node)))
  await eventually(() => owners().size === 2, 'both having rooms')
  hole.swallow('hold')
  await eventually(() => owners().size === 1, 'the other having all rooms')
  await acknowledgeMore(run, 300)
  hole.mend()
  await eventually(() => owners().size === 2, 'both having rooms again')
  await acknowledgeMore(run, 100)
  await expectWhole(run)
})

test('gateways that disagree on the journals see one order', async () => {
  const valkey = await newValkey()
  const journals = [await journalOn(valkey.url), await journalOn(valkey.url)]
  const run = await startRun(1_000, { journals, nodes: [journals[0].node, journals[1].node], rooms: 3 })
  await acknowledgeMore(run, 1_000)
  await expectWhole(run)
})

test.concurrent('a Valkey that would lose messages is refused with exit code 2, in words that name the loss', async () => {
  const valkey = await newValkey({ settings: ['--appendfsync', 'everysec'] })
  await expect(journalOn(valkey.url)).rejects.toThrow(
    /ended with 2 before it listened:[\s\S]*appendfsync is everysec: a crash of its machine loses about the last second/,
  )
})
