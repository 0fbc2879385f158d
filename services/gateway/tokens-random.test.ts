// Two nodes with their workers, two gateways and a backend in one process, whose users have values of their own and rights that
// the backend decides on. Their tokens change, are renewed with other claims, expire and are revoked, while processes die and
// stand still and networks part: nobody is shown what is another's, or of claims that the session has no more, nor an older
// value after a newer one; the backend is asked with no token that has expired or was revoked; in the end all have the latest.
import { namespaceOf } from '@keycast/protocol'
import { furtherSeeds, timeoutMs } from '../../test/support/random-faults.ts'
import { issuers, sign } from './access/test-tokens.ts'
import { createBackend, troubles } from './backend.fixture.ts'
import { backboneOf, between, type Cluster, cut, killNode, mend, startNode } from './cluster.fixture.ts'
import { createRun, type Process, STARTS_AT } from './kernel.fixture.ts'
import { createTestGateway, FakeConnection, readAs } from './test-support.ts'

const NODES = ['n1', 'n2']
const KEYS = ['own:0', 'own:1', 'auth:0', 'auth:1', 'both:0', 'both:1']
const KEEP_MS = 3_000
const TIMEOUT_MS = 1_000
const FAULTS_MS = 40_000
const SETTLED_MS = 70_000
/** What is under way when a token ends. */
const LATE_MS = 100

interface Token {
  text: string
  of: string
  sub: string
  jti: string
  expiresAt: number
  /** At all gateways. */
  revokedAt: number
}

function fileOf(): any {
  const at = (name: string) => ({ urlFor: (id: string) => `http://backend/${name}/${id}`, origin: 'http://backend' })
  const times = (ms: number) => ({
    refreshMs: ms,
    refresh: ms,
    maxAgeMs: 500,
    timeoutMs: TIMEOUT_MS,
    timeout: TIMEOUT_MS,
  })
  const authorize = (name: string) => ({
    pattern: `http://questions/${name}/{id}`,
    urlFor: (id: string) => `http://questions/${name}/${id}`,
    origin: 'http://questions',
    method: 'HEAD',
    keepMs: KEEP_MS,
    keepRefusedMs: 1_000,
  })
  return {
    own: { ...at('own'), ...times(600), isPerUser: true },
    auth: { ...at('auth'), ...times(500), authorize: authorize('auth') },
    both: { ...at('both'), ...times(700), isPerUser: true, authorize: authorize('both') },
  }
}

const isOwn = (key: string) => namespaceOf(key) !== 'auth'

interface Gateway {
  name: string
  process: Process
  gateway: any
}

interface Viewer {
  name: string
  sub: string
  gateway: Gateway
  connection: FakeConnection | undefined
  token: Token | undefined
  /** Sent, and not answered yet. */
  sent: Token[]
  shown: Map<string, number>
  problems: Map<string, string>
  subscribed: Set<string>
  isOver: boolean
}

function createSystem(seed: number) {
  const { random, below, pick, kernel, later, amiss, wrong } = createRun(seed)
  const tokens = new Map<string, Token>()
  const barred = new Map<string, number>()
  const backend = createBackend({
    kernel,
    random,
    userOf: authorization => tokens.get(String(authorization))?.of,
    mayRead: (key, user) => !barred.has(`${key} ${user}`),
    hasIds: false,
    streamed: [],
    isOwn,
  })
  const { truthOf } = backend
  const stalls = pick([
    { share: 0, msMax: 0 },
    { share: 1e-5, msMax: 500 },
  ])
  let stalledUntil = 0
  const cluster: Cluster = {
    kernel,
    random,
    channels: new Map(),
    nodes: new Map(),
    onAsked(asked) {
      const { authorization } = asked.headers
      const token = tokens.get(String(authorization))
      const nowMs = kernel.now()
      const isLate = nowMs < stalledUntil + 100 || stalls.share > 0
      if (authorization && !token) wrong(`the backend is asked with ${authorization}`)
      if (token && !isLate && STARTS_AT + nowMs > token.expiresAt + LATE_MS)
        wrong(`the backend is asked for ${asked.url} with ${token.jti}, expired at ${token.expiresAt - STARTS_AT}`)
      if (token && nowMs > token.revokedAt + revokedLateMs)
        wrong(`the backend is asked for ${asked.url} with ${token.jti}, revoked at ${token.revokedAt}`)
      backend.onAsked(asked)
    },
    openStream: backend.openStream,
    file: () => readAs(fileOf()),
  }
  /** A node that hears nothing of a gateway goes on for so long with what it was told. */
  const revokedLateMs = 25_000
  const settings = { workers: 1 + below(2), inFlightMax: pick([2, 8]) }
  const gateways: Gateway[] = []
  const viewers: Viewer[] = []
  let serial = 0

  async function newToken(sub: string): Promise<Token> {
    const scope = pick(['a', 'b'])
    const ttlSeconds = pick([5, 12, 30, 600])
    const jti = `${sub}-${scope}-${++serial}`
    const nowMs = STARTS_AT + kernel.now()
    const text = await sign({ sub, nowMs, ttlSeconds, jti, claims: { scope } })
    const expiresAt = (Math.floor(nowMs / 1_000) + ttlSeconds) * 1_000
    const token = { text, of: `${sub} ${scope}`, sub, jti, expiresAt, revokedAt: Number.POSITIVE_INFINITY }
    tokens.set(`Bearer ${text}`, token)
    return token
  }

  /** From now on the gateway knows it, and takes it at once. */
  const learn = ({ gateway }: Gateway, { text }: Token) =>
    gateway.streams.admission.admit({
      headers: { authorization: `Bearer ${text}` },
      socket: { remoteAddress: '127.0.0.1' },
    })

  async function startGateway(name: string) {
    const process = kernel.create(name)
    process.stalls = stalls
    const { world } = process
    let gateway: any
    await kernel.within(process, () => {
      gateway = createTestGateway({
        world,
        namespaces: fileOf(),
        policy: { tokens: issuers },
        settings: { requestsPerSecondMax: 1e6, sessionsPerUserMax: 1e6 } as any,
        createBackbone: backboneOf(cluster, name, process, found => found(NODES)),
      }).gateway
      void gateway.start()
    })
    gateways.splice(gateways.findIndex(each => each.name === name) >>> 0, 1)
    gateways.push({ name, process, gateway })
    for (const token of tokens.values())
      if (token.revokedAt < Number.POSITIVE_INFINITY) gateway.revoke({ jti: token.jti })
  }

  async function say({ gateway: { process }, connection }: Viewer, message: object) {
    if (!connection || !process.isAlive || connection.readyState !== 1) return
    await kernel.within(process, () => void connection.emit('message', Buffer.from(JSON.stringify(message)), false))
  }

  async function come(viewer: Viewer) {
    viewer.gateway = pick(gateways)
    const token = random() < 0.15 ? undefined : await newToken(viewer.sub)
    const { gateway, process } = viewer.gateway
    const arrival = token ? await learn(viewer.gateway, token) : { peer: { address: '127.0.0.1', isNamed: false } }
    if ('reason' in arrival) return void wrong(`${viewer.name} is refused: ${JSON.stringify(arrival)}`)
    const connection = new FakeConnection()
    Object.assign(viewer, { connection, token, sent: [], isOver: false })
    for (const each of [viewer.shown, viewer.problems, viewer.subscribed]) each.clear()
    await kernel.within(process, () => gateway.open(connection.asTransport, arrival))
    await subscribe(viewer, KEYS)
  }

  async function leave(viewer: Viewer) {
    const { connection, gateway } = viewer
    read(viewer)
    viewer.connection = undefined
    if (!connection || !gateway.process.isAlive) return
    await kernel.within(gateway.process, () => void connection.emit('close', 1006, Buffer.alloc(0)))
  }

  async function renew(viewer: Viewer) {
    if (!viewer.connection) return
    const token = await newToken(viewer.sub)
    await learn(viewer.gateway, token)
    viewer.sent.push(token)
    await say(viewer, { type: 'auth', id: token.jti, token: token.text })
  }

  async function subscribe(viewer: Viewer, some: string[]) {
    for (const key of some) viewer.subscribed.add(key)
    await say(viewer, { type: 'subscribe', id: 's', keys: some })
  }

  async function revoke(viewer: Viewer) {
    const { token } = viewer
    if (!token) return
    read(viewer)
    for (const { process, gateway } of gateways)
      await kernel.within(process, () => void gateway.revoke({ jti: token.jti }))
    token.revokedAt = kernel.now()
    for (const each of viewers) {
      if (each.token !== token || !each.connection) continue
      read(each)
      // It may have another one by now, of which it was not told yet.
      const isOther = each.token !== token || each.sent.length > 0
      if (!isOther && !each.connection.closed && each.gateway.process.isAlive)
        wrong(`${each.name} is not closed, and revoked`)
      each.isOver = each.connection.closed !== undefined
    }
  }

  function read(viewer: Viewer) {
    const { connection } = viewer
    if (!connection) return
    connection.emit('pong')
    for (const frame of connection.read()) if (typeof frame === 'object') hear(viewer, frame)
  }

  function hear(viewer: Viewer, frame: any) {
    const { type, id, key, code } = frame
    const { name, shown, problems, subscribed } = viewer
    if (viewer.isOver) return wrong(`${name} is sent ${JSON.stringify(frame).slice(0, 200)} after it was revoked`)
    if (type === 'authed') {
      const before = viewer.token?.of
      while (viewer.sent.length > 0 && viewer.sent[0].jti !== id) viewer.sent.shift()
      viewer.token = viewer.sent.shift()
      if (before === viewer.token?.of) return
      for (const each of KEYS) if (isOwn(each)) shown.delete(each)
      return
    }
    if (key === undefined) return
    if (type === 'value') return hearValue(viewer, frame)
    if (typeof id === 'number') return
    if (type === 'current') return void problems.delete(key)
    if (code === 'not_found' || code === 'forbidden') shown.delete(key)
    if (frame.subscribed === false) subscribed.delete(key)
    problems.set(key, code)
  }

  function hearValue(viewer: Viewer, { key, data, id }: any) {
    const { name, token, shown, problems } = viewer
    if (isOwn(key) && data.user !== String(token?.of))
      wrong(`${name} is shown ${key} of ${data.user}, and is ${token?.of}`)
    const barredAt = barred.get(`${key} ${token?.of}`) ?? Number.POSITIVE_INFINITY
    if (namespaceOf(key) !== 'own' && kernel.now() > barredAt + 2 * KEEP_MS + 3_000)
      wrong(`${name} may not read ${key}`)
    const before = shown.get(key) ?? 0
    if (data.revision < before) wrong(`${name} ${key}: ${data.revision} after ${before}`)
    if (id !== undefined) return
    shown.set(key, data.revision)
    problems.delete(key)
  }

  async function pass(ms: number, stepMs = 20) {
    for (const endsAt = kernel.now() + ms; kernel.now() < endsAt; ) {
      await kernel.passUntil(Math.min(endsAt, kernel.now() + stepMs))
      for (const viewer of viewers) read(viewer)
    }
  }

  const changeAll = () => {
    const ofs = ['ann a', 'ann b', 'bob a', 'bob b', undefined]
    for (const key of KEYS) for (const of of isOwn(key) ? ofs : [undefined]) backend.change(key, of, true)
  }

  const node = () => cluster.nodes.get(pick(NODES))
  const stall = (process: Process | undefined) => {
    const ms = pick([100, 700, 2_000])
    stalledUntil = Math.max(stalledUntil, kernel.now() + ms)
    process?.stall(ms)
  }
  const faults: (() => unknown)[] = [
    () => {
      const killed = node()
      if (!killed) return
      killNode(cluster, killed)
      later(pick([200, 1_500, 6_000]), () => void startNode(cluster, killed.name, settings))
    },
    () => stall(node()?.process),
    () => stall(pick(gateways).process),
    () => pick([...(node()?.workers.processes ?? [])])?.kill(),
    () => {
      const names = between(pick(gateways).name, pick(NODES))
      cut(cluster, names, pick(['hold', 'drop']))
      later(pick([200, 1_500, 5_000]), () => mend(cluster, names))
    },
    () => {
      const trouble = { of: pick(['all', 'questions', 'own', 'both', 'auth']), how: pick(troubles) }
      if (trouble.how === '403') trouble.of = pick(['own', 'both'])
      backend.state.trouble = trouble
      later(pick([300, 2_000]), () => {
        backend.state.trouble = undefined
      })
    },
    async () => {
      const { name, process } = pick(gateways)
      process.end()
      for (const viewer of viewers) if (viewer.gateway.name === name) viewer.connection = undefined
      await startGateway(name)
    },
  ]
  let gets = 0
  const acts: ((viewer: Viewer) => unknown)[] = [
    renew,
    renew,
    renew,
    revoke,
    leave,
    viewer => say(viewer, { type: 'get', id: ++gets, key: pick(KEYS) }),
    viewer => say(viewer, { type: 'get', id: ++gets, key: pick(KEYS) }),
    viewer => subscribe(viewer, [pick(KEYS)]),
    async viewer => {
      const key = pick(KEYS)
      await say(viewer, { type: 'unsubscribe', id: 'u', keys: [key] })
      await kernel.passUntil(kernel.now() + 1)
      read(viewer)
      viewer.subscribed.delete(key)
      viewer.shown.delete(key)
    },
    () => {
      const of = `${pick(['auth:0', 'auth:1', 'both:0'])} ${pick(['ann a', 'ann b', 'bob a', undefined])}`
      if (!barred.delete(of)) barred.set(of, kernel.now())
    },
    () => {
      const { process, gateway } = pick(gateways)
      kernel.schedule(process, kernel.now(), () => {
        gateway.backbone.refresh([pick(KEYS)], { deadlineMs: 5_000 }).catch(() => {})
      })
    },
  ]

  return {
    amiss,
    backend,
    cluster,
    viewers,
    truthOf,
    pass,
    changeAll,
    leave,

    async start() {
      for (const name of NODES) await startNode(cluster, name, settings)
      for (const name of ['g1', 'g2']) await startGateway(name)
      for (const [index, sub] of ['ann', 'ann', 'bob', 'ann'].entries()) {
        const viewer: Viewer = {
          name: `v${index} (${sub})`,
          sub,
          gateway: gateways[0],
          connection: undefined,
          token: undefined,
          sent: [],
          shown: new Map(),
          problems: new Map(),
          subscribed: new Set(),
          isOver: false,
        }
        viewers.push(viewer)
        await come(viewer)
      }
    },

    async suffer(ms: number) {
      for (const endsAt = kernel.now() + ms; kernel.now() < endsAt && amiss.length === 0; ) {
        for (const key of KEYS)
          if (random() < 0.2)
            backend.change(key, isOwn(key) ? pick(['ann a', 'ann b', 'bob a', undefined]) : undefined, true)
        if (below(6) === 0) await pick(faults)()
        if (below(2) === 0) await pick(acts)(pick(viewers))
        for (const viewer of viewers) {
          if (viewer.connection?.closed) await leave(viewer)
          if (!viewer.connection) await come(viewer)
        }
        await pass(pick([3, 30, 100, 400]))
      }
    },

    /** From now on all is well, and all have tokens that last. */
    async calmDown() {
      backend.state.trouble = undefined
      stalls.share = 0
      barred.clear()
      mend(cluster, cluster.channels.keys())
      await pass(SETTLED_MS, 50)
      for (const viewer of viewers) {
        await leave(viewer)
        do {
          await come(viewer)
        } while (
          (viewer.token?.expiresAt ?? 0) < STARTS_AT + kernel.now() + 100_000 &&
          (await leave(viewer)) === undefined
        )
      }
      await pass(8_000, 50)
    },
  }
}

test.each([1])('users whose tokens change, with seed %i', live)

test(
  'users whose tokens change, for as long as is asked',
  async () => {
    for (const seed of furtherSeeds()) await live(seed)
  },
  timeoutMs,
)

async function live(seed: number) {
  const { start, suffer, calmDown, pass, changeAll, leave, truthOf, amiss, backend, cluster, viewers } =
    createSystem(seed)
  await start()
  await suffer(FAULTS_MS)
  expect([seed, ...amiss, ...backend.amiss]).toEqual([seed])
  await calmDown()
  changeAll()
  await pass(4_000, 50)
  for (const { name, token, shown, problems, subscribed } of viewers) {
    expect([name, [...problems], subscribed.size]).toEqual([name, [], KEYS.length])
    for (const key of KEYS)
      expect([name, key, shown.get(key)]).toEqual([
        name,
        key,
        truthOf(key, isOwn(key) ? token?.of : undefined).revision,
      ])
  }
  for (const viewer of viewers) await leave(viewer)
  await pass(SETTLED_MS, 500)
  const left = [...cluster.nodes.values()].flatMap(({ primary }) => [...primary.interest.links()])
  expect(left).toEqual([])
  expect([seed, ...amiss, ...backend.amiss]).toEqual([seed])
}
