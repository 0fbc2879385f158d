import type { Batch } from '@keycast/service'
import { randomNumbers } from '../../../../test/support/random.js'
import type { Entry } from '../keys/entry.ts'
import { keysOf, setup as setupPrimary } from '../test-support.ts'

/** A namespace `doc` that is asked for many keys at once. */
function setup(
  max = 10,
  { urlBytesMax = 1_000, ...options }: Parameters<typeof setupPrimary>[0] & { urlBytesMax?: number } = {},
) {
  const primary = setupPrimary({
    ...options,
    namespaces: {
      doc: {
        batch: {
          max,
          items: '/items',
          id: '/id',
          urlFor: ids => `http://backend/docs?ids=${ids.join(',')}`,
          idsBytesMax: urlBytesMax,
          bytesOf: id => id.length,
        },
      },
      ...options.namespaces,
    },
  })
  const BATCH = 'doc:'
  const requests = () => primary.leases().map(({ message }) => message.batch?.keys.map(({ key }) => key))

  /** Ends the oldest request with what each key's item is; one that is left out is missing. */
  function items(items: Record<string, string>) {
    const [{ fetch, message }] = primary.leases()
    const keys = message.batch?.keys.map(({ key }) => key) ?? []
    const resultOf = (key: string) =>
      items[key] === undefined
        ? ({ kind: 'failed', code: 'not_found', message: 'missing', status: 200 } as const)
        : ({
            kind: 'value',
            version: items[key],
            contentType: 'x/y',
            format: 'json',
            status: 200,
            store: true,
          } as const)
    keys.slice(1).forEach((key, index) => {
      primary.part(fetch, { nth: index + 1, ...resultOf(key) }, Buffer.from(key))
    })
    primary.answer(BATCH, resultOf(keys[0]), Buffer.from(keys[0]))
  }

  /** Ends the oldest request with values of all. */
  function all(version = 'v1') {
    const [keys = []] = requests()
    items(Object.fromEntries(keys.map(key => [key, version])))
  }

  return {
    ...primary,
    /** The keys of each request under way. */
    requests,
    items,
    all,
    failAll: (code: Parameters<typeof primary.fail>[1], more?: object) => primary.fail(BATCH, code, more),
    loseAll: () => primary.lose(BATCH),
  }
}

const many = keysOf(25)

test('keys that are wanted together are asked for together, as many as may be in one request', () => {
  const { watch, requests, pass, all, sent, batched } = setup()
  for (const key of many) watch('a', key)
  expect(requests()).toEqual([many.slice(0, 10), many.slice(10, 20)])
  pass(10)
  expect(requests()).toEqual([many.slice(0, 10), many.slice(10, 20), many.slice(20)])
  for (let i = 0; i < 3; i++) all()
  expect(sent('a')).toEqual(many.map(() => 'value v1'))
  expect(batched).toEqual([10, 10, 5])
})

test('a request for many takes one place of its backend, and the others of that backend go on', () => {
  const { watch, leased, pass, primary, all } = setup(10, { inFlightMax: 4, namespaces: { other: {} } })
  for (const key of many) watch('a', key)
  pass(10)
  for (const key of ['other:1', 'other:2']) watch('a', key)
  expect(leased()).toEqual(['doc:', 'doc:', 'doc:', 'other:1'])
  expect(primary.sources.get('doc')?.queue.inFlight()).toBe(3)
  all()
  expect(leased()).toEqual(['doc:', 'doc:', 'other:1', 'other:2'])
})

test('a key that is alone is asked for in a request of one', () => {
  const { watch, requests, pass } = setup()
  watch('a', 'doc:1')
  pass(10)
  expect(requests()).toEqual([['doc:1']])
})

test('while requests are under way a key waits some milliseconds for company', () => {
  const { watch, requests, pass } = setup()
  watch('a', 'doc:0')
  pass(10)
  watch('a', 'doc:1')
  watch('a', 'doc:2')
  expect(requests()).toHaveLength(1)
  pass(10)
  expect(requests()).toEqual([['doc:0'], ['doc:1', 'doc:2']])
})

test('a URL has no more ids than fit, and the next request has the others', () => {
  const { watch, requests, pass } = setup(10, { urlBytesMax: 6 })
  for (const id of ['111', '222', '333', '444']) watch('a', `doc:${id}`)
  pass(10)
  expect(requests()).toEqual([
    ['doc:111', 'doc:222'],
    ['doc:333', 'doc:444'],
  ])
})

test('a lease names the version and the use of a delta of each key, and no validator', () => {
  const { watch, get, pass, all, leases } = setup()
  watch('a', 'doc:1')
  get('a', 'doc:2')
  pass(10)
  all()
  pass(1_200)
  get('a', 'doc:2')
  pass(10)
  const keys = leases().flatMap(({ message }) => message.batch?.keys ?? [])
  expect(keys).toContainEqual({ key: 'doc:1', id: '1', version: 'v1', delta: true })
  expect(leases()[0].message).toMatchObject({ key: 'doc:', timeoutMs: 2_000, delta: false })
  expect(leases()[0].message.etag).toBeUndefined()
})

test('keys come up together: a thousand that are watched at any time take few requests for each refresh', () => {
  let drawn = 0
  const { watch, pass, requests, all, batched } = setup(100, { random: () => (drawn++ * 0.618) % 1 })
  const keys = keysOf(1_000)
  for (const key of keys) {
    watch('a', key)
    if (requests().length > 0) all()
  }
  const answerAll = () => {
    while (requests().length > 0) all()
  }
  pass(1_000, answerAll)
  batched.length = 0
  pass(1_000, answerAll)
  expect(batched.reduce((sum, count) => sum + count, 0)).toBe(1_000)
  expect(batched.length).toBeLessThanOrEqual(16)
})

test('an item that is missing is that key alone, and says nothing of the others', () => {
  const { watch, pass, items, sent } = setup()
  for (const key of ['doc:1', 'doc:2', 'doc:3']) watch('a', key)
  pass(10)
  items({ 'doc:2': 'v2', 'doc:3': 'v3' })
  expect(sent('a').sort()).toEqual(['not_found', 'value v2', 'value v3'])
})

test('a request that fails for overload fails all its keys, and counts as one', () => {
  const { watch, pass, failAll, take, primary, requests } = setup()
  for (const key of many) watch('a', key)
  pass(10)
  for (let i = 0; i < 3; i++) failAll('backend_error', { status: 503, retryAfterMs: 3_000 })
  const answers = take('a')
  expect(answers).toHaveLength(25)
  for (const answer of answers) expect(answer).toMatchObject({ code: 'backend_error', retryAfterMs: 3_000 })
  expect(primary.sources.get('doc')?.breaker.isOpen()).toBe(false)
  pass(2_900)
  expect(requests()).toEqual([])
  pass(200)
  expect(requests()).not.toEqual([])
})

test.each(['backend_refused', 'backend_error', 'too_large', 'invalid_content', 'not_found'] as const)(
  'one key that makes its request end with %s harms no other, and is asked for alone from then on',
  code => {
    const { watch, requests, pass, failAll, all, sent, primary } = setup(100)
    const keys = keysOf(100)
    for (const key of keys) watch('a', key)
    pass(10)
    let asked = 0
    function answer() {
      asked++
      const [of = []] = requests()
      if (of.includes('doc:42')) failAll(code, { status: code === 'backend_error' ? 500 : 400 })
      else all()
    }
    while (requests().length > 0) answer()
    expect(asked).toBe(21)
    expect(sent('a').sort()).toEqual([code, ...keys.slice(1).map(() => 'value v1')].sort())

    let bad = 0
    pass(10_000, () => {
      while (requests().length > 0) {
        const [of = []] = requests()
        if (of.includes('doc:42')) {
          expect(of).toEqual(['doc:42'])
          bad++
        }
        answer()
      }
    })
    expect(bad).toBeGreaterThan(0)
    expect(primary.sources.get('doc')?.breaker.isOpen()).toBe(false)
  },
)

test('a key that was asked for alone goes with others again once it succeeds', () => {
  const { watch, requests, pass, failAll, all } = setup()
  watch('a', 'doc:1')
  pass(10)
  failAll('backend_refused', { status: 400 })
  watch('a', 'doc:2')
  pass(10)
  expect(requests()).toEqual([['doc:2']])
  all()
  while (requests().length === 0) pass(10)
  expect(requests()).toContainEqual(['doc:1'])
  while (requests().length > 0) all()
  const met: string[][] = []
  pass(2_500, () => {
    for (const keys of requests()) {
      if (keys) met.push(keys)
      all()
    }
  })
  expect(met.some(keys => keys.length === 2)).toBe(true)
})

test('a backend that refuses everything is not asked for each key: its breaker opens before', () => {
  const { watch, requests, pass, failAll, batched, sent } = setup(100, { inFlightMax: 1 })
  for (const key of keysOf(1_000)) watch('a', key)
  pass(10)
  while (requests().length > 0) failAll('backend_error', { status: 500 })
  expect(batched.length).toBeLessThan(30)
  expect(sent('a').filter(told => told === 'backend_unavailable').length).toBeGreaterThan(900)
})

test('a refused token is no key of a batch', () => {
  const { watch, pass, failAll, sent, requests } = setup()
  for (const key of many.slice(0, 10)) watch('a', key)
  pass(10)
  failAll('backend_refused', { status: 401 })
  expect(requests()).toEqual([])
  expect(sent('a')).toHaveLength(10)
})

test('the keys of a lost worker are each asked for alone, once: one of them may have ended it', () => {
  const { watch, pass, loseAll, requests, all, sent, get, cancelGet, primary } = setup()
  for (const key of ['doc:1', 'doc:2', 'doc:3']) watch('a', key)
  get('a', 'doc:4')
  pass(10)
  cancelGet('a', 'doc:4')
  loseAll()
  expect(requests()).toEqual([['doc:1'], ['doc:2'], ['doc:3']])
  expect(primary.table.get('doc:4')).toBeUndefined()
  loseAll()
  all()
  all()
  expect(sent('a')).toEqual(['fetcher_timeout', 'value v1', 'value v1'])
})

test('keys that nobody wants any more go along with no part of a request', () => {
  const { get, cancelGet, pass, failAll, requests, primary, all } = setup(10, { inFlightMax: 1 })
  for (const key of many.slice(0, 10)) get('a', key)
  pass(10)
  get('a', 'doc:last')
  failAll('too_large', { status: 200 })
  // One part is under way, and the others wait.
  expect(requests()).toEqual([['doc:0']])
  for (const key of many.slice(1, 10)) cancelGet('a', key)
  all()
  pass(10)
  expect(requests()).toEqual([['doc:last']])
  expect(primary.table.get('doc:5')).toBeUndefined()
})

test('the rest of a part goes on where nobody wants its first key any more', () => {
  const { get, cancelGet, pass, failAll, requests, all } = setup(20, { inFlightMax: 1 })
  for (const key of keysOf(20)) get('a', key)
  pass(10)
  failAll('too_large', { status: 200 })
  expect(requests()).toEqual([['doc:0', 'doc:1']])
  cancelGet('a', 'doc:2')
  const asked = []
  for (; requests().length > 0; all()) asked.push(requests()[0])
  expect(asked).toContainEqual(['doc:3'])
})

test('a result that comes after its lease went to another worker changes nothing', () => {
  const { watch, pass, loseAll, leases, part, sent, requests } = setup()
  for (const key of ['doc:1', 'doc:2']) watch('a', key)
  pass(10)
  const [{ fetch }] = leases()
  loseAll()
  expect(requests()).toHaveLength(2)
  part(fetch, { nth: 1, kind: 'current', status: 200 })
  expect(sent('a')).toEqual([])
})

test('accounts take turns within a request', () => {
  const { onWatch, watch, pass, requests, all } = setup(10, { inFlightMax: 1 })
  watch('a', 'doc:first')
  pass(10)
  for (const key of keysOf(50)) onWatch('a', { key, payer: 'a1.u1' })
  onWatch('a', { key: 'doc:modest', payer: 'a2.u2' })
  all()
  expect(requests()[0]).toContain('doc:modest')
})

test('where keycast.yaml has no batch any more, keys that were to go together are asked for one by one', () => {
  const { get, pass, failAll, requests, primary, all, leased, value } = setup(20, { inFlightMax: 1 })
  const keys = keysOf(20)
  for (const key of keys) get('a', key)
  pass(10)
  failAll('too_large', { status: 200 })
  expect(requests()).toEqual([['doc:0', 'doc:1']])

  const { namespace } = primary.table.get('doc:0') as Entry
  delete namespace.batch
  primary.reconfigure({ request: new Set(['doc']), times: new Map() })
  all()

  const asked: string[] = []
  for (let [key] = leased(); key !== undefined; [key] = leased()) {
    asked.push(key)
    value(key, 'v1')
  }
  expect(asked.sort()).toEqual(keys.slice(2).sort())
})

test('where keycast.yaml has another max, the next request has it', () => {
  const { get, watch, pass, requests, primary, all } = setup(20, { inFlightMax: 1 })
  watch('a', 'doc:first')
  pass(10)
  const { namespace } = primary.table.get('doc:first') as Entry
  Object.assign(namespace.batch as Batch, { max: 5 })
  primary.reconfigure({ request: new Set(['doc']), times: new Map() })
  for (const key of keysOf(6)) get('a', key)
  all()
  expect(requests()[0]).toHaveLength(5)
})

test('whatever happens to requests for many, every get is answered, and nothing is left behind', () => {
  const links = ['a', 'b']
  const keys = keysOf(12)
  for (let run = 0; run < 15; run++) {
    const random = randomNumbers(run)
    const pick = <T>(choices: readonly T[]) => choices[Math.floor(random() * choices.length)]
    const primary = setup(pick([2, 3, 5]), { inFlightMax: pick([1, 2]), random, urlBytesMax: pick([4, 1_000]) })
    const waiting = new Set<string>()
    const take = () => {
      for (const link of links) for (const { key } of primary.take(link)) waiting.delete(`${link} ${key}`)
    }
    const step = () => {
      const [link, key] = [pick(links), pick(keys)]
      const isLeased = primary.requests().length > 0
      const happens = [
        () => primary.watch(link, key),
        () => primary.onUnwatch(link, key),
        () => {
          waiting.add(`${link} ${key}`)
          primary.get(link, key)
        },
        () => {
          waiting.delete(`${link} ${key}`)
          primary.cancelGet(link, key)
        },
        () => primary.onRefresh(key),
        () => isLeased && primary.all(`v${Math.floor(random() * 3)}`),
        () => isLeased && primary.items({}),
        () => isLeased && primary.failAll(pick(['backend_error', 'too_large', 'backend_timeout']), { status: 500 }),
        () => isLeased && primary.failAll('backend_throttled', { status: 429, retryAfterMs: 1_000 }),
        () => isLeased && primary.loseAll(),
        () => primary.pass(pick([10, 300])),
        take,
      ]
      pick(happens)()
    }
    for (let i = 0; i < 300; i++) step()
    const calmDown = () => {
      for (let i = 0; i < 100; i++) {
        while (primary.requests().length > 0) primary.all()
        take()
        primary.pass(50)
      }
    }
    calmDown()
    expect([run, [...waiting]]).toEqual([run, []])
    for (const link of links) primary.onLinkLost(link)
    calmDown()
    expect([run, primary.requests(), primary.kept()]).toEqual([run, [], 0])
  }
})

test('where a request fails as a whole, keys that nobody wants any more are not asked for again', () => {
  const { watch, onUnwatch, pass, failAll, requests } = setup()
  for (const key of keysOf(4)) watch('a', key)
  pass(10)
  for (const key of ['doc:0', 'doc:2']) onUnwatch('a', key)
  pass(1_100)
  failAll('backend_refused', { status: 400 })
  pass(10)
  expect(requests()).toEqual([['doc:1'], ['doc:3']])
})

test('what a worker says of a key a second time ends no later fetch of it', () => {
  const { watch, pass, leases, part, onRefresh, requests, failAll } = setup()
  for (const key of keysOf(2)) watch('a', key)
  pass(10)
  const [{ fetch }] = leases()
  const missing = { kind: 'failed', code: 'not_found', message: 'missing', status: 200 } as const
  part(fetch, { nth: 1, ...missing })
  onRefresh('doc:1')
  part(fetch, { nth: 1, ...missing })
  failAll('backend_error')
  pass(10)
  expect(requests()).toEqual([['doc:1']])
})
