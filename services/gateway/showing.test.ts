// Viewers that come with any token, backends that say anything at any time, keycast.yaml that changes, in any order: nobody
// is shown anything of a key that the model says they may not read. It allows what the documents do: an admission holds for
// `keep`, and for another while the backend says nothing; a request that was let in by then is answered a moment later.
import { ANONYMOUS_VIEWER, viewerKey } from '@keycast/backbone'
import { createMemoryRooms } from '@keycast/backbone/memory'
import { namespaceOf } from '@keycast/protocol'
import { realWorld } from '@keycast/service'
import { randomNumbers } from '../../test/support/random.js'
import { VIEWER_CLAIMS, viewerName } from './access/backend/viewer-name.ts'
import { readRule } from './access/rule.ts'
import { authenticate, issuers, sign } from './access/test-tokens.ts'
import { createPolicy, createTestGateway, readAs } from './test-support.ts'

const startAtMs = 1_800_000_000_000
const KEEP_MS = 5_000
/** The times of a fetch and of the gateway's sweep. */
const LATE_MS = 3_000

const ROOM = 'room:1'
const values = ['tick:1', 'own:1']
const keys = [...values, ROOM]
const names = keys.map(namespaceOf)

/** By namespace, the backend that decides who reads, if any does. */
type Deciding = Record<string, string>

function fileOf(deciding: Deciding): Parameters<typeof readAs> {
  const [tick, own, room] = names.map(name => {
    const backend = deciding[name]
    if (!backend) return {}
    const asking = { pattern: `${backend}/{id}`, urlFor: (id: string) => `${backend}/${id}`, origin: backend }
    return { authorize: { ...asking, method: 'HEAD' as const, keepMs: KEEP_MS, keepRefusedMs: 1_500 } }
  })
  return [{ tick, own: { isPerUser: true, ...own } }, { room: { members: 'named', ...room } }]
}

/** The namespaces that anybody may use, and everyone with a token. */
const policies = [
  { anonymous: names, everyone: names },
  { anonymous: ['tick', 'room'], everyone: ['own'] },
  { anonymous: ['own'], everyone: ['room'] },
]

function policyOf({ anonymous, everyone }: (typeof policies)[number]) {
  const rule = (granted: string[]) => {
    const patterns = granted.map(name => `${name}:*`)
    return readRule({ read: patterns, join: patterns }, { user: false, strict: true }).rule
  }
  return { tokens: issuers, anonymous: rule(anonymous), everyone: rule(everyone) }
}

const persons = [{ sub: 'ann' }, { sub: 'ann', claims: { scope: 'narrow' } }, { sub: 'bob' }].map(
  ({ sub, claims = {} }) => ({ sub, claims, name: viewerName(sub, claims, VIEWER_CLAIMS) }),
)
const viewers = [{ sub: undefined, name: ANONYMOUS_VIEWER }, ...persons]

const SHOWING = ['value', 'current', 'stale', 'message', 'members', 'presence', 'history']

/** The keys of which a message shows something. */
function shownBy({ type, key, keys: named, code }: any): string[] {
  if (type === 'subscribed') return named.filter(({ epoch }: any) => epoch !== undefined).map((each: any) => each.key)
  return SHOWING.includes(type) || code === 'not_found' ? [key] : []
}

function createSystem(random: () => number) {
  const pick = <T>(list: readonly T[]) => list[Math.floor(random() * list.length)]
  const journal = createMemoryRooms()
  let deciding: Deciding = { tick: 'http://one', own: '', room: '' }
  let policy = policies[0]
  let nowMs = 1_000_000
  const clock = { now: () => nowMs, wallNow: () => startAtMs + nowMs }
  const { gateway, backbone, connect, turn } = createTestGateway({
    namespaces: fileOf(deciding)[0],
    rooms: fileOf(deciding)[1],
    journal,
    policy: policyOf(policy),
    world: { ...realWorld, ...clock },
    settings: { requestsPerSecondMax: 1e6 },
  })

  /** What was done is numbered. All that was written by the one that was read last has been checked. */
  let act = 0
  let readAct = 0
  /** By viewer key: when the viewer was admitted last, and from which act on questions count; by question when it came. */
  const admittedAt = new Map<string, number>()
  const countsFrom = new Map<string, number>()
  const asked = new WeakMap<object, number>()
  /** By user: the `iat` from which tokens are good, and by name, those that are. */
  const goodFrom = new Map<string, number>()
  const tokens = new Map<string, string>()
  const clients: Awaited<ReturnType<typeof open>>[] = []
  type Client = (typeof clients)[number]

  /** `mayAt`: by key, the act after which the client last might read it. */
  const open = async () => ({ ...(await connect()), ...viewers[0], mayAt: new Map<string, number>() })

  function may({ connection, sub, name: viewer }: Client, key: string) {
    const name = namespaceOf(key)
    const isGranted = policy.anonymous.includes(name) || (sub !== undefined && policy.everyone.includes(name))
    const heldMs = nowMs - (admittedAt.get(viewerKey(key, viewer)) ?? Number.NEGATIVE_INFINITY)
    return connection.readyState === 1 && isGranted && (!deciding[name] || heldMs < 2 * KEEP_MS + LATE_MS)
  }

  function noteQuestions() {
    for (const question of backbone.questions) if (!asked.has(question)) asked.set(question, act)
  }

  /** Something was done. */
  function note() {
    act++
    nowMs++
    noteQuestions()
    for (const client of clients) for (const key of keys) if (may(client, key)) client.mayAt.set(key, act)
  }

  function check({ sub, name, mayAt }: Client, messages: any[]) {
    for (const message of messages) {
      const since = Math.max(readAct + 1, message.data?.act ?? 0)
      const wrong = shownBy(message).find(key => (mayAt.get(key) ?? 0) < since)
      if (wrong) throw new Error(`${sub} was shown ${wrong} by act ${act}: ${JSON.stringify(message)}`)
      if (message.type === 'value' && message.key === 'own:1') expect(message.data.of).toBe(name)
    }
  }

  async function read() {
    await turn()
    for (const client of clients) check(client, client.connection.read())
    readAct = act
  }

  /** What backends said before counts for as much as if they failed now, or for nothing. */
  function unsettle(isMeant: (sub: string | undefined, key: string) => boolean, isOver: boolean) {
    for (const { sub, name } of viewers) {
      for (const key of keys.filter(each => isMeant(sub, each))) {
        const of = viewerKey(key, name)
        const atMs = admittedAt.get(of)
        countsFrom.set(of, act + 1)
        if (isOver) admittedAt.delete(of)
        else if (atMs !== undefined) admittedAt.set(of, Math.min(atMs, nowMs - KEEP_MS))
      }
    }
  }

  /** A backend says something, of all tokens of a viewer the same. */
  async function decide() {
    await read()
    const key = pick(backbone.questions)?.key
    const verdict = pick(['admitted', 'refused', 'failed'] as const)
    for (;;) {
      const index = backbone.questions.findIndex(each => each.key === key)
      if (index === -1) return
      const [question] = backbone.questions.splice(index, 1)
      if ((asked.get(question) ?? act) >= (countsFrom.get(key) ?? 0)) {
        if (verdict === 'admitted') admittedAt.set(key, nowMs)
        if (verdict === 'refused') admittedAt.delete(key)
      }
      const said = verdict === 'failed' ? { retryAfterMs: 500 } : { ageMs: 0 }
      question.resolve({ verdict, message: '', ...said } as never)
      note()
      await read()
    }
  }

  async function signIn(client = pick(clients)) {
    const { sub, claims, name } = pick(persons.filter(each => client.sub === undefined || each.sub === client.sub))
    await read()
    // What comes before `authed` may be of before.
    note()
    const iatFrom = goodFrom.get(sub) ?? 0
    const iatMs = Math.max(clock.wallNow(), iatFrom * 1_000)
    const known = `${name} ${iatFrom} ${pick([1, 2])}`
    const token = tokens.get(known) ?? (await sign({ sub, claims, nowMs: iatMs, ttlSeconds: 9_999 }))
    tokens.set(known, token)
    const before = await authenticate(client, token, turn)
    Object.assign(client, { sub, name })
    note()
    check(client, before)
  }

  function revoke() {
    const { sub } = pick(persons)
    const before = Math.max(Math.floor(clock.wallNow() / 1_000), goodFrom.get(sub) ?? 0) + 1
    goodFrom.set(sub, before)
    gateway.revoke({ sub, before })
    unsettle(user => user === sub, true)
  }

  function takeOver(name = pick(names), backend = pick(['', 'http://one', 'http://other'])) {
    if (deciding[name] && backend && random() < 0.5) takeOver(name, '')
    const former = deciding
    deciding = { ...deciding, [name]: backend }
    if (random() < 0.3) policy = pick(policies)
    gateway.takeOver(readAs(...fileOf(deciding)), createPolicy(policyOf(policy)))
    if (deciding[name] !== former[name]) unsettle((_, key) => namespaceOf(key) === name, !former[name])
  }

  function askAgain() {
    const change = { user: pick([undefined, 'ann', 'bob']), key: pick(keys) }
    gateway.askAgain(change)
    gateway.sweep()
    unsettle((sub, key) => (change.user === undefined || sub === change.user) && key === change.key, false)
  }

  function arrive() {
    const data = { of: pick(viewers).name, act: act + 1 }
    const [text, key] = [JSON.stringify(data), pick(keys)]
    const wireKey = key === 'own:1' ? viewerKey(key, data.of) : key
    if (key === ROOM) journal.append({ room: key, messageId: undefined, from: 'x', data: Buffer.from(text) })
    else if (random() < 0.1) backbone.failed(wireKey, 'not_found')
    else backbone.value(wireKey, text, { maxAgeMs: pick([0, 2_000]) })
  }

  const say = (messageOf: () => object) => () => pick(clients).send({ id: act, ...messageOf() })
  const subscribe = say(() => ({
    type: 'subscribe',
    keys: keys.filter(() => random() < 0.7).map(key => ({ key, presence: true, last: 2 })),
  }))
  const others = [
    say(() => ({ type: 'unsubscribe', keys: [pick(keys)] })),
    say(() => ({ type: 'history', key: ROOM, limit: 3 })),
    say(() => ({ type: pick(['join', 'leave']), key: ROOM, name: `N${act}` })),
    signIn,
    revoke,
    askAgain,
    () => pick(clients).connection.terminate(),
  ]
  const get = say(() => ({ type: 'get', key: pick(values) }))
  const often = [subscribe, get, decide, decide, arrive, arrive, () => takeOver()]

  async function step() {
    clients.splice(0, 4, ...clients.filter(({ connection }) => connection.readyState === 1))
    while (clients.length < 4) {
      const client = await open()
      clients.push(client)
      if (random() < 0.7) await signIn(client)
    }
    noteQuestions()
    const passed = random() < 0.1 ? pick([100, 1_000, 3_000, 6_000]) : 0
    nowMs += passed
    if (passed > 0) gateway.sweep()
    else await pick(random() < 0.25 ? others : often)()
    note()
    if (random() < 0.5) await read()
  }

  return { gateway, step }
}

test.each(Array.from({ length: 30 }, (_, seed) => seed))('in any order, seed %i', async seed => {
  const { gateway, step } = createSystem(randomNumbers(seed))
  await gateway.start()
  for (let steps = 0; steps < 250; steps++) await step()
  await gateway.stop()
})
