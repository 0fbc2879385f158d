import type { Problem } from '@keycast/protocol'
import { createRights } from '../access/rights.ts'
import { readRule } from '../access/rule.ts'
import { authorizeKept, createNamespaces, createTestGateway } from '../test-support.ts'
import type { Holder } from './gate.ts'
import { createTestGate } from './test-gate.ts'

const rightsTo = (read: string[], user = false) => {
  const rule = (written: unknown) => readRule(written, { user: false, strict: true }).rule
  const rights = createRights({ anonymous: rule({ read }), everyone: rule({}) })
  return user ? rights.of('ann') : rights.anonymous
}

const all = rightsTo(['*:**'])

const setup = () => {
  const counts = { accessRefused: { unauthenticated: 0, forbidden: 0 } }
  const gate = createTestGate({
    namespaces: createNamespaces({ tick: {}, file: { ids: { min: 1, max: 3 } } }).all,
    counts,
  })
  return { ...gate, counts }
}

test('a key that breaks the grammar, or whose namespace does not exist, may not be asked for', () => {
  const { check, operator } = setup()
  const doors: ((key: string) => unknown)[] = [key => operator('value', key), key => check(all, 'get', key)]
  for (const ask of doors) {
    expect(ask('tick:1')).toBeUndefined()
    expect(ask('no key')).toMatchObject({ code: 'bad_key', message: expect.stringContaining('namespace:id') })
    expect(ask('no:key')).toEqual({
      code: 'unknown_namespace',
      message: 'no namespace "no" here: ask the operator which exist',
    })
  }
})

test('an id has no more segments than its namespace allows: what lies below a key is another path of the backend', () => {
  const { check } = setup()
  expect(check(all, 'get', 'tick:42/private')).toMatchObject({ code: 'bad_key' })
  expect(check(all, 'get', 'file:a/b/c')).toBeUndefined()
  expect(check(all, 'get', 'file:a/b/c/d')).toMatchObject({ code: 'bad_key' })
})

test('keys of a namespace with parameters take a query, others and those of rooms do not', () => {
  const query = { names: ['status'], headers: {} }
  const { takesQuery } = createTestGate({
    namespaces: createNamespaces({ tasks: { query }, tick: {} }, { room: {} }).all,
  })
  expect(['tasks:7', 'tick:1', 'room:1', 'none:1'].map(takesQuery)).toEqual([true, false, false, false])
})

test('rights are asked before namespaces: a forbidden key answers alike whether it exists or not', () => {
  const { check, counts } = setup()
  const keys = ['tick:absent', 'tick:other', 'no:namespace', 'tick:too/deep']
  const [first, ...others] = keys.map(key => check(rightsTo(['tick:1']), 'get', key))
  expect(first).toMatchObject({ code: 'unauthenticated', message: 'this needs a token, or there is no such key' })
  for (const other of others) expect(other).toEqual(first)
  for (const key of keys) expect(check(rightsTo(['tick:1'], true), 'get', key)).toMatchObject({ code: 'forbidden' })
  expect(counts.accessRefused).toEqual({ unauthenticated: 4, forbidden: 4 })
})

test('the operator is bound by no rights', () => {
  expect(setup().operator('value', 'tick:1')).toBeUndefined()
})

test('a key that no door checked is never asked for', () => {
  const { gateway, backbone } = createTestGateway()
  for (const key of ['no key', 'no:key', 'tick:../x']) {
    expect(() => gateway.singleFlight.want(key)).toThrow('nobody checked')
  }
  expect(backbone.calls).toEqual([])
})

const authorize = authorizeKept(1_000)

/** A gate of rooms and values whose backend decides about `doc:*` and `asked:*`. */
const deciding = ({
  quota,
  registered = [],
}: {
  quota?: Parameters<typeof createTestGate>[0]['quota']
  registered?: string[]
} = {}) => {
  const verdict: { is: 'waits' | Problem } = { is: 'waits' }
  const questions: ((problem?: Problem) => void)[] = []
  const namespaces = createNamespaces(
    { doc: { authorize }, own: { isPerUser: true }, tick: {} },
    { room: { members: 'named' }, asked: { members: 'named', authorize }, news: { publish: 'server' } },
  )
  const gate = createTestGate({
    namespaces: namespaces.all,
    decisions: {
      ask: () => new Promise(resolve => questions.push(resolve)),
      register({ viewer }, key) {
        registered.push(`${viewer?.name} ${key}`)
        return verdict.is
      },
      unregister: ({ viewer }, key) => void registered.splice(registered.indexOf(`${viewer?.name} ${key}`), 1),
    },
    quota,
  })
  const everything = { read: ['*:**'], publish: ['*:**'], join: ['*:**'] }
  const rule = (written: unknown) => readRule(written, { user: false, strict: true }).rule
  const { anonymous: rights } = createRights({ anonymous: rule(everything), everyone: rule({}) })
  const asker = { rights, viewer: { name: 'ann' } as any, account: undefined, payer: undefined }
  return { gate, namespaces, questions, asker, verdict }
}

/** The same, with a holder that notes what it is told. */
const holding = () => {
  const taken: string[] = []
  const told: unknown[] = []
  const registered: string[] = []
  const held = new Map<string, 'waits' | 'stands'>()
  const { gate, asker, verdict, namespaces } = deciding({
    quota: {
      take(_, act) {
        if (taken.length === 2) return { code: 'too_many_keys' }
        taken.push(act)
        return undefined
      },
      giveBack: (_, act) => void taken.splice(taken.indexOf(act), 1),
    },
    registered,
  })
  const holder: Holder = {
    keysOf: () => [...held.keys()],
    stateOf: (_, key) => held.get(key),
    pause: (_, key) => void told.push(`pause ${key}`),
    decided: (_, key, outcome) => void told.push([key, outcome]),
  }
  const none = { ...holder, keysOf: () => [] }
  gate.start({ subscribe: holder, join: none, members: none })
  return { gate, session: asker as any, taken, told, registered, held, verdict, namespaces }
}

test('an admitted key comes with all that was looked up for it', () => {
  const { gate, namespaces, asker } = deciding()
  expect(gate.enter(asker, 'get', 'own:1')).toEqual({
    asker,
    act: 'get',
    key: 'own:1',
    wireKey: 'own:1|ann',
    rights: asker.rights,
    grants: asker.rights.grants,
    viewer: asker.viewer,
    namespace: namespaces.fetched.get('own'),
  })
})

test.each([
  ['publish', 'news:1', 'only the server publishes here'],
  ['join', 'news:1', 'nobody joins this room'],
] as const)('to %s where the namespace lets no client do that is forbidden', (act, key, message) => {
  const { gate, asker } = deciding()
  expect(gate.enter(asker, act, key)).toMatchObject({ code: 'forbidden', message })
})

test.each([
  ['get', 'room:1'],
  ['history', 'own:1'],
  ['publish', 'own:1'],
  ['join', 'own:1'],
] as const)('to %s %s is told that the namespace is of the other kind', (act, key) => {
  const { gate, asker } = deciding()
  expect(gate.enter(asker, act, key)).toMatchObject({ code: 'unknown_namespace' })
})

test.each(['subscribe', 'history', 'publish', 'join'] as const)(
  'to %s a room with a space is refused: its members are named so',
  act => {
    const { gate, asker } = deciding()
    expect(gate.enter(asker, act, 'room:1')).not.toHaveProperty('code')
    expect(gate.enter(asker, act, 'room:1 members')).toMatchObject({ code: 'bad_key' })
  },
)

test('a backend that decides is waited for, and its refusal is the answer', async () => {
  const { gate, asker, questions } = deciding()
  const entered = gate.enter(asker, 'get', 'doc:1')
  questions[0]({ code: 'forbidden' })
  expect(await entered).toEqual({ code: 'forbidden' })
})

test('an asker that is another viewer when the decision comes is asked about anew', async () => {
  const { gate, asker, questions } = deciding()
  const entered = gate.enter(asker, 'get', 'doc:1')
  asker.viewer = { name: 'bob' }
  questions[0]({ code: 'forbidden' })
  await new Promise(resolve => setImmediate(resolve))
  expect(questions).toHaveLength(2)
  questions[1]({ code: 'backend_error' })
  expect(await entered).toEqual({ code: 'backend_error' })
})

test('what one user publishes is not published in the name of another', async () => {
  const { gate, asker, questions } = deciding()
  const entered = gate.enter(asker, 'publish', 'asked:1')
  asker.viewer = { name: 'bob' }
  questions[0]()
  expect(await entered).toMatchObject({ code: 'too_many_waiting', retryAfterMs: 100 })
  expect(questions).toHaveLength(1)
})

test('after a wait an asker that is another viewer enters anew, where it matters who asks', () => {
  const { gate, asker } = deciding()
  const own = gate.enter(asker, 'get', 'own:1') as any
  const room = gate.enter(asker, 'history', 'room:1') as any
  asker.viewer = { name: 'bob' }
  expect(gate.recheck(own)).toBe('again')
  expect(gate.recheck(room)).toBeUndefined()
})

test('after a wait rights that were lost, or a token that was revoked, refuse the key', () => {
  const { gate, asker } = deciding()
  const admitted = gate.enter(asker, 'get', 'own:1') as any
  expect(gate.recheck(admitted)).toBeUndefined()
  asker.rights = rightsTo([])
  expect(gate.recheck(admitted)).toMatchObject({ code: 'unauthenticated' })
  const revoked = { ...asker, revoked: () => ({ code: 'token_refused' as const }) }
  expect(gate.recheck({ ...admitted, asker: revoked })).toEqual({ code: 'token_refused' })
})

test('a key that is held takes a place until it is released, also while its backend has not decided', () => {
  const { gate, session, taken, registered } = holding()
  expect(gate.hold(session, 'subscribe', 'own:1')).toMatchObject({ wireKey: 'own:1|ann' })
  expect(gate.hold(session, 'join', 'asked:1')).toBe('waits')
  expect(gate.hold(session, 'subscribe', 'doc:1')).toEqual({ code: 'too_many_keys' })
  expect(taken).toEqual(['subscribe', 'join'])
  expect(registered).toEqual(['ann asked:1'])
  gate.release(session, 'subscribe', 'own:1')
  gate.release(session, 'join', 'asked:1')
  expect([taken, registered]).toEqual([[], []])
})

test('one that is refused takes no place', () => {
  const { gate, session, taken, verdict } = holding()
  verdict.is = { code: 'forbidden' }
  expect(gate.hold(session, 'subscribe', 'doc:1')).toEqual({ code: 'forbidden' })
  expect(gate.hold(session, 'subscribe', 'no key')).toMatchObject({ code: 'bad_key' })
  expect(taken).toEqual([])
})

test('a subscription that stands goes on while its backend is asked again; to join again is decided anew', () => {
  const { gate, session, taken, held } = holding()
  held.set('doc:1', 'stands').set('asked:1', 'stands').set('doc:2', 'waits')
  expect(gate.hold(session, 'subscribe', 'doc:1')).toMatchObject({ key: 'doc:1' })
  expect(gate.hold(session, 'subscribe', 'doc:2')).toBe('waits')
  expect(gate.hold(session, 'join', 'asked:1')).toBe('waits')
  expect(taken).toEqual([])
})

test('the holder is told what was decided, in each of its roles', () => {
  const { gate, session, told } = holding()
  gate.decided(session, 'doc:1', 1, undefined)
  gate.decided(session, 'doc:1', 1, { code: 'forbidden' })
  expect(told).toEqual([
    ['doc:1', expect.objectContaining({ act: 'subscribe', key: 'doc:1' })],
    ['doc:1', { code: 'forbidden' }],
  ])
  gate.decided(session, 'asked:1', 3, { code: 'backend_error' })
  expect(told).toHaveLength(4)
})

test('rights that a session has no more end what they covered, and nothing else', () => {
  const { gate, session, told, held } = holding()
  held.set('tick:1', 'stands').set('doc:1', 'waits')
  session.rights = rightsTo(['tick:*'])
  gate.reconsider(session)
  expect(told).toEqual([['doc:1', expect.objectContaining({ code: 'unauthenticated' })]])
})

test('another viewer is asked about anew, and until then told nothing of what depends on it', () => {
  const { gate, session, told, held, registered } = holding()
  gate.hold(session, 'subscribe', 'doc:1')
  held.set('doc:1', 'stands').set('own:1', 'stands').set('tick:1', 'stands')
  gate.changeViewer(session, () => {
    expect(registered).toEqual([])
    session.viewer = { name: 'bob' }
  })
  expect(told).toEqual(['pause doc:1', 'pause own:1', ['own:1', expect.objectContaining({ wireKey: 'own:1|bob' })]])
  expect(registered).toEqual(['bob doc:1'])
})

test('another viewer leaves nothing behind in a namespace about which no backend decides any more', () => {
  const { gate, session, held, registered, namespaces } = holding()
  gate.hold(session, 'subscribe', 'doc:1')
  held.set('doc:1', 'stands')
  delete namespaces.fetched.get('doc')?.authorize
  gate.changeViewer(session, () => {
    session.viewer = { name: 'bob' }
  })
  expect(registered).toEqual([])
})

test("a user's own value has a key of its own, which nobody reaches without saying for whom", () => {
  const { gate, asker } = deciding()
  expect(() => gate.enter({ ...asker, viewer: undefined }, 'get', 'own:1')).toThrow('no viewer')
})
