// Gateways that come, want anything for anybody and are lost in the middle of it, while backends answer, fail, wait or go,
// workers die and say things twice, and keycast.yaml changes: nothing of the gateways is left, and nobody is asked any more.
import { createHash } from 'node:crypto'
import { changesKey, decodeChanged, viewerKey } from '@keycast/backbone'
import { createLiveNamespaces, type LiveNamespaces } from '@keycast/service'
import { readNamespaces } from '@keycast/service/namespaces'
import type { Outcome } from '@keycast/service/notify'
import fc from 'fast-check'
import type { Result } from '../worker-messages.ts'
import { authorizeQuestions, createAuthorize } from './authorize/authorize.ts'
import type { StreamOptions } from './changes/event-stream.ts'
import { lanes } from './fetching/fetch-queue.ts'
import { isInUse } from './keys/interest.ts'
import { type Ask, createQuestions } from './questions/questions.ts'
import { setup } from './test-support.ts'
import { createInTurns } from './timing/in-turns.ts'

const STREAM = 'http://backend/changes'
const STREAM_KEY = changesKey(STREAM)
const users = ['ann', 'bob']
const viewers = users.map(user => createHash('sha256').update(user).digest('base64url'))
const own = viewers.map(viewer => viewerKey('me:1', viewer))
/** Who may read what. */
const questions = ['doc:1', 'doc:2', 'me:1'].flatMap(key => viewers.map(viewer => viewerKey(key, viewer)))
const keys = [
  ...Array.from({ length: 6 }, (_, id) => `many:${id}`),
  'doc:1',
  'doc:2',
  'calm:1',
  'calm:2',
  'wait:1',
  'wait:2',
  ...own,
  'no:1',
]

const many = { source: 'http', batch: { url: 'http://backend/many?ids={ids}', items: '/items', id: '/id', max: 4 } }
const doc = {
  source: 'http',
  url: 'http://backend/doc/{id}',
  refresh: '2s',
  changes: { sse: STREAM },
  authorize: { url: 'http://backend/rights/{id}', keep: '3s' },
}
const calm = {
  source: 'http',
  url: 'http://backend/calm/{id}',
  refresh: 0,
  notify: { url: 'http://backend/told', secretFiles: ['secret'], viewers: true },
}
const wait = { source: 'http', url: 'http://waits/{id}', refresh: 'wait' }
const me = { source: 'http', url: 'http://backend/me/{id}', per: 'user', credentials: 'viewer' }
const moved = { ...doc, url: 'http://other/doc/{id}', authorize: { url: 'http://other/rights/{id}' } }
/** What keycast.yaml says, one after another and in any order: other backends, other times, fewer namespaces. */
const files = [
  { many, doc, calm, wait, me },
  {
    many: { source: 'http', url: 'http://backend/many/{id}' },
    doc: moved,
    calm: { ...calm, url: 'http://other/{id}', refresh: '500ms' },
    wait: { ...wait, refresh: '300ms' },
    me,
  },
  { doc: { ...doc, authorize: undefined }, wait },
  { many, doc: moved, me: { ...me, authorize: { url: 'http://other/me/{id}' } } },
].map(namespaces => JSON.stringify({ namespaces }))

/** Anew each time: live namespaces are the objects that were read. */
const read = (number: number) => readNamespaces({ path: 'keycast.yaml', text: files[number % files.length], env: {} })

/** What gateways, backends and workers may do: numbers say to whom and with what. */
function system() {
  const live = createLiveNamespaces(read(0))
  const streams: (StreamOptions & { isOpen: boolean })[] = []
  let takes: Outcome = { kind: 'taken' }
  const primary = setup({
    live,
    inFlightMax: 3,
    credit: 8,
    cacheBytesMax: 40_000,
    backendTakes: () => takes,
    openStream(options) {
      const stream = { ...options, isOpen: true }
      streams.push(stream)
      return () => {
        stream.isOpen = false
      }
    },
  })
  const asking = createAsking(primary, live)
  const links: string[] = []
  /** How far each link is with the stream. */
  const places = new Map<string, { version: string; order: number; ageMs: number }>()
  let last = 0
  const pick = <T>(choices: T[], number: number) => choices[number % choices.length]
  const on = (run: (link: string, key: string, number: number) => unknown) => (which: number, number: number) => {
    if (links.length > 0) run(pick(links, which), pick(keys, number), number + which)
  }
  const wantOf = (key: string, number: number) => ({
    key,
    held: number % 3 === 0 ? { version: `v${number}`, ageMs: number * 100, order: number } : undefined,
    payer: [undefined, 'a1.u1', 'a2.u2'][number % 3],
    quiet: number % 4 === 0,
    credentials: { authorization: 'Bearer', expiresAt: primary.now() + number * 200 },
  })
  const contentOf = (number: number): Result => ({
    kind: 'value',
    version: `v${number % 3}`,
    contentType: 'x/y',
    format: 'json',
    status: 200,
    store: number % 5 !== 0,
    etag: `"${number}"`,
    waited: true,
  })
  const failures = ['backend_error', 'not_found', 'backend_timeout', 'backend_refused', 'backend_throttled'] as const
  const failed = (number: number): Result => {
    const code = pick([...failures], number)
    return { kind: 'failed', code, message: code, status: pick([500, 404, 401, undefined], number) }
  }
  const body = (number: number) => Buffer.alloc(1 + (number % 4) * 1_000)
  const onLease = (run: (lease: any, number: number) => unknown) => (which: number, number: number) => {
    if (primary.leases().length > 0) run(pick(primary.leases(), which), number)
  }
  /** Ends a lease, if only by its worker's end. */
  function end({ message: { key, waitSeconds } }: any, result: Result | undefined, number: number) {
    const content = result?.kind === 'value' ? body(number) : undefined
    if (waitSeconds !== undefined) return result ? primary.answerWait(key, result, content) : primary.loseWait(key)
    if (result) primary.answer(key, result, content)
    else primary.lose(key)
  }
  const actions: ((which: number, number: number) => unknown)[] = [
    () => links.push(`link${++last}`),
    which => links.splice(which % 4, 1).forEach(primary.onLinkLost),
    on((link, key, number) => primary.onWatch(link, wantOf(key, number))),
    on((link, key, number) => primary.onWatch(link, wantOf(key, number))),
    on((link, key, number) => {
      const { held: position, payer, credentials: payload } = wantOf(key, number)
      primary.onGet(link, { key, position, payer, payload })
    }),
    on((link, key) => primary.cancelGet(link, key)),
    on((link, key, number) => primary.onUnwatch(link, key, number % 2 === 0)),
    on(link => primary.take(link)),
    onLease((lease, number) => end(lease, contentOf(number), number)),
    onLease((lease, number) => end(lease, { kind: 'current', status: 304, store: true, etag: '"1"' }, number)),
    onLease((lease, number) => end(lease, failed(number), number)),
    onLease((lease, number) => end(lease, undefined, number)),
    // Of a batch some say what another key has, and some say it twice.
    onLease(({ fetch, message }, number) => {
      if (message.batch) primary.part(fetch, { nth: 1 + (number % 4), ...contentOf(number) }, body(number))
    }),
    (_, number) => primary.handOver(pick(keys, number), number % 4 === 0 ? undefined : `v${number}`, number),
    (_, number) => primary.onRefresh(pick(keys, number)),
    (_, number) =>
      primary.onNotice('any', { keys: [pick(['many:*', 'doc:*', 'me:1', 'doc:1'], number)], users: undefined }),
    (_, number) => primary.pass(number * 100),
    (_, number) => primary.freeze(number * 300),
    (_, number) => takeOver(number),
    turns,
    (_, number) => {
      takes = pick([{ kind: 'taken' }, { kind: 'failed', why: 'down' }, { kind: 'refused', why: 'no' }], number)
    },
    on((link, _, number) => asking.ask(link, pick(questions, number), number, 'a1.u1')),
    on((link, _, number) => asking.ask(link, pick(questions, number), number, 'a2.u2')),
    (which, number) => asking.answer(which, number),
    (which, number) => asking.answer(which, number),
    on(link => watchStream(link)),
    // The link tells all nodes what it was sent, and says how far it is.
    on(link => tellChanges(link)),
    on(link => primary.onUnwatch(link, STREAM_KEY)),
    (_, number) =>
      onStream(stream => (number % 3 === 0 ? stream.onDown('it broke', 500) : stream.onUp(number % 2 === 0))),
    (which, number) =>
      onStream(stream => stream.onEvent({ id: pick([undefined, `${number}`], which), data: event(number) })),
  ]

  function takeOver(number: number) {
    primary.takeOver(read(number))
    asking.renew()
  }

  function watchStream(link: string) {
    primary.onWatch(link, { key: STREAM_KEY, held: places.get(link) })
  }

  function tellChanges(link: string) {
    for (const answer of primary.take(link)) {
      if (answer.key !== STREAM_KEY || answer.type !== 'value') continue
      for (const changed of decodeChanged(answer.body)) {
        if (typeof changed === 'string') primary.onNotice(link, { keys: [changed] })
        else primary.handOver(changed.key, changed.content?.version, changed.rank)
      }
      places.set(link, { version: answer.version, order: answer.order ?? 0, ageMs: 0 })
      watchStream(link)
    }
  }

  function onStream(run: (stream: StreamOptions) => unknown) {
    const open = streams.find(({ isOpen }) => isOpen)
    if (open) run(open)
  }

  const event = (number: number) =>
    JSON.stringify({
      key: `doc:${number % 4}`,
      ...pick([{}, { value: number, order: number }, { value: number }], number),
    })

  return {
    ...primary,
    actions,
    asking,
    takeOver,
    openStreams: () => streams.filter(({ isOpen }) => isOpen).length,
    leave: () => links.splice(0).forEach(primary.onLinkLost),
    answerAll(number: number) {
      takes = { kind: 'taken' }
      while (primary.leases().length > 0) end(primary.leases()[0], contentOf(number), number)
      while (asking.underWay() > 0) asking.answer(0, number)
    },
  }
}

/** What is kept in between has its turn. */
async function turns() {
  for (let count = 0; count < 5; count++) await new Promise(resolve => setImmediate(resolve))
}

const QUEUED_MAX = 8
const IN_FLIGHT_MAX = 2

/** A node's questions whether viewers may read, asked by workers that answer when the test says so. */
function createAsking({ world, now }: Pick<ReturnType<typeof setup>, 'world' | 'now'>, namespaces: LiveNamespaces) {
  const asked: Ask[] = []
  /** How often each was answered, by link and id. */
  const told = new Map<string, number>()
  const questions = createQuestions({
    ...world,
    kind: { ...authorizeQuestions(namespaces.all), queuedMax: QUEUED_MAX },
    pool: { hasCredit: () => asked.length < 3, lease: (_, ask: any) => asked.push(ask) },
    cap: IN_FLIGHT_MAX,
    inTurns: createInTurns(world),
    metrics: { asked() {} },
    failureLog: { failed() {}, succeeded() {}, troubles: new Map() },
  })
  const { onCommand, kept } = createAuthorize({
    namespaces: namespaces.all,
    questions,
    tellDecision: (link, id) => void told.set(`${link} ${id}`, (told.get(`${link} ${id}`) ?? 0) + 1),
    logNobody() {},
    metrics: { questioned() {} },
    now,
    random: world.random,
    keptMax: 4,
  })
  let last = 0
  return {
    ask(link: string, key: string, number: number, payer: string | undefined) {
      const id = `${++last}`
      told.set(`${link} ${id}`, 0)
      const maxAgeMs = number % 4 === 0 ? 0 : undefined
      const credentials = { authorization: `Bearer ${(number >> 2) % 2}`, expiresAt: now() + 1_000 }
      onCommand(link, id, { key, maxAgeMs, ...credentials }, 0, payer)
    },
    answer(which: number, number: number) {
      const [ask] = asked.splice(which % Math.max(1, asked.length), 1)
      if (!ask) return
      const failed = { kind: 'failed', code: 'backend_timeout', message: 'late' } as const
      if (number % 5 === 0) questions.lost(ask)
      else if (number % 5 === 1) questions.ended(ask, failed, undefined)
      else questions.ended(ask, { kind: 'status', status: [204, 403, 405, 500][number % 4] }, undefined)
      questions.startAll()
    },
    renew: questions.renew,
    underWay: () => asked.length,
    kept,
    levels: questions.levels,
    /** Those that were not answered once. */
    amiss: () => [...told].filter(([, times]) => times !== 1),
  }
}

test('whatever gateways want, and whenever they are lost, nothing of them is left', async () => {
  const step = fc.tuple(fc.nat(29), fc.nat(15), fc.nat(30))
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 80, maxLength: 250, size: 'max' }), async steps => {
      const { actions, leave, answerAll, pass, primary, leased, kept, isTimerSet, freeze, ...rest } = system()
      const { asking, openStreams, takeOver } = rest
      actions[0](0, 0)
      for (const [action, which, number] of steps) await actions[action](which, number)

      leave()
      for (let rounds = 0; rounds < 5; rounds++) {
        answerAll(rounds)
        pass(2_000)
        await turns()
        // As long as the log is silent of a failure that it has told.
        freeze(61_000)
        await turns()
      }
      const { table, sources, interest, waits } = primary
      expect([leased(), kept(), [...interest.links()], table.accounts()]).toEqual([[], 0, [], 0])
      expect([...table.entries()].filter(isInUse)).toEqual([])
      for (const { queue, failing, probeTimer } of sources.values()) {
        expect([queue.queued(), lanes.map(queue.inFlightOf), failing.size, probeTimer]).toEqual([
          0,
          [0, 0, 0],
          0,
          undefined,
        ])
      }
      expect([...waits.underWay().values()].filter(count => count !== 0)).toEqual([])
      expect(sources.origins.filter(({ inFlight }) => inFlight !== 0)).toEqual([])
      const { queued, inFlight } = asking.levels
      expect([openStreams(), queued(), inFlight()]).toEqual([0, 0, 0])
      expect(asking.amiss()).toEqual([])
      expect(asking.kept()).toBeLessThanOrEqual(4)
      expect(isTimerSet()).toBe(false)

      // Nor of the places of questions, where the backend answers again.
      takeOver(0)
      const ask = (id: number) => asking.ask('link', viewerKey(`doc:${id}`, viewers[0]), 4, undefined)
      ask(100)
      while (asking.underWay() > 0) asking.answer(0, 4)
      for (let id = 0; id < IN_FLIGHT_MAX + QUEUED_MAX; id++) ask(id)
      expect([inFlight(), queued()]).toEqual([IN_FLIGHT_MAX, QUEUED_MAX])
    }),
    { numRuns: 60, endOnFailure: true },
  )
})
