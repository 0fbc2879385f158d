// Overlapping faults of every kind, drawn from a seed: no viewer is ever sent an older value, and in the end all hold the
// backend's content. Ten minutes of it, with a seed that is printed:
// FAULT_RUN_SECONDS=600 npm run test:e2e -- --testPathPatterns faults/together
import { answers, documentOf, etagOf, type Handler, startBackend } from '../support/backend.ts'
import { startBlackhole } from '../support/blackhole.ts'
import { atEnd } from '../support/cleanup.ts'
import { connect, connectViewer } from '../support/client.ts'
import { eventually, pause } from '../support/deadline.ts'
import { msSince, show } from '../support/figures.ts'
import { childrenOf, signalNow } from '../support/processes.ts'
import { createRandom } from '../support/random.js'
import { seconds, seed, timeoutMs } from '../support/random-faults.ts'
import { nodeAt, startSystem } from '../support/system.ts'

/** Faults overlap for this long. Then there are none, and all must converge. */
const ROUND_MS = 20_000
/** Longest a single fault lasts: past the 3 s after which a silent peer counts as dead, and short of it, are both drawn. */
const FAULT_MS_MAX = 5_000

/**
 * Most rounds converge within a second. On a busy machine, which cannot ask for all keys ten times a second, it takes far
 * longer until none is stale.
 */
const CONVERGENCE_MS = 90_000

const random = createRandom(seed)
/**
 * A fetcher asks for a `doc` again and again, for each alone or for many in one request; it is told that one changed, or
 * waits for that.
 */
const names = ['doc', 'batched', 'told', 'waited']
const keys = Array.from({ length: 40 }, (_, id) => `${names[id % names.length]}:${id}`)
const revisions = new Map(keys.map(key => [key, 1]))
const idOf = (key: string) => Number(key.split(':')[1])
const contentOf = (key: string) => documentOf(revisions.get(key) as number, 200 + idOf(key) * 200)

/** Changes that are still to be said. */
const untold = new Set<string>()
/** Requests that wait for a change, by key. */
const waiting = new Map<string, (() => void)[]>(keys.map(key => [key, []]))
const change = (key = random.pick(keys)) => {
  revisions.set(key, (revisions.get(key) as number) + 1)
  if (key.startsWith('told')) untold.add(key)
  for (const answer of waiting.get(key)?.splice(0) ?? []) answer()
}

const backend = await startBackend()

/** The content is fixed when the request arrives; half of the answers then take their time. */
const serve: Handler = (request, response) => {
  const { pathname, searchParams } = new URL(request.url ?? '', backend.origin)
  const ids = searchParams.get('ids')?.split(',')
  const key = keys[Number(pathname.split('/').pop())]
  const content = ids ? `[${ids.map(id => `{"id":${id},${contentOf(keys[Number(id)]).slice(1)}`)}]` : contentOf(key)
  const wait = request.headers.prefer
  const document = answers.json(content, wait ? { 'preference-applied': String(wait) } : {})
  if (wait && request.headers['if-none-match'] === etagOf(content)) {
    waiting.get(key)?.push(() => serve(request, response))
    return
  }
  const handler = random.integer(2) === 0 ? document : answers.slowly(() => random.integer(120), document)
  handler(request, response)
}
backend.failWith(serve)

const { fetchers, startFetcher, startGateway } = await startSystem({
  gateways: 0,
  fetchers: 2,
  env: { FETCHER_WORKERS: '2' },
  namespaces: {
    doc: { url: `${backend.origin}/docs/{id}`, refresh: '100ms', timeout: '500ms', maxAge: '100ms' },
    batched: {
      batch: { url: `${backend.origin}/docs?ids={ids}`, max: 20, items: '', id: '/id' },
      refresh: '100ms',
      timeout: '500ms',
      maxAge: '100ms',
    },
    told: { url: `${backend.origin}/docs/{id}`, refresh: 0, timeout: '500ms', maxAge: '100ms' },
    waited: { url: `${backend.origin}/docs/{id}`, refresh: 'wait', timeout: '500ms', maxAge: '100ms' },
  },
})
const proxies = await Promise.all(
  fetchers.map(({ ports }) => Promise.all([startBlackhole(ports.requestsPort), startBlackhole(ports.answersPort)])),
)
const behindProxies = proxies.map(([requests, replies]) =>
  nodeAt({ requestsPort: requests.port, answersPort: replies.port }),
)
// The first gateway names the nodes by other addresses than the second and so finds other owners: as in a disagreement.
const gateways = await Promise.all([startGateway({ FETCHER_NODES: behindProxies.join() }), startGateway()])

const lasting = () => pause(100 + random.integer(FAULT_MS_MAX))
const stopForAWhile = async (pid: number) => {
  signalNow(pid, 'SIGSTOP')
  await lasting()
  signalNow(pid, 'SIGCONT')
}
const aWorkerOf = (node: number) => random.pick(childrenOf(fetchers[node].process.pid))

/** The faults that can hit the first or the second of something. */
const faults: { name: string; to: string; befall: (which: number) => Promise<void> }[] = [
  {
    name: 'worker killed',
    to: 'node',
    async befall(node) {
      const worker = aWorkerOf(node)
      if (worker) signalNow(worker, 'SIGKILL')
    },
  },
  {
    name: 'worker stopped',
    to: 'node',
    async befall(node) {
      const worker = aWorkerOf(node)
      if (worker) await stopForAWhile(worker)
    },
  },
  {
    name: 'node killed and started again',
    to: 'node',
    async befall(node) {
      await fetchers[node].process.kill()
      await lasting()
      fetchers[node] = await startFetcher(fetchers[node].ports)
    },
  },
  { name: 'primary stopped', to: 'node', befall: node => stopForAWhile(fetchers[node].process.pid) },
  { name: 'gateway stopped', to: 'gateway', befall: which => stopForAWhile(gateways[which].process.pid) },
  {
    name: 'link silent',
    to: 'link',
    async befall(node) {
      const silent = random.pick([[0], [1], [0, 1]]).map(direction => proxies[node][direction])
      const how = random.pick(['hold', 'drop'] as ('hold' | 'drop')[])
      for (const proxy of silent) proxy.swallow(how)
      await lasting()
      for (const proxy of silent) proxy.mend()
    },
  },
  {
    name: 'backend failing',
    to: 'backend',
    async befall() {
      backend.failWith(random.pick(failures))
      await lasting()
      backend.failWith(serve)
    },
  },
]
const failures = [
  answers.status(500),
  answers.status(404),
  answers.status(429, { 'retry-after': '1' }),
  answers.silence(),
  answers.cutShort(documentOf(0, 5_000)),
  answers.content('{"revision":0', 'application/json'),
]

let isOver = false
atEnd(() => {
  isOver = true
})

/** Says what changed, again until a gateway has taken it. */
const tell = async (goesOn: () => boolean) => {
  while (!isOver && (goesOn() || untold.size > 0)) {
    const changed = [...untold]
    untold.clear()
    try {
      if (changed.length > 0) await random.pick(gateways).refresh(changed)
    } catch {
      for (const key of changed) untold.add(key)
    }
    await pause(random.integer(30))
  }
}

/** Somebody who comes and goes and asks for this and that, until told to stop. */
const wander = async (url: string, goesOn: () => boolean) => {
  const client = await connect(url)
  while (goesOn()) {
    const some = keys.filter(() => random.integer(3) === 0)
    try {
      await client.subscribe([...some, keys[0]])
      await pause(random.integer(500))
      client.send({ type: 'get', key: random.pick(keys) })
      await client.unsubscribe(some.filter(() => random.integer(4) > 0).concat(keys[0]))
    } catch (error) {
      if (goesOn()) throw error
    }
  }
  client.close()
}

/** Faults of all kinds, until none is left. @returns what happened */
const suffer = async (): Promise<string[]> => {
  const until = performance.now() + ROUND_MS
  const changing = setInterval(() => change(), 5)
  atEnd(() => clearInterval(changing))
  const goesOn = () => performance.now() < until
  const wandering = [...gateways.map(({ url }) => wander(url, goesOn)), tell(goesOn)]

  const suffering = new Set<string>()
  const happening: Promise<void>[] = []
  const story: string[] = []
  while (performance.now() < until) {
    const { name, to, befall } = random.pick(faults)
    const which = to === 'backend' ? 0 : random.integer(2)
    const subject = `${to} ${which}`
    // One thing does not suffer two faults at a time.
    if (!suffering.has(subject)) {
      suffering.add(subject)
      story.push(`${name} (${which})`)
      happening.push(befall(which).finally(() => suffering.delete(subject)))
    }
    await pause(random.integer(1_000))
  }
  await Promise.all([...happening, ...wandering])
  clearInterval(changing)
  return story
}

test(
  `${seconds} s of faults of all kinds, drawn from seed ${seed}: everybody converges, and no revision falls`,
  async () => {
    const viewers = await Promise.all(
      Array.from({ length: 8 }, (_, index) =>
        connectViewer([gateways[index % 2].url], keys, { protocols: index % 4 < 2 ? [] : ['keycast.v1.bytes'] }),
      ),
    )
    const until = performance.now() + seconds * 1_000
    do {
      const story = await suffer()
      for (const key of keys) change(key)
      await tell(() => false)
      const wellAt = performance.now()
      await eventually(
        () =>
          viewers.every(({ sights }) =>
            keys.every(key => {
              const { revision, stale, error } = sights.of(key)
              return revision === revisions.get(key) && !stale && !error
            }),
          ),
        `convergence, with seed ${seed}, after: ${story.join(', ')}`,
        { deadlineMs: CONVERGENCE_MS },
      )
      show(`${story.length} faults in ${ROUND_MS / 1_000} s: everybody converged ${msSince(wellAt)} after the last`)
    } while (performance.now() < until)
    for (const viewer of viewers) viewer.stop()
  },
  timeoutMs,
)
