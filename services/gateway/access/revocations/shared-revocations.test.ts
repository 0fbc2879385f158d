import type { RoomsEvents } from '@keycast/backbone'
import { createMemoryRooms } from '@keycast/backbone/memory'
import { realWorld, revocationsRoom } from '@keycast/service'
import { createTestGateway } from '../../test-support.ts'
import { issuers, sign } from '../test-tokens.ts'
import { createSharedRevocations, type SharedRevocations } from './shared-revocations.ts'

const nowMs = 1_800_000_000_000

/** Not a number of turns: signatures are checked beside the loop, which may turn thousands of times meanwhile. */
const GIVE_UP_MS = 30_000

const cleanUps: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

const createJournal = () => createMemoryRooms({ at: () => nowMs })

/** A gateway that has started. */
async function startGateway(journal: ReturnType<typeof createMemoryRooms>) {
  const testGateway = createTestGateway({ startAtMs: nowMs, journal, rooms: { room: {} }, policy: { tokens: issuers } })
  await testGateway.gateway.start()
  cleanUps.push(() => testGateway.gateway.stop())
  return testGateway
}

async function connectAnn({ connect, turn }: Awaited<ReturnType<typeof startGateway>>) {
  const client = await connect()
  client.send({ type: 'auth', id: 1, token: await sign({ nowMs, keys: { read: ['tick:*'] } }) })
  const answers: any[] = []
  for (const endsAt = performance.now() + GIVE_UP_MS; answers.length === 0 && performance.now() < endsAt; ) {
    await turn()
    answers.push(...client.connection.read())
  }
  return { client, answer: answers[0] }
}

const isRead = (shared: SharedRevocations) => !shared.missing().unread

const ann = { sub: 'ann', before: nowMs / 1_000 + 1 }

test('a revocation at one gateway ends the sessions of the others, and their tokens', async () => {
  const journal = createJournal()
  const [one, other] = [await startGateway(journal), await startGateway(journal)]
  const { client } = await connectAnn(other)
  one.gateway.revoke(ann)
  expect(await one.gateway.shareRevocation?.(ann)).toBeUndefined()
  await other.turn()
  expect(client.connection.closed?.code).toBe(4003)
  expect((await connectAnn(other)).answer).toMatchObject({ code: 'token_refused' })
})

test('a gateway that starts later has read what was revoked before it listens', async () => {
  const journal = createJournal()
  const { gateway } = await startGateway(journal)
  // More than one read of the history brings.
  for (let n = 0; n < 600; n++) await gateway.shareRevocation?.({ jti: `token ${n}` })
  await gateway.shareRevocation?.(ann)
  const later = await startGateway(journal)
  expect((await connectAnn(later)).answer).toMatchObject({ code: 'token_refused' })
})

test.each([
  ['nothing, and says that there is more', { messages: [], newest: 0 }],
  [
    'the same again and again',
    { messages: [{ seq: 1, at: 1, from: '', messageId: undefined, data: Buffer.from('{}') }], newest: 1 },
  ],
])('a journal that gives %s is asked again later, and not at once for ever', async (_, page) => {
  let asked = 0
  const later: (() => void)[] = []
  const shared = createSharedRevocations({
    ...realWorld,
    after: (_, run) => {
      later.push(run)
      return () => {}
    },
    backbone: {
      watch() {},
      unwatch() {},
      isAvailable: () => true,
      publish() {},
      async history() {
        asked++
        if (asked > 10) throw new Error('it was asked for ever')
        return { epoch: 'e', oldest: 1, more: true, truncated: false, ...page }
      },
    },
    apply: () => ({ refused: 0 }),
    endAddress() {},
    askAgain() {},
  })
  await shared.events.get(revocationsRoom)?.onHead('', { epoch: 'e', seq: 9, oldest: 1, after: 9 })
  await new Promise(setImmediate)
  expect([asked, later.length, isRead(shared)]).toEqual([expect.any(Number), 1, false])
  expect(asked).toBeLessThan(3)
})

test('no client can name the room, whatever it may read', async () => {
  const { connect } = await startGateway(createJournal())
  const client = await connect()
  for (const message of [
    { type: 'subscribe', id: 1, keys: [revocationsRoom] },
    { type: 'get', id: 1, key: revocationsRoom },
    { type: 'history', id: 1, key: revocationsRoom, before: 10, limit: 5 },
  ]) {
    expect(await client.ask(message)).toContainEqual(expect.objectContaining({ code: 'unknown_namespace' }))
  }
})

test('an address that is closed at one gateway is closed at the others, each time, and at none that starts later', async () => {
  const journal = createJournal()
  const [one, other] = [await startGateway(journal), await startGateway(journal)]
  const at = (address: string) => other.connect('', '', { peer: { address, isNamed: true } })
  for (let times = 0; times < 2; times++) {
    const [meant, bystander] = [await at('192.0.2.7'), await at('192.0.2.8')]
    expect(await one.gateway.shareClosing?.('192.0.2.7')).toBeUndefined()
    await other.turn()
    expect(meant.connection.closed?.code).toBe(4007)
    expect(bystander.connection.closed).toBeUndefined()
    await one.pass(1)
  }
  const later = setup(journal)
  await later.shared.start()
  expect([later.applied, later.logged]).toEqual([[], []])
})

test('calls that concern the gateways there are take no place among revocations', async () => {
  const journal = createJournal()
  const { shared, backbone } = setup(journal)
  await backbone.start()
  await shared.start()
  await shared.close('192.0.2.7')
  await shared.ask({ user: 'ann' })
  await shared.revoke(ann)
  const kept = await backbone.history(revocationsRoom, { after: 0, limit: 9 }, { deadlineMs: 1_000 })
  expect(kept).toMatchObject({ messages: [{ data: Buffer.from(JSON.stringify(ann)) }] })
})

/** @param refused how many of each batch have no place */
function setup(journal: ReturnType<typeof createMemoryRooms>, refused = 0) {
  const applied: unknown[] = []
  const logged: string[] = []
  const note = (first: unknown, second?: string) => void logged.push(second ?? String(first))
  const events: RoomsEvents = { onHead() {}, onMessages() {}, onGap() {}, onFailed() {} }
  const backbone = journal.backbone(events)
  const shared = createSharedRevocations({
    backbone,
    apply(given) {
      applied.push(...given.map(({ revocation }) => revocation))
      return { refused }
    },
    endAddress: address => applied.push(address),
    askAgain() {},
    log: { debug: note, warn: note },
    ...realWorld,
    startMs: 0,
  })
  Object.assign(events, {
    onHead: (room, head) => shared.events.get(room)?.onHead(room, head),
    onMessages: (room, batch) => shared.events.get(room)?.onMessages(room, batch),
    onGap: (room, gap) => shared.events.get(room)?.onGap(room, gap),
    onFailed: (room, failure) => shared.events.get(room)?.onFailed(room, failure),
  } satisfies RoomsEvents)
  cleanUps.push(() => shared.stop())
  return { shared, backbone, applied, logged }
}

const COMPLETE = { unread: false, unheard: false, dropped: false }

async function until(condition: () => boolean) {
  const endsAt = performance.now() + GIVE_UP_MS
  while (!condition() && performance.now() < endsAt) await new Promise(resolve => setImmediate(resolve))
  expect(condition()).toBe(true)
}

test('a journal that is away keeps no gateway from starting; once it is back, the list is read', async () => {
  const journal = createJournal()
  const before = setup(journal)
  await before.backbone.start()
  await before.shared.revoke(ann)
  journal.setAway(true)
  const { shared, backbone, applied, logged } = setup(journal)
  await backbone.start()
  await shared.start()
  expect(shared.missing()).toEqual({ unread: true, unheard: true, dropped: false })
  expect(logged).toEqual([expect.stringContaining('no journal has answered yet')])
  expect(await shared.revoke({ jti: 'j' })).toMatchObject({ code: 'journal_unavailable' })

  journal.setAway(false)
  await until(() => isRead(shared))
  expect(applied).toEqual([ann])
  expect(logged[1]).toContain('it is complete again')
  expect(shared.missing()).toEqual(COMPLETE)
  // Away again: what is revoked meanwhile is not heard of.
  journal.setAway(true)
  expect(shared.missing()).toEqual({ ...COMPLETE, unheard: true })
})

test('after a history that is another, the whole of it is read', async () => {
  const journal = createJournal()
  const { shared, backbone, applied } = setup(journal)
  await backbone.start()
  await shared.start()
  await until(() => isRead(shared))
  journal.startEpoch('E2')
  await shared.revoke(ann)
  await until(() => applied.length > 0 && isRead(shared))
  expect(applied).toContainEqual(ann)
})

test('what cannot be read is said, and what comes after it holds', async () => {
  const journal = createJournal()
  const { shared, backbone, applied, logged } = setup(journal)
  await backbone.start()
  await shared.start()
  await until(() => isRead(shared))
  journal.append({ room: revocationsRoom, messageId: undefined, from: 'gateway', data: Buffer.from('{"who":"ann"}') })
  journal.append({ room: revocationsRoom, messageId: undefined, from: 'gateway', data: Buffer.from('{"jti":"j"}') })
  expect(logged).toEqual([expect.stringContaining('revocations cannot be read')])
  expect(applied).toEqual([{ jti: 'j' }])
  expect(shared.missing()).toEqual({ ...COMPLETE, dropped: true })
})

test('a list that is full here, or that the journal has cut, is not complete', async () => {
  const journal = createJournal()
  const full = setup(journal, 1)
  await full.backbone.start()
  await full.shared.revoke(ann)
  await full.shared.start()
  await until(() => isRead(full.shared))
  expect(full.shared.missing()).toEqual({ ...COMPLETE, dropped: true })
  await full.shared.revoke({ jti: 'j' })
  journal.trim(revocationsRoom, 1)
  const cut = setup(journal)
  await cut.backbone.start()
  await cut.shared.start()
  await until(() => isRead(cut.shared))
  expect(cut.shared.missing()).toEqual({ ...COMPLETE, dropped: true })
})
