// Clients that do anything in any order and leave in the middle of it, while keycast.yaml changes and the journal goes away:
// nothing of them is left, and nobody is asked for them any more.
import { createMemoryRooms } from '@keycast/backbone/memory'
import type { JournalNamespace, Namespace } from '@keycast/service'
import fc from 'fast-check'
import { readRule } from './access/rule.ts'
import { authenticate, issuers, sign } from './access/test-tokens.ts'
import { authorizeKept, createPolicy, createTestGateway, noMetrics, readAs } from './test-support.ts'

const startAtMs = 1_800_000_000_000
const KEEP_MS = 5_000
const authorize = authorizeKept(KEEP_MS)
const members = 'named' as const
const own = { isPerUser: true }
/** Where a backend decides, and where it does in the other file. */
const files: [Record<string, Partial<Namespace>>, Record<string, Partial<JournalNamespace>>][] = [
  [
    { tick: {}, doc: { authorize }, own },
    { room: { members }, hall: { members, authorize } },
  ],
  [
    { tick: { authorize }, doc: {}, own },
    { room: { members, authorize }, hall: { members } },
  ],
]
const all = ['*:*']
const rule = (written: object) => readRule(written, { user: false, strict: true }).rule
const policy = { tokens: issuers, everyone: rule({ read: all, publish: all, join: all }) }
const anonymous = [rule({ read: all, publish: all, join: all }), rule({ read: ['tick:*'] })]

const KEYS_PER_SESSION = 5
/** See USER_SHARES of sessions/accounts.ts. */
const USER_SHARES = 4

const tokens = await Promise.all(
  [{ sub: 'ann' }, { sub: 'ann', claims: { scope: 'narrow' } }, { sub: 'bob' }].map(wanted =>
    sign({ ...wanted, nowMs: startAtMs, ttlSeconds: 3_000 }),
  ),
)
const keys = ['tick:1', 'doc:1', 'own:1', 'room:1', 'hall:1', 'doc:2', 'own:2', 'none:1']
const rooms = ['room:1', 'hall:1']
const verdicts = ['admitted', 'refused', 'failed'] as const

async function setUp() {
  const journal = createMemoryRooms()
  const left = new Map<string, () => unknown>()
  const test = createTestGateway({
    startAtMs,
    namespaces: files[0][0],
    rooms: files[0][1],
    journal,
    settings: { keysPerSessionMax: KEYS_PER_SESSION },
    policy: { ...policy, anonymous: anonymous[0] },
    metrics: { ...noMetrics, read: (name, _, value) => void (typeof value === 'function' && left.set(name, value)) },
  })
  // From now on they are known, and take effect at once.
  for (const token of tokens) {
    const client = await open()
    await authenticate(client, token, test.turn)
    leave(client)
  }

  async function open(number = 0) {
    return test.connect('', '', { peer: { address: `192.0.2.${number % 2}`, isNamed: true } })
  }
  return { ...test, journal, open, left }
}

type Client = Awaited<ReturnType<Awaited<ReturnType<typeof setUp>>['open']>>

const leave = ({ connection }: Client, code = 1006) => {
  if (!connection.terminated) connection.emit('close', code, Buffer.alloc(0))
}

/** What a client, or its surroundings, may do: a number says what it is done with. */
function actionsOf({ gateway, backbone, journal, open, turn, pass }: Awaited<ReturnType<typeof setUp>>) {
  const clients: Client[] = []
  const say = (message: (number: number) => object) => (client: number, number: number) =>
    clients[client % clients.length]?.send({ id: number, ...message(number) })
  const signIn = say(number => ({ type: 'auth', token: tokens[number % tokens.length] }))
  const actions: ((client: number, number: number) => unknown)[] = [
    async (_, number) => clients.push(await open(number)),
    (client, number) => clients.splice(client % 5, 1).map(each => leave(each, number % 2 === 0 ? 1006 : 1000)),
    signIn,
    say(number => ({
      type: 'subscribe',
      keys: [keys[number % 8], { key: rooms[number % 2], presence: true, last: 2 }],
    })),
    say(number => ({ type: 'subscribe', keys: [keys[number % 8], keys[(number + 3) % 8]] })),
    say(number => ({ type: 'unsubscribe', keys: [keys[number % 8]] })),
    say(number => ({ type: 'get', key: keys[number % 8] })),
    say(number => ({ type: 'history', key: rooms[number % 2] })),
    say(number => ({ type: 'publish', key: rooms[number % 2], data: number })),
    say(number => ({ type: 'join', key: rooms[number % 2], name: `N${number % 3}` })),
    say(number => ({ type: 'leave', key: rooms[number % 2] })),
    (client, number) => answer(client, number),
    (client, number) => decide(client, verdicts[number % 3]),
    turn,
    (_, number) => pass(number * 100),
    // Sessions are looked at in turns, and one may sign in before it is.
    (client, number) => {
      takeOver(number)
      if (number > 3) signIn(client, number)
    },
    (_, number) => journal.setAway(number % 4 === 0),
  ]

  function answer(which: number, number: number) {
    const asked = backbone.calls.filter(call => /^(watch|get) /.test(call))
    const key = asked[which % asked.length]?.replace(/^\w+ /, '')
    if (key === undefined) return
    if (number % 3 === 0)
      backbone.failed(key, number % 2 === 0 ? 'not_found' : 'forbidden', { retryAfterMs: undefined })
    else backbone.value(key, JSON.stringify(number))
  }

  function decide(which: number, verdict: (typeof verdicts)[number]) {
    const [question] = backbone.questions.splice(which % Math.max(1, backbone.questions.length), 1)
    question?.resolve({ verdict, ageMs: verdict === 'failed' ? undefined : 0, message: '', retryAfterMs: 500 } as any)
  }

  function takeOver(number: number) {
    const file = readAs(...files[number % 2])
    gateway.takeOver(file, createPolicy({ ...policy, anonymous: anonymous[(number >> 1) % 2] }))
  }

  return { actions, clients, takeOver }
}

test('whatever clients do, and whenever they leave, nothing of them is left', async () => {
  const step = fc.tuple(fc.nat(16), fc.nat(15), fc.nat(15))
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 40, maxLength: 120, size: 'max' }), async steps => {
      const system = await setUp()
      const { gateway, backbone, journal, turn, pass, left } = system
      const { actions, clients, takeOver } = actionsOf(system)
      for (const [action, client, number] of steps) await actions[action](client, number)

      journal.setAway(false)
      takeOver(0)
      for (const session of [...clients]) leave(session)
      await turn()
      for (let rounds = 0; rounds < 6; rounds++) {
        for (const { resolve } of backbone.questions.splice(0)) resolve({ verdict: 'admitted', ageMs: 0, message: '' })
        await pass(2 * KEEP_MS)
      }
      const held = [
        'subscriptions',
        'subscriptions_awaiting',
        'joins',
        'watched_keys',
        'watched_rooms',
        'watched_member_rooms',
      ]
      expect(held.map(name => [name, left.get(name)?.()])).toEqual(held.map(name => [name, 0]))
      expect(backbone.questions).toEqual([])

      // Nor of what its user may hold.
      for (const token of [tokens[0], tokens[2]]) {
        for (let share = 0; share < USER_SHARES; share++) {
          const client = await system.open()
          await authenticate(client, token, turn)
          const mine = Array.from({ length: KEYS_PER_SESSION }, (_, id) => `tick:${token.length}-${share}-${id}`)
          const [told] = await client.ask({ type: 'subscribe', id: 1, keys: mine })
          expect(told).toMatchObject({ type: 'subscribed', keys: { length: KEYS_PER_SESSION } })
        }
      }
      await gateway.stop()
    }),
    { numRuns: 25, endOnFailure: true },
  )
})
