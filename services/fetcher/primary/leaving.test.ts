// Gateways that come, want anything for anybody and are lost in the middle of it, while backends answer, fail, wait or go,
// workers die and say things twice, and keycast.yaml changes: nothing of the gateways is left, and nobody is asked any more.
import { createHash } from 'node:crypto'
import { viewerKey } from '@keycast/backbone'
import type { Namespace } from '@keycast/service'
import fc from 'fast-check'
import type { Result } from '../worker-messages.ts'
import { lanes } from './fetching/fetch-queue.ts'
import { isInUse } from './keys/interest.ts'
import { setup } from './test-support.ts'

const users = ['ann', 'bob']
const own = users.map(user => viewerKey('me:1', createHash('sha256').update(user).digest('base64url')))
const keys = [
  ...Array.from({ length: 8 }, (_, id) => `many:${id}`),
  'doc:1',
  'doc:2',
  'wait:1',
  'wait:2',
  ...own,
  'no:1',
]

const batch: Namespace['batch'] = {
  max: 4,
  items: '/items',
  id: '/id',
  urlFor: ids => `http://backend/many?ids=${ids.join(',')}`,
  idsBytesMax: 1_000,
  bytesOf: id => id.length,
}
const namespaces = (): Record<string, Partial<Namespace>> => ({
  many: { batch },
  doc: { refreshMs: 0, notify: {} as Namespace['notify'] },
  wait: { waitMs: 5_000, origin: 'http://waits' },
  me: { isPerUser: true },
})
/** What a keycast.yaml may change, and back. */
const changes: { name: string; fields: Partial<Namespace>; before: Partial<Namespace> }[] = [
  { name: 'many', fields: { batch: undefined }, before: { batch } },
  {
    name: 'doc',
    fields: { refreshMs: 500, origin: 'http://other' },
    before: { refreshMs: 0, origin: 'http://backend' },
  },
  { name: 'wait', fields: { waitMs: undefined, refreshMs: 300 }, before: { waitMs: 5_000, refreshMs: 1_000 } },
]

/** What gateways, backends and workers may do: numbers say to whom and with what. */
function system() {
  const named = namespaces()
  const primary = setup({ namespaces: named, inFlightMax: 3, credit: 8, cacheBytesMax: 40_000 })
  const links: string[] = []
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
  function end({ fetch, message: { key } }: any, result: Result | undefined, number: number) {
    const content = result?.kind === 'value' ? body(number) : undefined
    if (fetch.kind === 'wait') return result ? primary.answerWait(key, result, content) : primary.loseWait(key)
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
    (_, number) => primary.onNotice('any', { keys: [pick(['many:*', 'me:1', 'doc:1'], number)], users: undefined }),
    (_, number) => primary.pass(number * 100),
    (_, number) => primary.freeze(number * 300),
    (which, number) => change(which, number % 2 === 0),
  ]

  function change(which: number, isBack: boolean) {
    const { name, fields, before } = pick(changes, which)
    primary.change(name, isBack ? before : fields)
  }

  return {
    ...primary,
    actions,
    leave: () => links.splice(0).forEach(primary.onLinkLost),
    answerAll(number: number) {
      while (primary.leases().length > 0) end(primary.leases()[0], contentOf(number), number)
    },
  }
}

test('whatever gateways want, and whenever they are lost, nothing of them is left', () => {
  const step = fc.tuple(fc.nat(18), fc.nat(15), fc.nat(30))
  fc.assert(
    fc.property(fc.array(step, { minLength: 60, maxLength: 200, size: 'max' }), steps => {
      const { actions, leave, answerAll, pass, primary, leased, kept, isTimerSet, freeze } = system()
      actions[0](0, 0)
      for (const [action, which, number] of steps) actions[action](which, number)

      leave()
      for (let rounds = 0; rounds < 5; rounds++) {
        answerAll(rounds)
        pass(2_000)
        // As long as the log is silent of a failure that it has told.
        freeze(61_000)
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
      expect(isTimerSet()).toBe(false)
    }),
    { numRuns: 60, endOnFailure: true },
  )
})
