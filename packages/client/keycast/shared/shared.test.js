// Tabs that share one client: a made-up gateway, ports that copy what they carry, and locks that end with their holder.
import { connect, KeycastError } from '../../keycast.js'
import { createWorld, welcome } from '../../test-support.js'
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

/** Of a tab that is to find a worker. */
const alone = () => {
  throw new Error('there is a worker')
}

/**
 * A worker that has a client of few methods, and tabs that reach it.
 *
 * @param {object} methods @param {any} [connect]
 */
function startWorker(methods, connect = () => ({ on() {}, state: { name: 'open' }, close() {}, ...methods })) {
  const locks = createLocks()
  const host = createHost({ connect, locks, lock: 'worker' })
  /** The worker's ends. @type {any[]} */
  const ports = []
  const reach = () => {
    const [mine, its] = createPorts()
    ports.push(its)
    host.join(its)
    return mine
  }
  return { locks, ports, reach, openTab: () => createTab({ reach, locks, alone, url: 'ws://gateway/ws', options: {} }) }
}

/** A room of a worker's client. @param {object} methods */
const roomOf = methods => ({
  ...{ key: 'room:1', on() {}, subscribe() {}, members: { subscribe() {} }, close() {}, leave: async () => {} },
  ...methods,
})

/** A browser: tabs, and a worker that may die and begin anew. */
function setup() {
  const fake = createFakeKeycast()
  const locks = createLocks()
  const clock = { now: 0 }
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
    return createHost({ connect: /** @type {any} */ (connect), locks, lock: `worker ${workers}`, now: () => clock.now })
  }
  let host = startHost()
  /** @type {any[]} */
  let ports = []
  const reach = () => {
    const [mine, its] = createPorts()
    ports.push(mine, its)
    host.join(its)
    return mine
  }
  /** @param {object} [options] @param {object} [way] another than the worker's */
  const openTab = (options = {}, way = {}) =>
    createTab({ reach, locks, alone, url: 'ws://gateway/ws', options, ...way })
  const killWorker = async () => {
    for (const port of ports) port.onmessage = null
    ports = []
    const died = `worker ${workers}`
    host = startHost()
    locks.kill(died)
    await settle()
  }
  return { fake, locks, clock, reach, openTab, killWorker, given: () => given }
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

test('a worker that comes next asks for nothing older than what its tabs show, which stays and is not live meanwhile', async () => {
  const locks = createLocks()
  const worlds = [createWorld({ page: false }), createWorld({ page: false })]
  let number = 0
  const reach = () => {
    const { environment } = worlds[number]
    const [mine, its] = createPorts()
    createHost({
      connect: (url, options) => connect(url, { ...options, environment }),
      locks,
      lock: `worker ${number}`,
    }).join(its)
    return mine
  }
  const tab = createTab({ reach, locks, alone, url: 'ws://gateway/ws', options: {} })
  const handle = tab.value('a:1')
  const room = tab.room('room:1')
  /** @type {string[]} */
  const heard = []
  handle.on('change', ({ health }) => heard.push(health))
  room.on('change', ({ health }) => heard.push(`room ${health}`))
  await settle()
  worlds[0].socket().say(welcome())
  const value = { type: 'value', key: 'a:1', version: 'v', order: 7, contentType: 'application/json' }
  worlds[0].socket().say(value, Buffer.from('1'))
  worlds[0].socket().say({ type: 'stale', key: 'a:1', sinceMs: 0, code: 'backend_timeout' })
  await settle()
  number = 1
  locks.kill('worker 0')
  await settle()
  // The value stays on show meanwhile, and nothing says that the backend still has it.
  const shown = { value: 1, version: 'v', contentType: 'application/json', stale: { code: 'backend_timeout' } }
  expect(handle.state).toMatchObject({ ...shown, health: 'loading' })
  expect(room.state).toMatchObject({ live: false, health: 'loading' })
  worlds[1].socket().lose(1006)
  await settle()
  expect(handle.state).toMatchObject({ ...shown, health: 'offline' })
  await worlds[1].pass(1_000)
  worlds[1].done()
  worlds[1].socket().say(welcome())
  await settle()
  const keys = [{ key: 'a:1', order: 7 }]
  expect(worlds[1].done()).toContainEqual({ out: { type: 'subscribe', id: expect.any(Number), keys } })
  // Once each: the worker, too, says that it knows nothing yet.
  const ofRoom = ['room loading', 'room offline', 'room loading']
  expect(heard.filter(each => ofRoom.includes(each))).toEqual(ofRoom)
  expect(heard.filter(each => !ofRoom.includes(each))).toEqual(['live', 'stale', 'loading', 'offline', 'loading'])
  tab.close()
  await settle()
})

test.each([
  ['', 30_000],
  [', also where the clock was set back', -3_600_000],
])('a message whose deadline passed before there was another worker is given up, and not sent%s', async (_, dateMs) => {
  const { fake, openTab, killWorker } = setup()
  fake.refusePublishes('room:1', 'publish_unknown')
  const room = openTab().room('room:1', { follow: false })
  /** @type {string[]} */
  const outcomes = []
  for (const deadlineMs of [undefined, 3_600_000]) {
    const { length } = room.pending
    room.publish(length, { deadlineMs }).catch(({ code, messageId }) => outcomes.push(`${code} ${messageId.length}`))
  }
  await settle()
  fake.refusePublishes('room:1')
  jest.spyOn(Date, 'now').mockReturnValue(Date.now() + dateMs)
  jest.spyOn(performance, 'now').mockReturnValue(performance.now() + 30_000)
  try {
    await killWorker()
  } finally {
    jest.restoreAllMocks()
  }
  expect(outcomes).toEqual(['publish_unknown 22'])
  expect(room.pending.map(({ data }) => data)).toEqual([1])
})

test('what another worker says of a message says nothing of the one that may have sent it', async () => {
  const { fake, openTab, killWorker } = setup()
  fake.refusePublishes('room:1', 'publish_unknown')
  const published = openTab().room('room:1', { follow: false }).publish('once')
  const outcome = expect(published).rejects.toMatchObject({ code: 'publish_unknown' })
  await settle()
  await killWorker()
  fake.refusePublishes('room:1', 'log_full')
  fake.passTime(1_000)
  await outcome
})

test('a page that is kept for the way back goes on with what it had asked for', async () => {
  /** @type {Map<string, (event: any) => void>} */
  const listeners = new Map()
  const page = /** @type {any} */ (globalThis)
  page.addEventListener = listeners.set.bind(listeners)
  try {
    const { fake, openTab } = setup()
    const asked = openTab().get('a:1')
    await settle()
    listeners.get('pagehide')?.({})
    await settle()
    listeners.get('pageshow')?.({ persisted: true })
    await settle()
    fake.set('a:1', 1)
    expect(await asked).toBe(1)
  } finally {
    delete page.addEventListener
  }
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

test('messages that wait to be kept are not told to all tabs with each that is added', async () => {
  const { fake, openTab, reach } = setup()
  let told = 0
  const counted = () => {
    const port = reach()
    return {
      postMessage: (/** @type {any} */ message) => port.postMessage(message),
      set onmessage(/** @type {any} */ listener) {
        port.onmessage = (/** @type {any} */ event) => {
          told += JSON.stringify(event.data).length
          listener(event)
        }
      },
    }
  }
  openTab({}, { reach: counted }).room('room:1')
  const one = openTab({}, { reach: counted }).room('room:1')
  await settle()
  fake.refusePublishes('room:1', 'publish_unknown')
  const published = Promise.all(Array.from({ length: 100 }, () => one.publish('x'.repeat(1_000))))
  await settle()
  expect(one.pending).toHaveLength(100)
  fake.refusePublishes('room:1')
  fake.passTime(2_000)
  await published
  await settle()
  expect(one.pending).toEqual([])
  // Each message comes to both tabs once.
  expect(told).toBeLessThan(2 * 100 * 2_000)
})

test('a message is pending or given, not both', async () => {
  const { openTab } = setup()
  const room = openTab().room('room:1')
  await settle()
  /** @type {number[]} */
  const pending = []
  room.on('message', () => pending.push(room.pending.length))
  await room.publish('one')
  await settle()
  expect(pending).toEqual([0])
})

test('a message is kept, and a history read, also where the handle is closed before the worker hears of it', async () => {
  const { fake, openTab } = setup()
  const room = openTab().room('room:1')
  const published = room.publish('one')
  room.close()
  await published
  await room.publish('two')
  expect(fake.messages('room:1')).toEqual(['one', 'two'])
  expect((await room.history()).messages).toHaveLength(2)
  await room.leave()
})

test('a tab knows the name under which it is in a room, and that it has left', async () => {
  const { openTab } = setup()
  const [one, two] = [openTab(), openTab()].map(tab => tab.room('room:1'))
  await settle()
  await Promise.all([one.join('ann'), two.join('ann')])
  await settle()
  expect([one.state.joinedAs, two.state.joinedAs]).toEqual(['ann', 'ann'])
  await one.leave()
  await settle()
  expect([one.state.joinedAs, two.state.joinedAs]).toEqual([undefined, 'ann'])
})

test('a position may be a proxy, as frameworks make them', async () => {
  const { fake, openTab } = setup()
  fake.publish('room:1', 'one')
  const tab = openTab()
  const first = tab.room('room:1', { last: 1 })
  await settle()
  const after = new Proxy(/** @type {any} */ (first.position), {})
  fake.publish('room:1', 'two')
  /** @type {unknown[]} */
  const heard = []
  const room = tab.room('room:1', { after })
  room.on('message', ({ data }) => heard.push(data))
  await settle()
  expect(heard).toEqual(['two'])
  const { messages } = await room.history({ after })
  expect(messages.map(({ data }) => data)).toEqual(['two'])
})

test('what is opened at a tab that is closed says so', async () => {
  const { openTab } = setup()
  const tab = openTab()
  tab.close()
  expect(tab.value('a:1').state.error?.code).toBe('closed')
  expect(tab.room('room:1').state.error?.code).toBe('closed')
  for await (const _ of tab.value('a:1')) throw new Error('it has ended')
})

test("a tab whose join was refused keeps no other tab's user in the room", async () => {
  /** @type {string[]} */
  const left = []
  const room = roomOf({
    join: async (/** @type {string} */ name) => {
      if (name === 'taken') throw new KeycastError({ code: 'name_taken', message: 'taken' })
      return { name, claim: 'c' }
    },
    leave: async () => left.push('room:1'),
  })
  const { openTab } = startWorker({ room: () => room })
  const [one, two] = [1, 2].map(() => openTab().room('room:1'))
  await one.join('ann')
  await expect(two.join('taken')).rejects.toMatchObject({ code: 'name_taken' })
  await one.leave()
  expect(left).toEqual(['room:1'])
})

test('a tab whose name became somebody else’s does not join again at the next worker', async () => {
  /** @type {string[]} */
  const joins = []
  /** @type {((state: any) => void)[]} */
  const listeners = []
  const room = roomOf({
    subscribe: (/** @type {(state: any) => void} */ listener) => listeners.push(listener),
    join: async (/** @type {string} */ name) => {
      joins.push(name)
      return { name, claim: 'c' }
    },
  })
  const { openTab, ports } = startWorker({ room: () => room })
  const mine = openTab().room('room:1')
  await mine.join('ann')
  const error = new KeycastError({ code: 'name_taken', message: 'taken' })
  listeners[0]({ live: true, health: 'live', error, joinedAs: undefined })
  await settle()
  expect(mine.state.error).toMatchObject({ code: 'name_taken' })
  ports[0].postMessage({ gone: true })
  await settle()
  expect([ports.length, joins]).toEqual([2, ['ann']])
})

test('a new handle of a tab asks again for a key that has ended', async () => {
  const { fake, openTab } = setup()
  const tab = openTab()
  const first = tab.value('a:1')
  await settle()
  fake.fail('a:1', 'unknown_namespace')
  await settle()
  expect(first.state.health).toBe('ended')
  fake.set('a:1', 1)
  const second = tab.value('a:1')
  await settle()
  expect([first.state, second.state]).toMatchObject([{ health: 'live', value: 1 }, { health: 'live' }])
})

test('a tab whose worker says nothing has a connection of its own, and one that begins late after all is told', async () => {
  jest.useFakeTimers({ doNotFake: ['setImmediate', 'queueMicrotask'] })
  const { fake, openTab } = setup()
  fake.set('a:1', 1)
  /** @type {any[]} */
  const hosts = []
  /** @type {any[]} */
  const said = []
  const tab = openTab(
    {},
    {
      reach() {
        const [mine, late] = createPorts()
        late.onmessage = (/** @type {any} */ { data }) => said.push(data)
        return mine
      },
      alone() {
        const { value } = fake.keycast
        hosts.push(startWorker({ value }))
        return hosts[0]
      },
    },
  )
  const handle = tab.value('a:1')
  await settle()
  jest.advanceTimersByTime(19_999)
  await settle()
  expect([hosts.length, handle.state.value]).toEqual([0, undefined])
  jest.advanceTimersByTime(1)
  await settle()
  expect([hosts.length, handle.state.value]).toEqual([1, 1])
  expect(said.map(message => Object.keys(message)[0])).toEqual(['hello', 'open', 'bye'])
  // And only once.
  jest.advanceTimersByTime(60_000)
  expect(hosts.length).toBe(1)
  jest.useRealTimers()
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

test.each([undefined, null, 'no network', {}])('a function for tokens that throws %p has failed', async thrown => {
  const { openTab, given } = setup()
  openTab({ token: () => Promise.reject(thrown) })
  await settle()
  await expect(given().token()).rejects.toThrow(String(thrown))
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

test('a tab that stands still keeps no other tab from giving the token', async () => {
  const { openTab, given } = setup()
  openTab({ token: () => new Promise(() => {}) })
  await settle()
  openTab({ token: async () => 'of the second' })
  await settle()
  const first = given().token()
  await settle()
  // The connection has waited for the first long enough, and asks again.
  await expect(given().token()).resolves.toBe('of the second')
  first.catch(() => {})
})

test('what is said to a tab that stands still is bounded, and it goes on from where it stands', async () => {
  const { fake, clock, openTab, reach } = setup()
  /** What the port keeps for the tab. @type {any[]} */
  const kept = []
  let stands = false
  const held = () => {
    const port = reach()
    /** @type {(event: any) => void} */
    let listener = () => {}
    const end = {
      postMessage: (/** @type {any} */ message) => port.postMessage(message),
      set onmessage(/** @type {any} */ given) {
        listener = given
        port.onmessage = (/** @type {any} */ event) => (stands ? kept.push(() => listener(event)) : listener(event))
      },
    }
    return end
  }
  const room = openTab({}, { reach: held }).room('room:1')
  const other = openTab().room('room:2')
  /** @type {number[]} */
  const heard = []
  room.on('message', ({ data }) => heard.push(data))
  await settle()
  stands = true
  let count = 0
  const publish = async (/** @type {number} */ most) => {
    for (let n = 0; n < most; n += 1) fake.publish('room:1', count++)
    await settle()
    return kept.length
  }
  // Much at once is no sign that it stands still.
  expect(await publish(9_000)).toBeGreaterThanOrEqual(9_000)
  clock.now += 10_000
  const most = await publish(10)
  expect(fake.watched()).toEqual(['room:2'])
  expect(await publish(1_000)).toBe(most)
  stands = false
  for (const hear of kept) hear()
  await settle()
  expect(heard).toEqual(Array.from({ length: count }, (_, n) => n))
  expect([room.state.health, other.state.health]).toEqual(['live', 'live'])
})

test('a tab that takes what is said to it hears all of it, however much', async () => {
  const { fake, openTab } = setup()
  const room = openTab().room('room:1')
  let heard = 0
  room.on('message', () => {
    heard += 1
  })
  await settle()
  for (let n = 0; n < 9_000; n += 1) {
    fake.publish('room:1', n)
    if (n % 1_000 === 0) await settle()
  }
  await settle()
  expect(heard).toBe(9_000)
})

test('what a port cannot carry fails alone, and what is published is as it was when it was given', async () => {
  const { fake, openTab, killWorker } = setup()
  const tab = openTab()
  const room = tab.room('room:1')
  const data = { n: 1, toString() {} }
  const published = room.publish(data)
  data.n = 2
  await published
  expect(fake.messages('room:1')).toEqual([{ n: 1 }])
  await expect(room.join(/** @type {any} */ (() => {}))).rejects.toThrow(/could not be cloned/)
  await killWorker()
  await room.publish('after the worker has died')
  expect(fake.messages('room:1')).toHaveLength(2)
})

test('a get that is given up is given up at the worker, too, and so is that of a tab that dies', async () => {
  /** @type {AbortSignal[]} */
  const signals = []
  const get = (/** @type {string} */ _, /** @type {any} */ { signal }) => {
    signals.push(signal)
    return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
  }
  const { locks, openTab } = startWorker({ get })
  const tab = openTab()
  const giveUp = new AbortController()
  const given = tab.get('a:1', { signal: giveUp.signal })
  tab.get('a:2').catch(() => {})
  await settle()
  giveUp.abort(new Error('given up'))
  await expect(given).rejects.toThrow('given up')
  await settle()
  expect(signals.map(({ aborted }) => aborted)).toEqual([true, false])
  locks.kill('keycast tab')
  await settle()
  expect(signals.map(({ aborted }) => aborted)).toEqual([true, true])
})

test('options that no room takes are refused in a tab as elsewhere', () => {
  const { openTab } = setup()
  expect(() => openTab().room('room:1', { last: 501 })).toThrow(TypeError)
  expect(() => openTab().room('room:1', { bufferMessages: 0 })).toThrow(TypeError)
})

/** @param {() => void} onError */
const unloaded = onError => {
  queueMicrotask(onError)
  return createPorts()[0]
}

const forbidden = () => {
  throw new Error('forbidden')
}

test.each([
  ['forbids workers', { reach: forbidden }],
  ['forbids locks', { locks: { request: async () => forbidden() } }],
  ['does not load the worker', { reach: unloaded }],
])('where the platform %s a tab has a connection of its own', async (_, way) => {
  const { fake, openTab, reach, locks } = setup()
  fake.set('a:1', 1)
  const tab = openTab({}, { ...way, alone: () => ({ reach, locks }) })
  const handle = tab.value('a:1')
  await settle()
  expect([tab.state.name, handle.state.value]).toEqual(['open', 1])
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

test('a tab with very many handles that ends holds up no other: each is looked at a few times, not once for each of all', async () => {
  let looks = 0
  const value = (/** @type {string} */ name) => ({
    get key() {
      looks += 1
      return name
    },
    subscribe() {},
    close() {},
  })
  const { openTab } = startWorker({ value })
  const tab = openTab()
  for (let n = 0; n < 200; n++) tab.value(`a:${n}`)
  await settle()
  tab.close()
  await settle()
  expect(looks).toBeLessThan(1_000)
})

test('a page that comes back is shown nothing older than it had, also where another tab is shown that meanwhile', async () => {
  const world = createWorld({ page: false })
  const { environment, socket } = world
  const { openTab } = startWorker({}, (/** @type {string} */ url, /** @type {any} */ options) =>
    connect(url, { ...options, environment }),
  )
  /** @param {number} order */
  const say = async order => {
    const value = { type: 'value', key: 'a:1', version: `v${order}`, order, contentType: 'application/json' }
    socket().say(value, Buffer.from(String(order)))
    await settle()
  }
  const listeners = new Map()
  const page = /** @type {any} */ (globalThis)
  page.addEventListener = listeners.set.bind(listeners)
  const first = openTab().value('a:1')
  delete page.addEventListener
  await settle()
  socket().say(welcome())
  await say(9)
  listeners.get('pagehide')({})
  await settle()

  // Another gateway, which lags behind.
  const second = openTab().value('a:1')
  await settle()
  socket().say(welcome())
  socket().say({ type: 'subscribed', id: world.outs().at(-1).id, keys: [{ key: 'a:1' }] })
  await say(7)
  listeners.get('pageshow')({ persisted: true })
  await settle()
  expect([second.state.value, first.state.value, first.state.health]).toEqual([7, 9, 'loading'])
  const keys = [{ key: 'a:1', version: 'v7', order: 9 }]
  expect(world.outs().at(-1)).toMatchObject({ type: 'subscribe', keys })
  await say(10)
  expect([second.state.value, first.state.value, first.state.health]).toEqual([10, 10, 'live'])
})
