// Everything that can happen to a few keys, in random order, and the invariants that hold all the same.
import type { Answer } from '@keycast/backbone'
import { randomNumbers } from '../../../test/support/random.js'
import { isKept, isWanted, watcherOf } from './keys/interest.ts'
import { setup } from './test-support.ts'

const RUNS = 60
const STEPS = 300
const links = ['a', 'b', 'c']
const keys = ['doc:1', 'doc:2', 'doc:3', 'other:1']

/** A primary, and a backend whose keys change just before a refresh says so. */
function world(random: () => number) {
  const pick = (choices: any[]) => choices[Math.floor(random() * choices.length)]
  const primary = setup({
    inFlightMax: pick([1, 2, 4]),
    credit: 4,
    random,
    namespaces: {
      doc: { refreshMs: pick([0, 300]), maxAgeMs: pick([0, 500]) },
      other: { origin: 'http://other', refreshMs: 0 },
    },
  })
  /** The number of changes of each key. */
  const changes = new Map(keys.map(key => [key, 0]))
  /** That number when the backend was asked, by lease. */
  const read = new WeakMap<object, number>()
  /** Gets without an answer, with that number when they were made. */
  const gets = new Map<string, number>()
  const tooOld: Answer[] = []
  /** What each link that watches was last told of a key. */
  const told = new Map<string, string>()

  function noteReads() {
    for (const key of primary.leased()) {
      const lease = primary.lease(key)
      if (lease && !read.has(lease)) read.set(lease, changes.get(key) ?? 0)
    }
  }

  function change(key: string) {
    changes.set(key, (changes.get(key) ?? 0) + 1)
    primary.onRefresh(key)
  }

  const world = {
    primary,
    gets,
    tooOld,
    /** @param key under lease */
    answer: (key: string) =>
      primary.value(key, `v${read.get(primary.lease(key) as object)}`, { store: random() < 0.9 }),
    take(link: string) {
      for (const answer of primary.take(link)) {
        const since = gets.get(link + answer.key) ?? 0
        gets.delete(link + answer.key)
        told.set(link + answer.key, answer.type === 'failed' ? answer.code : answer.version)
        if (answer.type !== 'failed' && Number(answer.version.slice(1)) < since) tooOld.push(answer)
      }
    },
    pass: (ms: number) => primary.pass(ms, noteReads),
    step() {
      const [link, key] = [pick(links), pick(keys)]
      const leased = pick(primary.leased())
      const happens = {
        watch() {
          told.delete(link + key)
          primary.watch(link, key)
        },
        unwatch: () => primary.onUnwatch(link, key),
        get() {
          gets.set(link + key, changes.get(key) ?? 0)
          primary.get(link, key)
        },
        cancel() {
          gets.delete(link + key)
          primary.cancelGet(link, key)
        },
        change: () => change(key),
        handOver() {
          changes.set(key, (changes.get(key) ?? 0) + 1)
          primary.handOver(key, `v${changes.get(key)}`)
        },
        loseLink() {
          for (const each of keys) gets.delete(link + each)
          primary.onLinkLost(link)
        },
        take: () => world.take(link),
        answer: () => leased && world.answer(leased),
        fail: () => leased && primary.fail(leased, pick(['backend_error', 'backend_throttled', 'not_found'])),
        patience: () => leased && primary.fail(leased, 'backend_error', { retryAfterMs: 2_000 }),
        loseWorker: () => leased && primary.lose(leased),
        time: () => world.pass(pick([0.3, 10, 200, 1_100])),
      }
      const often = ['get', 'get', 'change', 'answer', 'answer', 'take']
      happens[pick([...Object.keys(happens), ...often]) as keyof typeof happens]()
      noteReads()
    },
    /** Every key changes again and again, while links read. */
    changeAll() {
      for (let i = 0; i < 5; i++) {
        for (const key of keys) change(key)
        noteReads()
        for (const key of primary.leased()) world.answer(key)
        for (const link of links) world.take(link)
        world.pass(0.3)
      }
    },
    /** @returns the watches of which the link was not told the latest */
    behind() {
      const watches = links.flatMap(link => keys.map(key => ({ link, key })))
      return watches.filter(({ link, key }) => {
        const entry = primary.primary.table.get(key)
        return entry && watcherOf(entry, link) && told.get(link + key) !== `v${changes.get(key)}`
      })
    },
    /** A backend that is well, and links that read. */
    calmDown() {
      for (let i = 0; i < 100; i++) {
        for (const key of primary.leased()) world.answer(key)
        for (const link of links) world.take(link)
        world.pass(50)
      }
    },
    kept() {
      const entries = keys.flatMap(key => primary.primary.table.get(key) ?? [])
      return entries.filter(isKept).length
    },
  }
  return world
}

test('every get is answered, none by what was read before a change that came before it; a watch hears of the latest; links that are gone leave nothing', () => {
  for (let run = 0; run < RUNS; run++) {
    const { primary, gets, tooOld, step, changeAll, behind, calmDown, kept } = world(randomNumbers(run))
    for (let i = 0; i < STEPS; i++) {
      step()
      const counted = primary.kept()
      if (counted !== kept()) throw new Error(`run ${run}, step ${i}: ${counted} keys are counted as kept of ${kept()}`)
    }
    changeAll()
    calmDown()
    expect([run, tooOld, [...gets.keys()], behind()]).toEqual([run, [], [], []])

    for (const link of links) primary.onLinkLost(link)
    calmDown()
    expect(primary.leased()).toEqual([])
    expect(primary.kept()).toBe(0)
    for (const key of keys) {
      const entry = primary.primary.table.get(key)
      if (entry) expect([isWanted(entry), entry.fetch]).toEqual([false, undefined])
    }
  }
})
