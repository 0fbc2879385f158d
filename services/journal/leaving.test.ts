// Gateways that come, want anything in any order and are lost in the middle of it, while the log is slow or fails, the
// backend takes no calls and keycast.yaml changes: nothing of them is left, and the backend is told of each message.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { membersKey, type NodeEvents, pushedKey, type Rooms } from '@keycast/backbone'
import { versionOf } from '@keycast/protocol'
import { realWorld, type World } from '@keycast/service'
import type { Outcome } from '@keycast/service/notify'
import { createTestWorld, failed, refused, taken } from '@keycast/service/notify/test-world'
import fc from 'fast-check'
import { startValkey } from '../../test/support/valkey.ts'
import { createJournal } from './journal.ts'
import { openLmdbLog } from './log/lmdb/lmdb.ts'
import { EMPTY_MS, ID_MS, type Log } from './log/log.ts'
import { createMemoryLog } from './log/memory/memory.ts'
import { openValkeyLog } from './log/valkey/valkey.ts'

const silent: any = { debug() {}, info() {}, warn() {}, error() {} }
const noMetric = () => () => {}

const history = { messages: 4, ageMs: 30_000, bytes: 1e9 }
const notify = { url: 'http://127.0.0.1', secretFiles: [], timeoutMs: 1_000, messages: true, members: true }
const room: any = { notify, history, bytesMax: 1_000, publish: 'client', members: 'named', names: 'unique' }
const hall: any = { ...room, members: 'counted', names: 'any', notify: { ...notify, members: false } }
const price: any = { name: 'price', source: 'pushed', bytesMax: 1_000 }
/** What a keycast.yaml names. */
const files: Record<string, any>[] = [
  { room, hall, price },
  { room: { ...room, members: 'none' }, hall: { ...hall, notify: undefined } },
]

const rooms = ['room:1', 'hall:1', 'room:2']
const values = ['price:1', 'price:2'].map(pushedKey)
const users = ['ann', 'bob', 'eve']

/** What the log does waits until the test ends it, where it says so. */
function slowed(log: Log) {
  const held: ((fails: boolean) => void)[] = []
  const slow = { is: false }
  /** What the log itself has. */
  let underWay = 0
  const late =
    (run: (...given: any[]) => any, isHeld: boolean) =>
    async (...given: any[]) => {
      if (slow.is && isHeld) {
        const wait = (resolve: () => void, reject: (error: Error) => void) =>
          held.push(fails => (fails ? reject(new Error('away')) : resolve()))
        await new Promise<void>(wait)
      }
      underWay++
      try {
        return await run(...given)
      } finally {
        underWay--
      }
    }
  const allLate = <T extends object>(functions: T, names: (keyof T)[], isHeld = true): T => {
    const those = names.filter(name => functions[name])
    return { ...functions, ...Object.fromEntries(those.map(name => [name, late(functions[name] as any, isHeld)])) }
  }
  const slowLog: Log = {
    ...allLate(log, ['head', 'read', 'append', 'delete', 'expire']),
    outbox: {
      ...allLate(allLate(log.outbox, ['read', 'take', 'remove']), ['own', 'news'], false),
      async *rooms() {
        underWay++
        yield* log.outbox.rooms()
        underWay--
      },
    },
    notes: log.notes && allLate(log.notes, ['read', 'replace'], false),
    news: log.news && allLate(log.news, ['heads'], false),
  }
  return {
    log: slowLog,
    slow,
    isBusy: () => underWay > 0,
    release: (fails: boolean, most = held.length) => {
      for (const end of held.splice(0, most)) end(fails)
    },
  }
}

/** Some messages have no room there. */
const outboxBytesMax = 1_000

type Open = (world: World) => Promise<Log>

async function setUp(open: Open) {
  const time = createTestWorld()
  let timers = 0
  const counted: World = {
    ...time.world,
    every(ms, tick) {
      const end = time.world.every(ms, tick)
      timers++
      let isOver = false
      return () => {
        if (!isOver) timers--
        isOver = true
        end()
      }
    },
  }
  const levels = new Map<string, () => unknown>()
  const due = new Map<string, Set<string>>()
  /** Why the process would have ended. */
  const ended: Error[] = []
  /** The commands, and what became of each. */
  const sent = new Map<string, any>()
  const results = new Map<string, any>()
  let events = {} as NodeEvents<Rooms>
  const slow = slowed(await open(counted))
  let takes: Outcome = taken
  /** Of each room, what the backend took, or was told that it missed. */
  const told = new Map<string, Set<string>>()
  let file = files[0]
  const get = (name: string) => file[name]
  const journal = createJournal({
    ...counted,
    namespaces: { get, names: ['room', 'hall'] },
    pushed: { get, names: ['price'] },
    hub: {
      async start(given) {
        events = given
      },
      stop: async () => {},
      tell: (link, key) => void due.get(link)?.add(key),
      tellResult: (_, id, result: any) => void results.set(id, result),
      stats: () => ({ links: 0, dueKeys: 0, bytesOut: 0 }),
    },
    log: slow.log,
    end: error => ended.push(error),
    metrics: {
      count: noMetric,
      sum: noMetric,
      histogram: noMetric,
      read: (name: string, _: string, level: () => unknown) => void levels.set(name, level),
    } as any,
    outboxBytesMax,
    report: silent,
    post: Object.assign(
      async (_: unknown, body: string) => {
        if (takes.kind === 'failed') return takes
        const { key, messages = [], gap } = JSON.parse(body)
        const known = told.get(key) ?? new Set()
        for (let { seq } = gap?.from ?? {}; seq <= gap?.to.seq; seq++) known.add(`${gap.to.epoch} ${seq}`)
        for (const { epoch, seq } of messages) known.add(`${epoch} ${seq}`)
        told.set(key, known)
        return takes
      },
      { close() {} },
    ),
  })
  await journal.start()
  /** Whatever the log has under way is over. */
  async function quiet() {
    do await time.settle()
    while (slow.isBusy())
  }
  return {
    ...time,
    ...slow,
    quiet,
    told,
    backendTakes(outcome: Outcome) {
      takes = outcome
    },
    sent,
    ended,
    /** Messages that were kept in rooms of which the backend hears, unless some of the room were deleted, and it did not. */
    untold() {
      const commands = [...sent]
      const isDeletedFrom = (room: string) => commands.some(([, said]) => said.type === 'delete' && said.room === room)
      return commands.filter(([id, { type, room }]) => {
        const { epoch, seq } = results.get(id) ?? {}
        if (type !== 'publish' || !room.startsWith('room:') || seq === undefined || isDeletedFrom(room)) return false
        return !told.get(room)?.has(`${epoch} ${seq}`)
      })
    },
    events,
    due,
    timers: () => timers,
    level: (name: string) => levels.get(name)?.(),
    takeOver(number: number) {
      file = files[number % 2]
      journal.reconfigure()
    },
    async stop() {
      await journal.stop()
      await slow.log.close()
    },
  }
}

/** What a gateway, or its surroundings, may do: a number says what it is done with. */
function actionsOf(system: Awaited<ReturnType<typeof setUp>>) {
  const { events, due, slow, release, pass, settle, quiet, takeOver, backendTakes, sent } = system
  const links: string[] = []
  let last = 0
  const pick = <T>(choices: T[], number: number) => choices[number % choices.length]
  const on = (run: (link: string, number: number) => unknown) => (which: number, number: number) =>
    links.length > 0 ? run(pick(links, which), number) : undefined
  const lose = (link: string) => {
    due.delete(link)
    const rest = events.onLinkLost(link)
    while (rest && !rest.next().done);
  }
  const watch = (keys: string[]) =>
    on((link, number) => {
      const position = number > 10 ? { epoch: 'other', seq: number } : undefined
      events.onWatch(link, { key: pick(keys, number), position } as any)
    })
  const unwatch = (keys: string[]) => on((link, number) => events.onUnwatch(link, pick(keys, number), true))
  const joins = rooms.flatMap(name => users.map(user => `${name} join ${user}.1`))
  const join = (leaving?: 'now' | 'later') =>
    on((link, number) => {
      const user = pick(users, number)
      const payload = { user, name: pick(users, number >> 1), claim: undefined, leaving }
      events.onWatch(link, { key: pick(joins, number), position: undefined, payload, payer: `a1.${user}` } as any)
    })
  const histories = [...rooms, 'none:1'].map(name => `${name} - after 0 2`)
  const gets = [...histories, ...values, membersKey('room:1')]
  const command = (commandOf: (number: number) => object) =>
    on((link, number) => {
      const said = commandOf(number) as any
      sent.set(`${++last}`, said)
      events.onCommand?.(link, `${last}`, said, 5_000, 'a1.uann')
    })
  const publish = command(number => ({
    type: 'publish',
    room: pick(rooms, number),
    messageId: number % 2 === 0 ? `m${number}` : undefined,
    from: 'ann',
    data: Buffer.from(`"${'x'.repeat(number * 10)}"`),
  }))
  const contentOf = (text: string) => {
    const body = Buffer.from(JSON.stringify(text))
    return { version: versionOf(body, 'application/json'), contentType: 'application/json', format: 'json', body }
  }
  const take = on((link, number) => {
    for (const key of [...(due.get(link) ?? [])].slice(0, number)) {
      due.get(link)?.delete(key)
      if (events.answersFor(link, key, 1_000).more) due.get(link)?.add(key)
    }
  })
  const come = () => {
    const link = `link${++last}`
    due.set(link, new Set())
    links.push(link)
  }
  const actions: ((which: number, number: number) => unknown)[] = [
    come,
    which => links.splice(which % 4, 1).forEach(lose),
    watch(rooms),
    watch([...rooms.map(membersKey), 'none:1']),
    watch(values),
    unwatch(rooms),
    unwatch([...rooms.map(membersKey), ...values]),
    unwatch(joins),
    join(),
    join(),
    join('now'),
    join('later'),
    on((link, number) => events.onGet(link, { key: pick(gets, number), payer: 'a1.uann' } as any)),
    on((link, number) => events.onCancelGet(link, pick(gets, number))),
    publish,
    publish,
    command(number => ({
      type: 'put',
      key: pick(values, number),
      content: number % 5 === 0 ? undefined : contentOf(`${number}`),
      rank: number % 3 === 0 ? number : undefined,
    })),
    command(number => ({ type: 'delete', room: pick(rooms, number), seqs: number % 2 === 0 ? [1, 2] : undefined })),
    take,
    take,
    on(link => events.headsFor?.(link)),
    (_, number) => {
      slow.is = number % 2 === 0
    },
    (which, number) => release(number % 4 === 0, which),
    settle,
    quiet,
    (_, number) => pass(number * 100),
    (_, number) => takeOver(number),
    (_, number) => backendTakes(pick([taken, failed, refused], number)),
  ]
  const takeAll = () => links.forEach((_, which) => void take(which, Number.POSITIVE_INFINITY))
  return { actions, takeAll, leave: () => links.splice(0).forEach(lose) }
}

let valkey: Awaited<ReturnType<typeof startValkey>> | undefined
const folders: string[] = []
afterAll(async () => {
  await valkey?.remove()
  for (const folder of folders) rmSync(folder, { recursive: true, force: true })
})

const bytesMax = 100_000
const logs: { kind: string; numRuns: number; open: Open }[] = [
  { kind: 'memory', numRuns: 20, open: async world => createMemoryLog({ ...world, bytesMax }) },
  {
    kind: 'lmdb',
    numRuns: 6,
    async open({ now, wallNow }) {
      folders.push(mkdtempSync(join(tmpdir(), 'keycast-log-')))
      return openLmdbLog({ ...realWorld, now, wallNow, bytesMax, folder: folders.at(-1) as string })
    },
  },
  {
    kind: 'valkey',
    numRuns: 6,
    async open({ wallNow }) {
      valkey ??= await startValkey()
      valkey.cli('FLUSHALL')
      return openValkeyLog({ ...realWorld, wallNow, valkeyNow: wallNow, bytesMax, url: valkey.url, report: silent })
    },
  },
]

type Step = [action: number, which: number, number: number]

/** A room is deleted from, and is of a namespace that tells nobody when the log has written that. */
const deletedMeanwhile: Step[] = [
  [14, 0, 1],
  [24, 0, 0],
  [21, 0, 0],
  [17, 0, 1],
  [23, 0, 0],
  [22, 1, 1],
  [23, 0, 0],
  [26, 0, 1],
  [22, 15, 1],
  [24, 0, 0],
]

async function expectNothingLeft(system: Awaited<ReturnType<typeof setUp>>, steps: Step[]) {
  const timers = system.timers()
  const { actions, leave, takeAll } = actionsOf(system)
  await actions[0](0, 0)
  for (const [action, which, number] of steps) await actions[action](which, number)

  system.slow.is = false
  system.release(false)
  await system.pass(2_000)
  for (let rounds = 0; rounds < 20; rounds++) {
    await system.quiet()
    takeAll()
  }
  // Links that were sent all that they are due hold no place to read.
  expect(system.level('log_reads')).toBe(0)

  leave()
  system.backendTakes(taken)
  system.takeOver(0)
  // Longer than a backend that failed is left alone.
  for (let seconds = 0; seconds < 70; seconds += 5) {
    await system.pass(5_000)
    await system.quiet()
  }
  expect(system.ended).toEqual([])
  const names = ['publishes_waiting', 'watched_rooms', 'watched_values', 'members', 'member_rooms', 'log_reads']
  expect(names.map(name => [name, system.level(name) ?? 0])).toEqual(names.map(name => [name, 0]))
  expect(system.timers()).toBe(timers)
  expect(system.log.outbox.stats().bytes).toBe(0)
  for await (const { room } of system.log.outbox.rooms()) throw new Error(`${room} has something to be told`)
  expect(system.untold()).toEqual([])

  // Nor in the log, once its time is over: values alone stay.
  for (const ms of [ID_MS, EMPTY_MS]) {
    system.leap(ms)
    for (let seconds = 0; seconds < 5; seconds++) {
      await system.pass(1_000)
      await system.quiet()
    }
  }
  const charged = system.level('log_charged_bytes') as { value: number }[]
  expect(charged.map(({ value }) => value)).toEqual([0, 0, 0])
  expect(system.level('log_rooms')).toBeLessThanOrEqual(values.length)
}

test.each(logs)(
  'whatever gateways want, and whenever they are lost, nothing of them is left: $kind',
  async ({ numRuns, open }) => {
    const step = fc.tuple(fc.nat(27), fc.nat(15), fc.nat(15))
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 60, maxLength: 150, size: 'max' }), async steps => {
        const system = await setUp(open)
        try {
          await expectNothingLeft(system, steps)
        } finally {
          system.slow.is = false
          system.release(false)
          await system.stop()
        }
      }),
      { numRuns, endOnFailure: true, examples: [[deletedMeanwhile]] },
    )
  },
)
