// Gateways that come, want anything in any order and are lost in the middle of it, while the log is slow or fails and
// keycast.yaml changes: nothing of them is left.
import { membersKey, type NodeEvents, pushedKey, type Rooms } from '@keycast/backbone'
import { versionOf } from '@keycast/protocol'
import type { World } from '@keycast/service'
import { createTestWorld } from '@keycast/service/notify/test-world'
import fc from 'fast-check'
import { createJournal } from './journal.ts'
import { EMPTY_MS, ID_MS, type Log } from './log/log.ts'
import { createMemoryLog } from './log/memory.ts'

const silent: any = { debug() {}, info() {}, warn() {}, error() {} }
const noMetric = () => () => {}

const history = { messages: 4, ageMs: 30_000, bytes: 1e9 }
const room: any = { history, bytesMax: 1_000, publish: 'client', members: 'named', names: 'unique' }
const hall: any = { ...room, members: 'counted', names: 'any' }
const price: any = { name: 'price', source: 'pushed', bytesMax: 1_000 }
/** What a keycast.yaml names. */
const files: Record<string, any>[] = [{ room, hall, price }, { room: { ...room, members: 'none' } }]

const rooms = ['room:1', 'hall:1', 'room:2']
const values = ['price:1', 'price:2'].map(pushedKey)
const users = ['ann', 'bob', 'eve']

/** Reads and writes wait until the test ends them, where it says so. */
function slowed(log: Log) {
  const held: ((fails: boolean) => void)[] = []
  const slow = { is: false }
  const late =
    <A extends unknown[], R>(run: (...given: A) => Promise<R>) =>
    async (...given: A) => {
      if (slow.is)
        await new Promise<void>((resolve, reject) =>
          held.push(fails => (fails ? reject(new Error('away')) : resolve())),
        )
      return run(...given)
    }
  return {
    log: { ...log, head: late(log.head), read: late(log.read), append: late(log.append) },
    slow,
    release: (fails: boolean, most = held.length) => {
      for (const end of held.splice(0, most)) end(fails)
    },
  }
}

async function setUp() {
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
  let events = {} as NodeEvents<Rooms>
  const slow = slowed(createMemoryLog({ ...counted, bytesMax: 100_000 }))
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
      tellResult() {},
      stats: () => ({ links: 0, dueKeys: 0, bytesOut: 0 }),
    },
    log: slow.log,
    metrics: {
      count: noMetric,
      sum: noMetric,
      histogram: noMetric,
      read: (name: string, _: string, level: () => unknown) => void levels.set(name, level),
    } as any,
    report: silent,
  })
  await journal.start()
  return {
    ...time,
    ...slow,
    events,
    due,
    timers: () => timers,
    level: (name: string) => levels.get(name)?.(),
    takeOver(number: number) {
      file = files[number % 2]
      journal.reconfigure()
    },
    stop: journal.stop,
  }
}

/** What a gateway, or its surroundings, may do: a number says what it is done with. */
function actionsOf(system: Awaited<ReturnType<typeof setUp>>) {
  const { events, due, slow, release, pass, settle, takeOver } = system
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
  const join = (leaving?: 'now' | 'broken') =>
    on((link, number) => {
      const user = pick(users, number)
      const payload = { user, name: pick(users, number >> 1), claim: undefined, leaving }
      events.onWatch(link, { key: pick(joins, number), position: undefined, payload, payer: `a1.${user}` } as any)
    })
  const histories = [...rooms, 'none:1'].map(name => `${name} - after 0 2`)
  const gets = [...histories, ...values, membersKey('room:1')]
  const command = (commandOf: (number: number) => object) =>
    on((link, number) => events.onCommand?.(link, `${++last}`, commandOf(number) as any, 5_000, 'a1.uann'))
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
    join('broken'),
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
    (_, number) => pass(number * 100),
    (_, number) => takeOver(number),
  ]
  return { actions, leave: () => links.splice(0).forEach(lose) }
}

test('whatever gateways want, and whenever they are lost, nothing of them is left', async () => {
  const step = fc.tuple(fc.nat(25), fc.nat(15), fc.nat(15))
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 60, maxLength: 150, size: 'max' }), async steps => {
      const system = await setUp()
      const timers = system.timers()
      const { actions, leave } = actionsOf(system)
      await actions[0](0, 0)
      for (const [action, which, number] of steps) await actions[action](which, number)

      leave()
      system.slow.is = false
      system.release(false)
      await system.pass(12_000)
      const names = ['publishes_waiting', 'watched_rooms', 'watched_values', 'members', 'member_rooms', 'log_reads']
      expect(names.map(name => [name, system.level(name) ?? 0])).toEqual(names.map(name => [name, 0]))
      expect(system.timers()).toBe(timers)

      // Nor in the log, once its time is over: values alone stay.
      for (const ms of [ID_MS, EMPTY_MS]) {
        system.leap(ms)
        await system.pass(3_000)
      }
      const charged = system.level('log_charged_bytes') as { value: number }[]
      expect(charged.map(({ value }) => value)).toEqual([0, 0, 0])
      expect(system.level('log_rooms')).toBeLessThanOrEqual(values.length)
      await system.stop()
    }),
    { numRuns: 20, endOnFailure: true },
  )
})
