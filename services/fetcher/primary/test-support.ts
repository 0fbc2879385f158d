// For tests: a primary on a clock that the test turns, with a backend and workers that answer when the test says so.

import type { Answer, Credentials, Held } from '@keycast/backbone'
import type { ErrorCode } from '@keycast/protocol'
import type { Containment, LiveNamespaces, Log, Namespace, Payer, ReadNamespaces } from '@keycast/service'
import { realWorld } from '@keycast/service'
import type { Outcome } from '@keycast/service/notify'
import type { LeaseResult, Result, Work } from '../worker-messages.ts'
import { createChanges } from './changes/changes.ts'
import type { openEventStream } from './changes/event-stream.ts'
import { checkInvariants } from './check-invariants.fixture.ts'
import { createPrimary } from './primary.ts'
import { createTimerWheel, TICK_MS } from './timing/timer-wheel.ts'

export type Setup = ReturnType<typeof setup>

/** A primary with more keys than this is checked after every second, third, … call. */
const KEYS_CHECKED_ALWAYS = 30

const namespaceOf = (name: string, own: Partial<Namespace>): Namespace => ({
  name,
  source: 'http',
  urlFor: id => `http://backend/${name}/${id}`,
  origin: 'http://backend',
  headers: { authorization: 'secret' },
  maxAgeMs: 1_000,
  refreshMs: 1_000,
  timeoutMs: 2_000,
  bytesMax: 1_000_000,
  ...own,
})

interface Wanted {
  key: string
  held?: Held
  payer?: Payer
  quiet?: boolean
  credentials?: Credentials
}

interface Options {
  namespaces?: Record<string, Partial<Namespace>>
  /** In their place: those of a keycast.yaml that changes. */
  live?: LiveNamespaces
  /** The backends' streams of changes. */
  openStream?: typeof openEventStream
  inFlightMax?: number
  cacheBytesMax?: number
  /** Leases the workers take. */
  credit?: number
  random?: () => number
  containment?: Containment
  tokens?: Parameters<typeof createPrimary>[0]['tokens']
  /** The time it takes to note that a link is due something. */
  markDueMs?: number
  /** How the backend takes what it is told. */
  backendTakes?: () => Outcome
  /** In milliseconds since 1970; as the test's clock unless given. */
  wallNow?: () => number
}

export function setup({
  namespaces = { doc: {} },
  live,
  openStream,
  inFlightMax = 256,
  cacheBytesMax = 2 ** 30,
  credit = Number.POSITIVE_INFINITY,
  random = () => 0.5,
  containment,
  tokens = { authorizationOf: () => undefined, refused() {} },
  markDueMs = 0,
  backendTakes = () => ({ kind: 'taken' }),
  wallNow,
}: Options = {}) {
  let at = 1_000_000
  const now = () => at
  let turn = () => {}
  let isTicking = false
  const wheel = createTimerWheel({
    now,
    every: (_, tick) => {
      turn = tick
      isTicking = true
      return () => {
        isTicking = false
      }
    },
  })
  const byName = new Map(Object.entries(namespaces).map(([name, own]) => [name, namespaceOf(name, own)]))
  /** Leases not yet answered. */
  const leased: { fetch: any; message: Work; body: string | undefined }[] = []
  /** The times of each key's leases. */
  const asked = new Map<string, number[]>()
  /** The keys of which each link is due the latest state. */
  const due = new Map<string, Set<string>>()
  const met: Record<string, number> = { memory: 0, plan: 0, coalesced: 0, fetched: 0 }
  /** How many keys each request for many had. */
  const batched: number[] = []
  /** What the log was told. */
  const logged: any[] = []
  const recovered: any[] = []
  /** The code of each want that was refused or ended. */
  const refused: string[] = []
  /** Each change's wait for a link to take it, in milliseconds. */
  const relayed: number[] = []
  /** What became of each value that was handed over. */
  const takings: string[] = []
  /** How waits ended. */
  const waited: string[] = []
  /** The reasons why users' own values were dropped. */
  const ownEnded: string[] = []

  /** What the backend was told of viewers. */
  const told: any[] = []

  const markDue = (link: string, key: string) => {
    at += markDueMs
    const keys = due.get(link) ?? new Set()
    due.set(link, keys.add(key))
  }
  const world = {
    ...realWorld,
    every(ms: number, run: () => void) {
      const again = () => {
        timer = wheel.set(now() + ms, again)
        run()
      }
      let timer = wheel.set(now() + ms, again)
      return () => wheel.cancel(timer)
    },
    after: (ms: number, run: () => void) => {
      const timer = wheel.set(now() + ms, run)
      return () => wheel.cancel(timer)
    },
    namespaces: live?.fetched ?? { get: (name: string) => byName.get(name), names: [...byName.keys()] },
    markDue,
    wheel,
    tokens,
    log: {
      warn: (line: object) => logged.push(line),
      info: (line: object) => recovered.push(line),
    } as unknown as Pick<Log, 'warn' | 'info'>,
    now,
    wallNow: wallNow ?? now,
    hostNow: now,
    random,
  }
  const streamMetrics = { event() {}, opened() {} }

  const primary = createPrimary({
    ...world,
    pool: {
      hasCredit: () => leased.length < credit,
      lease(_, fetch, message, body) {
        leased.push({ fetch, message, body: body?.toString() })
        asked.set(message.key, [...(asked.get(message.key) ?? []), at])
      },
    },
    metrics: {
      wanted: how => {
        met[how]++
      },
      refused: code => refused.push(code),
      started() {},
      ended() {},
      batched: keys => batched.push(keys),
      waited: (_, end) => waited.push(end),
      reissued() {},
      handedOver: outcome => takings.push(outcome),
      answered() {},
      relayed: tookMs => relayed.push(tookMs),
      ownEnded: why => ownEnded.push(why),
      notified() {},
      workerLost() {},
      lateResult() {},
    },
    settings: { inFlightMax, cacheBytesMax, waitsMax: 10_000 },
    async post(_, body) {
      told.push(JSON.parse(body))
      return backendTakes()
    },
    changes: openStream ? createChanges({ ...world, openStream, metrics: streamMetrics }) : new Map(),
    containment,
  })
  const events = checked(primary.hubEvents)
  const { ended, lost, startAll } = checked(primary.fetches)
  const { handOver: primaryHandOver } = checked({ handOver: primary.handOver })

  /** The same functions, each of which must leave the primary as it ought to be. */
  function checked<T extends Record<string, any>>(functions: T): T {
    const wrapped = Object.entries(functions).map(([name, run]) => [
      name,
      (...values: any[]) => {
        const returned = run(...values)
        check()
        return returned
      },
    ])
    return Object.fromEntries(wrapped)
  }

  let checks = 0
  /** With many keys not after each call: a check looks at all of them. */
  function check() {
    const { keys } = primary.table.stats()
    if (++checks % Math.ceil((keys + 1) / KEYS_CHECKED_ALWAYS) === 0) checkInvariants(primary)
  }

  /** @returns the oldest lease of the key, which is over now */
  function end(key: string, is: (lease: { message: Work }) => boolean = isFetch): any {
    const index = leased.findIndex(lease => lease.message.key === key && is(lease))
    if (index === -1) throw new Error(`${key} is not leased`)
    return leased.splice(index, 1)[0].fetch
  }

  const setup = {
    ...events,
    primary,
    /** Of the test's clock, for parts beside it. */
    world,
    now,
    asked: (key: string) => asked.get(key)?.length ?? 0,
    askedAt: (key: string) => asked.get(key) ?? [],
    met,
    refused,
    logged,
    recovered,
    batched,
    /** How many keys are counted as kept fresh. */
    kept: () => [...primary.sources.values()].reduce((sum, { keptKeys }) => sum + keptKeys, 0),
    relayed,
    ownEnded,
    isTimerSet: () => isTicking,
    /** As another keycast.yaml does: the namespace is the same object. */
    change(name: string, fields: Partial<Namespace>) {
      Object.assign(byName.get(name) as Namespace, fields)
      primary.reconfigure({ request: new Set([name]), times: new Map([[name, { beforeMs: 1_000 }]]) })
      check()
    },
    takeOver(next: ReadNamespaces) {
      if (live) primary.reconfigure(live.take(next))
      check()
    },
    takings,
    told,
    waited,
    /** Keys under lease, in order. */
    leased: () => leased.map(({ message }) => message.key),
    /** All under way, the oldest first. */
    leases: () => leased,
    lease: (key: string) => leased.find(({ message }) => message.key === key),
    onRefresh: (key: string) => events.onNotice('a', { keys: [key] }),
    lagsMs: primary.lagsMs,
    onWatch: (link: string, { key, held, payer, quiet, credentials }: Wanted) =>
      events.onWatch(link, { key, position: held, payload: { quiet, ...credentials }, payer }),
    watch: (link: string, key: string, held?: Held, credentials?: Credentials) =>
      events.onWatch(link, { key, position: held, payload: credentials }),
    get: (link: string, key: string, held?: Held, credentials?: Credentials) =>
      events.onGet(link, { key, position: held, payload: credentials }),
    cancelGet: events.onCancelGet,
    /** @param hasLeft nobody at its gateway watches the key; without it another node may be asked for it */
    onUnwatch: (link: string, key: string, hasLeft = true) => events.onUnwatch(link, key, hasLeft),

    /** A result that ends no lease: of another key of a batch. */
    part: (fetch: any, result: LeaseResult, body?: Buffer) => ended(fetch, result, body),

    /** Ends the key's lease. */
    answer: (key: string, result: Result, body?: Buffer, delta?: Buffer) => ended(end(key), result, body, delta),
    /** Those under way. */
    waits: () => leased.filter(isWait),
    /** Ends a wait for a change of the key. */
    answerWait: (key: string, result: LeaseResult, body?: Buffer) =>
      checked(primary.waits).ended(end(key, isWait), { askedAt: at, ...result }, body, undefined),
    loseWait: (key: string) => checked(primary.waits).lost(end(key, isWait)),
    value(
      key: string,
      version: string,
      { body = Buffer.from(version), delta, ...more }: Partial<LeaseResult> & { body?: Buffer; delta?: Buffer } = {},
    ) {
      const content = { kind: 'value', version, contentType: 'application/json', format: 'json' }
      const result = { ...content, status: 200, store: true, ...more } as Result
      setup.answer(key, result, body, delta)
    },
    current: (key: string, more?: object) => setup.answer(key, { kind: 'current', status: 304, store: true, ...more }),
    fail: (key: string, code: ErrorCode, more?: object) =>
      setup.answer(key, { kind: 'failed', code, message: code, ...more }),
    /** The worker that has the key's lease dies. */
    lose(key: string) {
      lost(end(key))
      startAll()
    },

    /** The backend hands over a value; without a version, it says that there is none. */
    handOver(key: string, version: string | undefined, rank?: number, isRepeated?: boolean) {
      const content =
        version === undefined
          ? undefined
          : { version, contentType: 'text/plain', format: 'text' as const, body: Buffer.from(version) }
      return primaryHandOver({ key, content, rank, isRepeated })
    },

    /** The answers that a link with credit is sent now. */
    take(link: string): Answer[] {
      const answers: Answer[] = []
      const keys = due.get(link) ?? new Set()
      for (const key of keys) {
        keys.delete(key)
        answers.push(...events.answersFor(link, key, 0).answers)
      }
      return answers
    },
    /** The same in short. */
    sent: (link: string) => setup.take(link).map(short),

    /** @param each after each tick */
    pass(ms: number, each: () => void = () => {}) {
      for (const until = at + ms; at < until; ) {
        at = Math.min(until, at + TICK_MS)
        turn()
        check()
        each()
      }
    },
    /** Time passes, and nothing here runs. */
    freeze(ms: number) {
      at += ms
      turn()
      check()
    },
  }
  return setup
}

export function short(answer: Answer) {
  return answer.type === 'failed' ? answer.code : `${answer.type} ${answer.version}`
}

const isWait = ({ message }: { message: Work }) => message.waitSeconds !== undefined

const isFetch = (lease: { message: Work }) => !isWait(lease)

export const keysOf = (count: number) => Array.from({ length: count }, (_, id) => `doc:${id}`)

/** A primary with watched keys of one backend that is well. */
export function watched(keys: string[], options?: Parameters<typeof setup>[0]) {
  const primary = setup(options)
  for (const key of keys) {
    primary.watch('a', key)
    primary.value(key, 'v1')
  }
  primary.take('a')
  return primary
}

/** Answers all that is leased. */
export const answering =
  ({ leased }: Setup, answer: (key: string) => void) =>
  () => {
    for (const key of leased()) answer(key)
  }
