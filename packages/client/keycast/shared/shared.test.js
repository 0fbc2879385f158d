// Tabs that share one client: a made-up gateway, ports that copy what they carry, and locks that end with their holder.
import { KeycastError } from '../../keycast.js'
import { createFakeKeycast } from '../../testing.js'
import { createHost } from './host.js'
import { createTab } from './tab.js'

/** All that can go on without time goes on. */
const settle = async () => {
  for (let turn = 0; turn < 5; turn += 1) await new Promise(resolve => setImmediate(resolve))
}

/** Two ends of a channel. */
function createPorts() {
  /** @param {any} [other] @returns {any} */
  const end = other => ({
    other,
    onmessage: null,
    /** @param {unknown} message */
    postMessage(message) {
      const data = structuredClone(message)
      queueMicrotask(() => this.other.onmessage?.({ data }))
    },
  })
  const one = end()
  const two = end(one)
  one.other = two
  return [one, two]
}

/** As the platform's: one holder at a time, in the order of the requests, and the end of a holder ends its lock. */
function createLocks() {
  /** @type {Map<string, { ended: Promise<unknown>, kills: (() => void)[] }>} */
  const locks = new Map()
  return {
    /** @param {string} name @param {unknown} _ @param {() => unknown} task */
    request(name, _, task) {
      const { ended, kills } = locks.get(name) ?? { ended: Promise.resolve(), kills: [] }
      /** @type {Promise<void>} */
      const killed = new Promise(resolve => kills.push(resolve))
      const held = ended.then(() => Promise.race([task(), killed]))
      locks.set(name, { ended: held, kills })
      return held
    },
    /** The holder of a lock ends. @param {string} name the beginning of the lock's */
    kill(name) {
      for (const [lock, { kills }] of locks) if (lock.startsWith(name)) kills.shift()?.()
    },
  }
}

/** A browser: tabs, and a worker that may die and begin anew. */
function setup() {
  const fake = createFakeKeycast()
  const locks = createLocks()
  /** @type {any} */
  let given
  let workers = 0
  const startHost = () => {
    workers += 1
    const connect = (/** @type {string} */ _, /** @type {any} */ options) => {
      given = options
      // Each worker has a client of its own, which ends with it: here they have one gateway.
      return { ...fake.keycast, state: { name: 'open' }, close() {} }
    }
    return createHost({ connect: /** @type {any} */ (connect), locks, lock: `worker ${workers}` })
  }
  let host = startHost()
  /** @type {any[]} */
  let ports = []
  const openTab = (options = {}) => {
    const reach = () => {
      const [mine, its] = createPorts()
      ports.push(mine, its)
      host.join(its)
      return mine
    }
    return createTab({ reach, locks, url: 'ws://gateway/ws', options })
  }
  const killWorker = async () => {
    for (const port of ports) port.onmessage = null
    ports = []
    const died = `worker ${workers}`
    host = startHost()
    locks.kill(died)
    await settle()
  }
  return { fake, locks, openTab, killWorker, given: () => given }
}

test('fifty tabs see the values and messages that they would see with connections of their own', async () => {
  const { fake, openTab } = setup()
  fake.set('a:1', { n: 1 })
  fake.publish('room:1', 'before')
  const tabs = Array.from({ length: 50 }, () => openTab())
  const handles = tabs.map(tab => tab.value('a:1'))
  /** @type {unknown[][]} */
  const heard = tabs.map(() => [])
  tabs.forEach((tab, at) => {
    tab.room('room:1', { last: 5 }).on('message', ({ data }) => heard[at].push(data))
  })
  await settle()
  fake.set('a:1', { n: 2 })
  fake.publish('room:1', 'after')
  await settle()
  expect(fake.watched()).toEqual(['a:1', 'room:1'])
  for (const { state } of handles) expect(state).toMatchObject({ value: { n: 2 }, health: 'live', error: undefined })
  for (const messages of heard) expect(messages).toEqual(['before', 'after'])
  expect(await tabs[7].get('a:1')).toEqual({ n: 2 })
  expect(tabs.map(({ state }) => state.name)).toEqual(Array(50).fill('open'))
})

test('a tab that dies gives up what it alone had open', async () => {
  const { fake, locks, openTab } = setup()
  const dying = openTab()
  dying.value('a:1')
  dying.value('a:2')
  await settle()
  const other = openTab()
  other.value('a:2')
  await settle()
  expect(fake.watched()).toEqual(['a:1', 'a:2'])
  locks.kill('keycast tab')
  await settle()
  expect(fake.watched()).toEqual([])
  const next = openTab()
  next.value('a:2')
  await settle()
  expect(fake.watched()).toEqual(['a:2'])
})

test('a worker that dies is not noticed: values stay, and every message comes once', async () => {
  const { fake, openTab, killWorker } = setup()
  fake.set('a:1', 1)
  const tab = openTab()
  const handle = tab.value('a:1')
  /** @type {unknown[]} */
  const shown = []
  handle.on('change', ({ value }) => shown.push(value))
  /** @type {unknown[]} */
  const heard = []
  const room = tab.room('room:1')
  room.on('message', ({ data }) => heard.push(data))
  room.on('gap', gap => heard.push(gap))
  await settle()
  fake.publish('room:1', 'one')
  await settle()
  await killWorker()
  fake.publish('room:1', 'two')
  await settle()
  await room.publish('three')
  await settle()
  expect(heard).toEqual(['one', 'two', 'three'])
  expect(new Set(shown)).toEqual(new Set([1]))
  expect(handle.state).toMatchObject({ value: 1, health: 'live' })
})

test('what a tab publishes is pending there alone, in its order', async () => {
  const { fake, openTab } = setup()
  const [one, two] = [openTab(), openTab()].map(tab => tab.room('room:1'))
  await settle()
  fake.refusePublishes('room:1', 'publish_unknown')
  const published = [1, 2, 3].map(n => one.publish(n))
  await settle()
  expect(one.pending.map(({ data }) => data)).toEqual([1, 2, 3])
  expect(two.pending).toEqual([])
  fake.refusePublishes('room:1')
  fake.passTime(2_000)
  await Promise.all(published)
  expect(fake.messages('room:1')).toEqual([1, 2, 3])
})

test("a tab whose join was refused keeps no other tab's user in the room", async () => {
  /** @type {string[]} */
  const left = []
  const room = {
    key: 'room:1',
    position: undefined,
    on() {},
    subscribe() {},
    members: { subscribe() {} },
    close() {},
    join: async (/** @type {string} */ name) => {
      if (name === 'taken') throw new KeycastError({ code: 'name_taken', message: 'taken' })
      return { name, claim: 'c' }
    },
    leave: async () => left.push('room:1'),
  }
  const connect = () => ({ on() {}, state: { name: 'open' }, room: () => room, close() {} })
  const locks = createLocks()
  const host = createHost({ connect: /** @type {any} */ (connect), locks, lock: 'worker' })
  const [one, two] = [1, 2].map(() => {
    const reach = () => {
      const [mine, its] = createPorts()
      host.join(its)
      return mine
    }
    return createTab({ reach, locks, url: 'ws://gateway/ws', options: {} }).room('room:1')
  })
  await one.join('ann')
  await expect(two.join('taken')).rejects.toMatchObject({ code: 'name_taken' })
  await one.leave()
  expect(left).toEqual(['room:1'])
})

test('an error of the gateway is the error of the tab', async () => {
  const { fake, openTab } = setup()
  fake.set('a:1', 1)
  const handle = openTab().value('a:1')
  await settle()
  fake.fail('a:1', 'forbidden')
  await settle()
  expect(handle.state).toMatchObject({
    value: undefined,
    health: 'forbidden',
    error: { code: 'forbidden', key: 'a:1' },
  })
  expect(handle.state.error).toBeInstanceOf(KeycastError)
})

test('a token is asked of another tab where the one that was asked dies', async () => {
  const { locks, openTab, given } = setup()
  openTab({ token: () => new Promise(() => {}) })
  await settle()
  const token = given().token()
  await settle()
  locks.kill('keycast tab')
  openTab({ token: async () => 'of the second' })
  await settle()
  await expect(token).resolves.toBe('of the second')
})

test('a tab that is closed ends its handles, and the others go on', async () => {
  const { fake, openTab } = setup()
  fake.set('a:1', 1)
  const [one, two] = [openTab(), openTab()]
  const [first, second] = [one.value('a:1'), two.value('a:1')]
  await settle()
  one.close()
  fake.set('a:1', 2)
  await settle()
  expect([one.state.name, first.state.error?.code]).toEqual(['closed', 'closed'])
  expect(second.state).toMatchObject({ value: 2, health: 'live' })
  for await (const _ of first) throw new Error('it has ended')
})
