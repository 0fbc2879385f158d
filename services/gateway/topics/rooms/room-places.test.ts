// How many different rooms sessions may follow: one address has a share, and each room counts for one who follows it.
import { createTestGateway } from '../../test-support.ts'

const presence = true
const keysOf = (count: number, name: string) => Array.from({ length: count }, (_, n) => `room:${name}-${n}`)

/** With places for 520 rooms, of which one guest's address may have a thirteenth, and all guests a quarter. */
async function setUp() {
  const started = createTestGateway({
    settings: { subscriptionsMax: 2_080 },
    rooms: { room: { members: 'named' } },
    policy: { tokens: [{} as any] },
  })
  await started.gateway.start()
  return {
    ...started,
    guest: (address: string) => started.connect('', '', { peer: { address, isNamed: true } }),
  }
}

const subscribe = (keys: unknown[]) => ({ type: 'subscribe', id: 1, keys })
const refused = (told: any[]) => told.filter(({ type, code }) => type === 'error' && code === 'capacity')

test('an address follows so many different rooms, others find room, and rooms of others cost it nothing', async () => {
  const { gateway, guest } = await setUp()
  const one = await guest('192.0.2.1')
  const other = await guest('192.0.2.2')
  expect(refused(await one.ask(subscribe(keysOf(100, 'one'))))).toHaveLength(60)
  expect(refused(await other.ask(subscribe(keysOf(30, 'other'))))).toEqual([])
  expect(refused(await one.ask(subscribe(keysOf(30, 'other'))))).toEqual([])
  expect(refused(await one.ask(subscribe(['room:more'])))).toMatchObject([{ subscribed: false, retryAfterMs: 5_000 }])
  await one.ask({ type: 'unsubscribe', keys: keysOf(10, 'one') })
  expect(refused(await one.ask(subscribe(['room:more'])))).toEqual([])
  await gateway.stop()
})

test('a room that its first reader has left counts for another', async () => {
  const { gateway, guest } = await setUp()
  const [one, other] = [await guest('192.0.2.1'), await guest('192.0.2.2')]
  await one.ask(subscribe(keysOf(40, 'one')))
  await other.ask(subscribe(keysOf(40, 'one')))
  await one.ask({ type: 'unsubscribe', keys: keysOf(40, 'one') })
  expect(refused(await other.ask(subscribe(keysOf(30, 'other')))).length).toBeGreaterThan(25)
  expect(refused(await one.ask(subscribe(keysOf(30, 'more'))))).toEqual([])
  await gateway.stop()
})

test('lists of members count as well: past the share the messages come, and no members', async () => {
  const { gateway, guest, pass } = await setUp()
  const one = await guest('192.0.2.1')
  const told = await one.ask(subscribe(keysOf(20, 'one').map(key => ({ key, presence }))))
  expect(told.filter(({ type }) => type === 'subscribed')).toHaveLength(20)
  const count = refused(told).length
  expect(count).toBeGreaterThan(10)
  for (const error of refused(told)) {
    expect(error).toMatchObject({ subscribed: true })
    expect(error.retryAfterMs).toBeUndefined()
  }
  expect(told.filter(({ type }) => type === 'members')).toHaveLength(20 - count)
  await one.ask({ type: 'unsubscribe', keys: keysOf(20, 'one') })
  await pass(250)
  expect(refused(await one.ask(subscribe([{ key: 'room:more', presence }])))).toEqual([])
  await gateway.stop()
})
