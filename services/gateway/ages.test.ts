// How old a value is where a beat confirms it: whatever is asked, lost, slow or handed over, it looks no younger than it is.
import { createConfirmed } from '../../packages/backbone/gateway/values/values-backbone.ts'
import { randomNumbers } from '../../test/support/random.js'
import { setup } from '../fetcher/primary/test-support.ts'
import { createNamespaces } from './test-support.ts'
import { applyAnswer } from './topics/values/answers.ts'
import { createEntry } from './topics/values/cache.ts'
import { askedAtOf, endRefreshes, leaveNode } from './topics/values/staleness.ts'

const KEYS = ['doc:1', 'doc:2', 'doc:3']
const BEAT_MS = 1_000
/** A timer may fire, and an answer be taken from the node, so much too late. */
const LATE_MS = 60

/** What a gateway has of a key. `said`: how many gets. `waitsFor`: the one that is not answered. */
const newCopy = (key: string, namespace: any) => ({
  entry: createEntry(key, namespace, {} as any),
  isWatched: false,
  said: 0,
  waitsFor: undefined as number | undefined,
})

test.each(Array.from({ length: 30 }, (_, seed) => seed))('ages, seed %i', seed => {
  const random = randomNumbers(seed)
  const pick = <T>(list: readonly T[]) => list[Math.floor(random() * list.length)]
  const doc = { refreshMs: pick([5_000, 20_000]), maxAgeMs: pick([0, 1_000, 60_000]), timeoutMs: 8_000 }
  const primary = setup({ namespaces: { doc }, inFlightMax: pick([1, 2, 8]), random })
  const { now } = primary
  const namespace = createNamespaces({ doc }).fetched.get('doc')
  const transitMs = pick([0, 5, 40])
  const versions = new Map(KEYS.map(key => [key, 1]))
  /** The version that the backend had when it was asked, by lease. */
  const read = new WeakMap<object, number>()
  /** When the backend was last asked for each version of a key, or handed it over. */
  const asked = new Map<string, number>()
  const noteAsked = (key: string, version: string, atMs: number) =>
    asked.set(`${key} ${version}`, Math.max(atMs, asked.get(`${key} ${version}`) ?? 0))

  const gateways = ['a', 'b'].map(name => {
    const link = { id: name }
    const confirmed = createConfirmed({ now })
    const copies = new Map(KEYS.map(key => [key, newCopy(key, namespace)]))
    const wire: { atMs: number; run: () => void }[] = []
    const copyOf = (key: string) => copies.get(key) as ReturnType<typeof newCopy>

    function carry(run: () => void) {
      wire.push({ atMs: Math.max(wire.at(-1)?.atMs ?? 0, now() + 0.2 + random() * transitMs), run })
    }
    /** What it holds; nothing that was confirmed before counts from here on. */
    function position({ entry }: ReturnType<typeof newCopy>) {
      const ageMs = Math.max(0, now() - askedAtOf(entry))
      leaveNode(entry)
      return entry.value && { version: entry.value.version, order: entry.value.order, ageMs }
    }
    function get(key: string) {
      const copy = copyOf(key)
      copy.waitsFor = ++copy.said
      primary.get(name, key, position(copy))
    }
    return {
      name,
      copies,
      get,
      watch(key: string) {
        const copy = copyOf(key)
        if (copy.isWatched) return
        copy.isWatched = true
        primary.onWatch(name, { key, held: position(copy), quiet: true })
      },
      unwatch(key: string) {
        const copy = copyOf(key)
        if (!copy.isWatched) return
        copy.isWatched = false
        endRefreshes(copy.entry)
        primary.onUnwatch(name, key)
      },
      beat() {
        const heads = primary.headsFor?.(name) as { lagsMs: Record<string, number> } | undefined
        if (heads) carry(() => confirmed.take(link, heads.lagsMs))
      },
      send() {
        for (const answer of primary.take(name)) {
          const copy = copyOf(answer.key)
          const { said } = copy
          carry(() => {
            if (!copy.isWatched && copy.waitsFor === undefined) return
            const isBefore = copy.waitsFor !== undefined && said < copy.waitsFor
            if (!isBefore) copy.waitsFor = undefined
            const next = answer.type === 'failed' ? undefined : answer.next
            const given = next && !isBefore ? confirmed.of(link, answer.key) : undefined
            const change = applyAnswer(copy.entry, answer, now(), given)
            if (!copy.isWatched) endRefreshes(copy.entry)
            if (!change) get(answer.key)
          })
        }
      },
      receive() {
        while (wire.length > 0 && wire[0].atMs <= now()) wire.shift()?.run()
      },
    }
  })

  let beatAt = now() + BEAT_MS
  function look() {
    for (const key of primary.leased()) {
      const lease = primary.lease(key) as object
      if (!read.has(lease)) read.set(lease, versions.get(key) ?? 0)
    }
    for (const { receive } of gateways) receive()
    if (now() >= beatAt) {
      beatAt += BEAT_MS
      for (const { beat } of gateways) beat()
    }
    for (const { send } of gateways) if (random() < 0.7) send()
    for (const { name, copies } of gateways) {
      for (const [key, { entry, isWatched }] of copies) {
        const { version } = entry.value ?? {}
        if (!isWatched || version === undefined) continue
        const tooYoungMs = askedAtOf(entry) - (asked.get(`${key} ${version}`) ?? 0) - transitMs - LATE_MS
        if (tooYoungMs > 0) throw new Error(`${name} has ${key} ${tooYoungMs} ms too young at ${now()}`)
      }
    }
  }
  const pass = (ms: number) => primary.pass(ms, look)

  /** @param key under lease; no answer takes no time */
  function answer(key: string | undefined) {
    const lease = key === undefined ? undefined : (primary.lease(key) as any)
    if (!lease || now() - lease.fetch.sentAt < 1.2) return
    const version = `v${read.get(lease)}`
    noteAsked(key as string, version, lease.fetch.sentAt)
    if (lease.message.version === version) primary.current(key as string)
    else primary.value(key as string, version)
  }
  function handOver(key: string) {
    pass(1.3)
    const version = (versions.get(key) ?? 0) + 1
    versions.set(key, version)
    noteAsked(key, `v${version}`, now())
    primary.handOver(key, `v${version}`)
    pass(1.3)
  }
  for (let step = 0; step < 250; step++) {
    const gateway = pick(gateways)
    const key = pick(KEYS)
    const leased = pick(primary.leased()) as string | undefined
    const rarely = random() < 0.25
    const acts: (() => unknown)[] = [
      () => gateway.watch(key),
      () => rarely && gateway.unwatch(key),
      () => gateway.get(key),
      () => versions.set(key, (versions.get(key) ?? 0) + 1),
      () => versions.set(key, pick([1, 2])),
      () => primary.onRefresh(key),
      () => handOver(key),
      () => answer(leased),
      () => answer(leased),
      () => answer(leased),
      () => rarely && leased && primary.fail(leased, pick(['backend_error', 'not_found', 'backend_timeout'])),
      () => rarely && leased && primary.lose(leased),
      () => pass(0.3 + random()),
      () => pass(random() * 300),
      () => pass(random() * 3_000),
      () => pass(random() * 6_000),
    ]
    pick(acts)()
    look()
  }
})
