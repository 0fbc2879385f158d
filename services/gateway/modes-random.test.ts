// Two nodes with their workers, two gateways and a backend in one process, with namespaces in all modes, while processes die
// and stand still, networks part, backends fail and keycast.yaml changes. By the backend's own truth no viewer is shown an
// older value after a newer one, one that is another user's, or an old one as live; a get is given none older than maxAge.
// Once all is well everybody is shown each change in time, each key is asked for once, and nothing is left of who has gone.
import { namespaceOf } from '@keycast/protocol'
import { applyDelta } from 'fossil-delta'
import { issuers, sign } from './access/test-tokens.ts'
import { createBackend, troubles } from './backend.fixture.ts'
import { backboneOf, between, type Cluster, cut, killNode, mend, type Node, startNode } from './cluster.fixture.ts'
import { createRun, type Process, STARTS_AT } from './kernel.fixture.ts'
import { createPolicy, createTestGateway, FakeConnection, readAs } from './test-support.ts'

const NODES = ['n1', 'n2']
const IDS = ['0', '1']
const policy = { tokens: issuers }
const KEEP_MS = 3_000
const TIMEOUT_MS = 1_000
const FAULTS_MS = 30_000
/** A node that was lost is held down for a minute at most. */
const SETTLED_MS = 70_000
const CALM_MS = 20_000

const users = [undefined, 'ann', 'bob']
const tokens = new Map<string, string>()
for (const sub of ['ann', 'bob']) tokens.set(sub, await sign({ sub, nowMs: STARTS_AT, ttlSeconds: 3_500 }))
const userOf = (authorization: string | undefined) =>
  [...tokens].find(([, token]) => `Bearer ${token}` === authorization)?.[0]

/** @param longer by which each `refresh` is longer */
function fileOf(longer = 1): any {
  const at = (name: string) => ({ urlFor: (id: string) => `http://backend/${name}/${id}`, origin: 'http://backend' })
  // `refresh` and `timeout` as they are written: what changed is found by them.
  const times = (refresh: number, maxAgeMs = 500) => ({
    refreshMs: refresh,
    refresh,
    maxAgeMs,
    timeoutMs: TIMEOUT_MS,
    timeout: TIMEOUT_MS,
  })
  const changes = { url: 'http://events/changes', origin: 'http://events', pollMs: 2_000 }
  const batch = {
    urlFor: (ids: string[]) => `http://backend/batch?ids=${ids}`,
    max: 4,
    items: '/items',
    id: '/id',
    idsBytesMax: 1_000,
    bytesOf: (id: string) => id.length + 1,
  }
  const authorize = {
    pattern: 'http://questions/{id}',
    urlFor: (id: string) => `http://questions/auth/${id}`,
    origin: 'http://questions',
    method: 'HEAD',
    keepMs: KEEP_MS,
    keepRefusedMs: 1_000,
  }
  return {
    poll: { ...at('poll'), ...times(300 * longer) },
    slow: { ...at('slow'), ...times(5_000 * longer, 0) },
    batch: { ...at('batch'), ...times(400 * longer), batch },
    told: { ...at('told'), ...times(0, 0) },
    far: { ...at('far'), ...times(60_000) },
    named: { ...at('named'), ...times(0), changes },
    carried: { ...at('carried'), ...times(0), changes },
    wait: { ...at('wait'), ...times(1_000), waitMs: 20_000 },
    own: { ...at('own'), ...times(600 * longer), isPerUser: true },
    auth: { ...at('auth'), ...times(500 * longer), authorize },
    ranked: { ...at('ranked'), ...times(0) },
    put: { ...at('put'), ...times(1_000 * longer) },
  }
}
const keys = Object.keys(fileOf()).flatMap(name => IDS.map(id => `${name}:${id}`))
const refreshed = ['told', 'far']
const handedOver = ['ranked', 'put']
/** Of a value that is handed over and comes late, an older one may be shown until the newer one comes. */
const mayBeLate = [...handedOver, 'carried']

interface Gateway {
  name: string
  process: Process
  gateway: any
  list: (names: string[]) => void
}

interface Shown {
  version: string
  order: number | undefined
  revision: number
  by: string
  bytes: Buffer
  atMs: number
}

interface Viewer {
  name: string
  user: string | undefined
  isBytes: boolean
  gateway: Gateway
  connection: FakeConnection | undefined
  shown: Map<string, Shown>
  problems: Map<string, string>
  /** Since when. */
  subscribed: Map<string, number>
  gets: Map<number, number>
  /** It does not read before. */
  readsFromMs: number
}

function createSystem(seed: number) {
  const { random, below, pick, kernel, later, amiss, wrong } = createRun(seed)
  const pause = (ms: number) => new Promise<void>(resolve => later(ms, resolve))
  /** Who may not read what, and since when. */
  const barred = new Map<string, number>()
  const backend = createBackend({
    kernel,
    random,
    userOf,
    mayRead: (key, user) => !barred.has(`${key} ${user}`),
    hasIds: seed % 3 !== 0,
    streamed: ['named', 'carried'],
  })
  const { truthOf } = backend
  let file = fileOf()
  let changedFileAt = Number.NEGATIVE_INFINITY
  const cluster: Cluster = {
    kernel,
    random,
    channels: new Map(),
    nodes: new Map(),
    onAsked: backend.onAsked,
    openStream: backend.openStream,
    file: () => readAs(file),
  }
  const settings = { workers: 1 + below(2), inFlightMax: pick([1, 2, 8]), deltaBytesMax: pick([0, 2 ** 20]) }
  const gateways: Gateway[] = []
  const viewers: Viewer[] = []
  const stalls = pick([
    { share: 0, msMax: 0 },
    { share: 1e-5, msMax: 500 },
    { share: 1e-4, msMax: 30 },
  ])

  async function startGateway(name: string) {
    const process = kernel.create(name)
    process.stalls = stalls
    let found: (names: string[]) => void = () => {}
    const createBackbone = backboneOf(cluster, name, process, each => {
      found = each
      each(NODES)
    })
    const { world } = process
    let gateway: any
    await kernel.within(process, () => {
      const test = createTestGateway({
        world,
        namespaces: file,
        policy,
        settings: { requestsPerSecondMax: 1e6 },
        createBackbone,
      })
      gateway = test.gateway
      void gateway.start()
    })
    const started = { name, process, gateway, list: (names: string[]) => found(names) }
    // From now on they are known, and take effect at once.
    for (const token of tokens.values()) {
      const connection = await open(started)
      await say(started, connection, { type: 'auth', token })
      for (let isKnown = false; !isKnown; ) {
        for (let waits = 0; waits < 4; waits++) await new Promise(resolve => setTimeout(resolve, 15))
        await kernel.passUntil(kernel.now() + 50)
        isKnown = connection.read().some(({ type }) => type === 'authed')
      }
      await close(started, connection)
    }
    gateways.splice(gateways.findIndex(each => each.name === name) >>> 0, 1)
    gateways.push(started)
  }

  async function open({ gateway, process }: Gateway, protocol = '') {
    const connection = new FakeConnection()
    connection.protocol = protocol
    const peer = { address: '127.0.0.1', isNamed: false }
    await kernel.within(process, () => gateway.open(connection.asTransport, { peer }))
    return connection
  }
  async function say({ process }: Gateway, connection: FakeConnection | undefined, message: object) {
    if (!connection || !process.isAlive || connection.readyState !== 1) return
    await kernel.within(process, () => void connection.emit('message', Buffer.from(JSON.stringify(message)), false))
  }
  async function close({ process }: Gateway, connection: FakeConnection | undefined) {
    if (!connection || !process.isAlive || connection.readyState !== 1) return
    await kernel.within(process, () => void connection.emit('close', 1006, Buffer.alloc(0)))
  }

  async function come(viewer: Viewer) {
    viewer.gateway = pick(gateways)
    viewer.subscribed.clear()
    viewer.problems.clear()
    viewer.gets.clear()
    viewer.connection = await open(viewer.gateway, viewer.isBytes ? 'keycast.v1.bytes' : '')
    if (viewer.user) {
      await say(viewer.gateway, viewer.connection, { type: 'auth', token: tokens.get(viewer.user) })
      for (let isUser = false; !isUser; ) {
        await kernel.passUntil(kernel.now() + 1)
        isUser = viewer.connection.read().some(({ type }) => type === 'authed')
      }
    }
    const some = keys.filter(() => random() < 0.8)
    await subscribe(viewer, some)
  }

  async function leave(viewer: Viewer) {
    read(viewer, true)
    await close(viewer.gateway, viewer.connection)
    viewer.connection = undefined
  }

  async function subscribe(viewer: Viewer, some: string[]) {
    for (const key of some) if (!viewer.subscribed.has(key)) viewer.subscribed.set(key, kernel.now())
    const named = some.map(key => {
      const { version, order } = viewer.shown.get(key) ?? {}
      return version === undefined ? key : { key, version, order }
    })
    await say(viewer.gateway, viewer.connection, { type: 'subscribe', id: 's', keys: named })
  }

  function read(viewer: Viewer, isAll = false) {
    const { connection, readsFromMs } = viewer
    if (!connection || (!isAll && kernel.now() < readsFromMs)) return
    connection.emit('pong')
    for (const frame of connection.read()) if (frame.key !== undefined) take(viewer, frame)
  }

  function take(viewer: Viewer, frame: any) {
    const { type, key, id, version, order, code } = frame
    const { name, shown, problems, gets } = viewer
    const before = shown.get(key)
    if (type === 'value' || type === 'delta') return takeValue(viewer, frame)
    if (typeof id === 'number') return void gets.delete(id)
    if (type === 'current') {
      problems.delete(key)
      if (before?.version !== version) wrong(`${name} ${key}: current ${version}, holds ${before?.version}`)
      else if (before && order > (before.order ?? 0)) before.order = order
      return
    }
    if (code === 'not_found' || code === 'forbidden') shown.delete(key)
    if (frame.subscribed === false) viewer.subscribed.delete(key)
    problems.set(key, code)
  }

  function takeValue(viewer: Viewer, frame: any) {
    const { type, key, id, version, order, from } = frame
    const { name, user, shown, gateway } = viewer
    const before = shown.get(key)
    if (type === 'delta' && before?.version !== from) return wrong(`${name} ${key}: a delta from ${from}`)
    const whole = frame.bytes ?? Buffer.from(JSON.stringify(frame.data))
    const bytes = type === 'delta' ? Buffer.from(applyDelta((before as Shown).bytes, frame.bytes)) : whole
    const { revision, by, user: of, key: named } = JSON.parse(bytes.toString())
    if (named !== key || (namespaceOf(key) === 'own' && of !== String(user))) wrong(`${name} ${key}: ${named} of ${of}`)
    const barredAt = barred.get(`${key} ${user}`)
    if (barredAt !== undefined && kernel.now() > barredAt + 2 * KEEP_MS + 2_500) wrong(`${name} may not read ${key}`)
    if (typeof id === 'number') return checkGet(viewer, key, id, revision)
    if (!viewer.subscribed.has(key)) wrong(`${name} ${key}: it is not subscribed`)
    const isLate = by === 'put' && before?.by === 'fetch'
    if (before && revision < before.revision && !isLate) {
      wrong(`${name}@${gateway.name} ${key}: ${revision} (${order}) after ${before.revision} (${before.order})`)
    }
    shown.set(key, { version, order, revision, by, bytes, atMs: kernel.now() })
    viewer.problems.delete(key)
  }

  /** A fetch that was under way when the get came is shared. */
  function checkGet({ name, user, gets, gateway }: Viewer, key: string, id: number, revision: number) {
    const gotAt = gets.get(id) ?? Number.NEGATIVE_INFINITY
    gets.delete(id)
    const overAt = truthOf(key, user).since[revision + 1]
    const isLate = overAt < gotAt - file[namespaceOf(key)].maxAgeMs - TIMEOUT_MS - 100
    if (isLate && !mayBeLate.includes(namespaceOf(key))) wrong(`${name}@${gateway.name} get ${key}: ${revision}`)
  }

  /** For as long as a value may be shown as live after it was over, with the times of services and of this test. */
  const liveMs = (key: string) => {
    const { refreshMs, waitMs = 0 } = file[namespaceOf(key)]
    return refreshMs + waitMs + TIMEOUT_MS + 5_500
  }
  /** Each node heard that a key has changed, with the revision that it had then. */
  const told = new Map<string, { revision: number; atMs: number }[]>(keys.map(key => [key, []]))
  /** Until then it is shown, or a problem: nodes die, and are held down. */
  const TOLD_MS = 30_000

  function checkLive({ name, user, gateway, connection, readsFromMs, subscribed, problems, shown }: Viewer) {
    const nowMs = kernel.now()
    const isAwake =
      gateway.process.isAlive && nowMs > gateway.process.stalledUntil + 4_000 && nowMs > readsFromMs + 1_000
    if (connection?.readyState !== 1 || !isAwake) return
    for (const [key, since] of subscribed) {
      const value = shown.get(key)
      if (!value || problems.has(key)) continue
      const overAt = truthOf(key, user).since[value.revision + 1] ?? Number.POSITIVE_INFINITY
      const isTimed = file[namespaceOf(key)].refreshMs > 0 && nowMs > changedFileAt + 35_000
      if (isTimed && nowMs - Math.max(overAt, since) > liveMs(key)) wrong(`${name} ${key}: ${value.revision} as live`)
      const toldAt = told.get(key)?.find(({ revision }) => revision > value.revision)?.atMs ?? Number.POSITIVE_INFINITY
      if (nowMs - Math.max(toldAt, since) > TOLD_MS) wrong(`${name} ${key}: ${value.revision}, another was told of`)
    }
  }

  async function pass(ms: number, stepMs = 20) {
    for (const endsAt = kernel.now() + ms; kernel.now() < endsAt; ) {
      await kernel.passUntil(Math.min(endsAt, kernel.now() + stepMs))
      for (const viewer of viewers) {
        read(viewer)
        checkLive(viewer)
      }
    }
  }

  function change(key: string, user: string | undefined, isThere = true) {
    backend.change(key, user, isThere)
    if (refreshed.includes(namespaceOf(key))) void refresh(key)
    if (handedOver.includes(namespaceOf(key))) void handOver(key)
  }

  /** Calls a gateway. @returns undefined where that says nothing */
  const call = <T>(run: (backbone: any) => Promise<T>) =>
    new Promise<T | undefined>(resolve => {
      later(20_000, () => resolve(undefined))
      const { process, gateway } = pick(gateways)
      kernel.schedule(process, kernel.now() + random() * 5, () => {
        run(gateway.backbone).then(resolve, () => resolve(undefined))
      })
    })

  async function refresh(key: string) {
    const { revision } = truthOf(key)
    while (!(await call(backbone => backbone.refresh([key], { deadlineMs: 5_000 }).then(() => true)))) await pause(500)
    told.get(key)?.push({ revision, atMs: kernel.now() })
  }

  const handing = new Set<string>()
  /** One after the other, and the latest each time. */
  async function handOver(key: string) {
    if (handing.has(key)) return
    handing.add(key)
    for (let isLatest = false; !isLatest; ) {
      const { revision } = truthOf(key)
      const body = Buffer.from(backend.contentOf(key, undefined, 'put'))
      const version = `put-${key}-${revision}`
      const content = backend.isThere(key)
        ? { version, contentType: 'application/json', format: 'json', body }
        : undefined
      const rank = namespaceOf(key) === 'ranked' ? revision : undefined
      const taken = await call<any>(backbone => backbone.handOver({ key, content, rank }, { deadlineMs: 5_000 }))
      isLatest = taken?.outcome !== undefined && truthOf(key).revision === revision
      if (taken?.outcome === undefined) await pause(300)
    }
    handing.delete(key)
  }

  const node = () => cluster.nodes.get(pick(NODES))
  const worker = () => pick([...(node()?.workers.processes ?? [])])
  const stall = (process: Process | undefined) => process?.stall(pick([100, 700, 2_000, 4_500]))
  function cutFor(names: string[], ms: number) {
    cut(cluster, names, pick(['hold', 'drop']))
    later(ms, () => mend(cluster, names))
  }
  function takeOver(longer: number) {
    file = fileOf(longer)
    changedFileAt = kernel.now()
    const soon = (process: Process, run: () => void) => kernel.schedule(process, kernel.now() + random() * 1_500, run)
    for (const { process, takeOver } of cluster.nodes.values()) soon(process, () => takeOver(readAs(file)))
    for (const { process, gateway } of gateways) {
      soon(process, () => gateway.takeOver(readAs(file), createPolicy(policy)))
    }
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
    () => stall(worker()),
    () => worker()?.kill(),
    () => cutFor([pick(between(pick(gateways).name, pick(NODES)))], pick([200, 1_500, 5_000, 12_000])),
    () => cutFor(between(pick(gateways).name, pick(NODES)), pick([1_500, 5_000, 12_000, 20_000])),
    () => {
      const { process, list } = pick(gateways)
      const names = pick([[NODES[0]], [NODES[1]]])
      kernel.schedule(process, kernel.now(), () => list(names))
      kernel.schedule(process, kernel.now() + pick([500, 4_000, 15_000]), () => list(NODES))
    },
    () => {
      const trouble = { of: pick(['all', 'questions', ...keys.map(namespaceOf)]), how: pick(troubles) }
      // To a user's own value that is an answer.
      if (trouble.how === '403') trouble.of = 'poll'
      backend.state.trouble = trouble
      later(pick([300, 2_000, 6_000]), () => {
        backend.state.trouble = undefined
      })
    },
    () => {
      backend.endStreams(random() < 0.3)
      backend.state.isStreaming = random() < 0.6
      later(pick([1_000, 7_000]), () => {
        backend.state.isStreaming = true
      })
    },
    async () => {
      const { name, process } = pick(gateways)
      process.end()
      for (const viewer of viewers) if (viewer.gateway.name === name) viewer.connection = undefined
      await startGateway(name)
    },
    () => takeOver(pick([1, 2, 20])),
  ]

  let gets = 0
  async function get(viewer: Viewer) {
    const key = pick(keys)
    viewer.gets.set(++gets, kernel.now())
    await say(viewer.gateway, viewer.connection, { type: 'get', id: gets, key })
  }
  const acts: ((viewer: Viewer) => unknown)[] = [
    get,
    get,
    leave,
    viewer => {
      const some = keys.filter(() => random() < 0.4)
      return subscribe(viewer, some)
    },
    async viewer => {
      const some = keys.filter(() => random() < 0.3)
      await say(viewer.gateway, viewer.connection, { type: 'unsubscribe', id: 'u', keys: some })
      await kernel.passUntil(kernel.now() + 1)
      read(viewer, true)
      for (const key of some) viewer.subscribed.delete(key)
    },
    viewer => {
      viewer.readsFromMs = kernel.now() + pick([100, 1_500])
    },
    ({ user }) => {
      const of = `auth:${pick(IDS)} ${user}`
      if (!barred.delete(of)) barred.set(of, kernel.now())
    },
  ]

  /** Each viewer has the latest of all it subscribed to, or is told that there is none: without another change. */
  function checkConverged() {
    for (const { name, user, gateway, connection, subscribed, problems, shown } of viewers) {
      if (connection?.readyState !== 1) continue
      for (const key of subscribed.keys()) {
        const { revision } = truthOf(key, user)
        const has = shown.get(key)?.revision
        const isRight = backend.isThere(key, user) ? has === revision && !problems.has(key) : problems.has(key)
        if (!isRight) wrong(`${name}@${gateway.name} ${key}: ${has}, ${problems.get(key)}, in place of ${revision}`)
      }
    }
  }

  const changeAll = () => {
    for (const key of keys) for (const user of namespaceOf(key) === 'own' ? users : [undefined]) change(key, user)
  }

  return {
    amiss,
    backend,
    cluster,
    gateways,
    viewers,
    pass,
    changeAll,
    leave,
    now: kernel.now,

    async start() {
      for (const name of NODES) await startNode(cluster, name, settings)
      for (const { process } of cluster.nodes.values()) process.stalls = stalls
      for (const name of ['g1', 'g2']) await startGateway(name)
      for (const [index, user] of ['ann', 'ann', 'bob', undefined].entries()) {
        const viewer: Viewer = {
          name: `v${index} (${user})`,
          user,
          isBytes: random() < 0.5,
          gateway: gateways[0],
          connection: undefined,
          shown: new Map(),
          problems: new Map(),
          subscribed: new Map(),
          gets: new Map(),
          readsFromMs: 0,
        }
        viewers.push(viewer)
        await come(viewer)
      }
    },

    async suffer(ms: number) {
      for (const endsAt = kernel.now() + ms; kernel.now() < endsAt && amiss.length === 0; ) {
        for (const key of keys) if (random() < 0.12) change(key, pick(users), random() > 0.03)
        if (below(4) === 0) await pick(faults)()
        if (below(3) === 0) await pick(acts)(pick(viewers))
        for (const viewer of viewers) if (!viewer.connection) await come(viewer)
        await pass(pick([3, 30, 100, 400]))
      }
    },

    /** From now on all is well. */
    async calmDown() {
      backend.state.trouble = undefined
      backend.state.isStreaming = true
      stalls.share = 0
      barred.clear()
      mend(cluster, cluster.channels.keys())
      for (const { process, list } of gateways) await kernel.within(process, () => list(NODES))
      takeOver(1)
      for (const viewer of viewers) viewer.readsFromMs = 0
      await pass(SETTLED_MS + 8_000, 50)
      checkConverged()
      changeAll()
      await pass(SETTLED_MS, 100) // keys that were not there are asked for rarely
      for (const viewer of viewers) {
        await leave(viewer)
        await come(viewer)
        await subscribe(viewer, keys)
      }
      await pass(2_000)
    },

    /** Of a change that comes now. With few requests in flight keys that change together take turns. */
    dueMs: (key: string) =>
      (namespaceOf(key) === 'far' ? 0 : file[namespaceOf(key)].refreshMs) + (settings.inFlightMax < 8 ? 2_500 : 700),

    /** How often a key is asked for in a time in which nothing happens, at most. */
    asksMax(key: string, ms: number) {
      const { refreshMs, waitMs } = file[namespaceOf(key)]
      if (waitMs) return ms / waitMs + 2
      return refreshMs === 0 ? 0 : ms / refreshMs + 2
    },
  }
}

/** What is left at a node of gateways without viewers. */
function leftAt({ name, primary, workers }: Node) {
  const left: string[] = []
  for (const { key, interest, fetch, timing } of primary.table.entries()) {
    const isWanted = interest.waiters || [...(interest.watchers as Iterable<unknown>)].length > 0
    if (fetch || timing.timer || isWanted) left.push(`${name} ${key}`)
  }
  const waits = [...primary.waits.underWay().values()].reduce((sum, each) => sum + each, 0)
  const inFlight = primary.sources.origins.reduce((sum, origin) => sum + origin.inFlight, 0)
  if (waits > 0 || inFlight > 0) left.push(`${name}: ${waits} waits, ${inFlight} in flight`)
  if (workers.all.stats().ready !== workers.processes.size) left.push(`${name}: not all workers are ready`)
  return left.concat([...primary.interest.links()].map(link => `${name}: link ${link}`))
}

test.each([1, 2, 3])('all modes, in any order, seed %i', async seed => {
  const { start, suffer, calmDown, pass, changeAll, dueMs, asksMax, leave, now, ...system } = createSystem(seed)
  const { amiss, backend, cluster, viewers } = system
  await start()
  await suffer(FAULTS_MS)
  expect([...amiss, ...backend.amiss]).toEqual([])
  await calmDown()

  changeAll()
  const changedAt = now()
  await pass(Math.max(...keys.map(dueMs)) + 1_000, 50)
  for (const { name, user, shown, problems } of viewers) {
    expect([name, [...problems]]).toEqual([name, []])
    for (const key of keys) {
      const { revision, atMs = 0 } = shown.get(key) ?? {}
      expect([name, key, revision]).toEqual([name, key, backend.truthOf(key, user).revision])
      expect([name, key, atMs - changedAt > dueMs(key)]).toEqual([name, key, false])
    }
  }

  backend.asked.clear()
  await pass(CALM_MS, 100)
  const often = [...backend.asked].filter(([name, count]) => count > asksMax(name.split(' ')[0], CALM_MS))
  expect(often).toEqual([])
  for (const { name, gets, problems } of viewers) expect([name, gets.size, problems.size]).toEqual([name, 0, 0])

  for (const viewer of viewers) await leave(viewer)
  await pass(SETTLED_MS, 500)
  expect([...cluster.nodes.values()].flatMap(leftAt)).toEqual([])
  expect([...amiss, ...backend.amiss]).toEqual([])
})
