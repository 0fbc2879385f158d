// Handles through the whole client: events, iterators and stores, as an application meets them.
import { connect, KeycastError } from '../../keycast.js'
import { createWorld, welcome } from '../../test-support.js'

/** @typedef {import('../../keycast.js').ValueState} ValueState */

let versions = 0

function setup() {
  const world = createWorld()
  const keycast = connect('ws://gateway/ws', { environment: world.environment })
  world.socket().say(welcome())
  return {
    ...world,
    keycast,
    /** @param {string} key @param {unknown} value */
    async say(key, value) {
      versions += 1
      const message = { type: 'value', key, version: `v${versions}`, contentType: 'application/json' }
      await world.settle()
      world.socket().say(message, Buffer.from(JSON.stringify(value)))
    },
    /** @param {string} key @param {string} code @param {number} [retryAfterMs] */
    async fail(key, code, retryAfterMs) {
      await world.settle()
      world
        .socket()
        .say({ type: 'error', key, code, message: code, retryAfterMs, subscribed: retryAfterMs !== undefined })
    },
  }
}

test('the state is the same object until something changes', async () => {
  const { keycast, say } = setup()
  const [one, two] = [keycast.value('a:1'), keycast.value('a:1')]
  const before = one.state
  expect(before).toEqual({ stale: false, health: 'loading' })
  await say('a:1', { n: 1 })
  const { state } = one
  expect(state).not.toBe(before)
  expect(state).toMatchObject({ value: { n: 1 }, stale: false, error: undefined, changedAt: 0 })
  expect([one.state, one.getSnapshot(), two.state, keycast.peek('a:1')].every(same => same === state)).toBe(true)
  expect(state.value).toBe(state.value)
  expect({ ...state }.value).toEqual({ n: 1 })
  expect(keycast.peek('a:2').version).toBeUndefined()
})

test('`on` tells of changes, and of what is there already', async () => {
  const { keycast, say, settle } = setup()
  /** @type {unknown[]} */
  const seen = []
  const handle = keycast.value('a:1')
  const off = handle.on('change', ({ value }) => seen.push(value))
  await say('a:1', 1)
  await say('a:1', 2)
  expect(seen).toEqual([1, 2])
  keycast.value('a:1').on('change', ({ value }) => seen.push(['late', value]))
  await settle()
  expect(seen).toEqual([1, 2, ['late', 2]])
  off()
  await say('a:1', 3)
  expect(seen.slice(3)).toEqual([['late', 3]])
  expect(() => handle.on(/** @type {any} */ ('changed'), () => {})).toThrow(TypeError)
})

test('`subscribe` calls at once, as stores do', async () => {
  const { keycast, say } = setup()
  /** @type {unknown[]} */
  const seen = []
  const handle = keycast.value('a:1')
  const end = handle.subscribe(({ value }) => seen.push(value))
  expect(seen).toEqual([undefined])
  await say('a:1', 1)
  end()
  await say('a:1', 2)
  expect(seen).toEqual([undefined, 1])
})

test('a closed handle is silent, and closing twice counts once', async () => {
  const { keycast, say } = setup()
  const [one, two] = [keycast.value('a:1'), keycast.value('a:1')]
  /** @type {unknown[]} */
  const seen = []
  one.on('change', ({ value }) => seen.push(value))
  await say('a:1', 1)
  one.close()
  one.close()
  one.on('change', () => seen.push('after the close'))
  await say('a:1', 2)
  expect(seen).toEqual([1])
  expect(two.state.value).toBe(2)
})

test('an iterator gives the latest: what came while the loop was busy is left out', async () => {
  const { keycast, say, settle } = setup()
  const handle = keycast.value('a:1')
  /** @type {unknown[]} */
  const seen = []
  let goOn = () => {}
  const loop = (async () => {
    for await (const { value } of handle) {
      seen.push(value)
      await new Promise(resolve => {
        goOn = () => resolve(undefined)
      })
    }
    return 'ended'
  })()
  await say('a:1', 1)
  await settle()
  await say('a:1', 2)
  await say('a:1', 3)
  goOn()
  await settle()
  expect(seen).toEqual([1, 3])
  goOn()
  await settle()
  handle.close()
  await expect(loop).resolves.toBe('ended')
  for await (const _ of handle) throw new Error('a closed handle gives nothing')
})

test('a loop that is left leaves the handle as it was', async () => {
  const { keycast, say } = setup()
  const handle = keycast.value('a:1')
  await say('a:1', 1)
  for await (const { value } of handle) {
    expect(value).toBe(1)
    break
  }
  await say('a:1', 2)
  expect(handle.state.value).toBe(2)
})

test('an iterator throws the error that ends the subscription, and gives one that heals', async () => {
  const { keycast, fail } = setup()
  const handle = keycast.value('a:1')
  const iterator = handle[Symbol.asyncIterator]()
  const first = iterator.next()
  await fail('a:1', 'backend_timeout', 500)
  const { value: state } = await first
  expect(state?.error).toBeInstanceOf(KeycastError)
  expect(state?.error).toMatchObject({ code: 'backend_timeout', key: 'a:1', retryAfterMs: 500, name: 'KeycastError' })
  const second = iterator.next()
  await fail('a:1', 'backend_refused')
  await expect(second).rejects.toMatchObject({ code: 'backend_refused', retryAfterMs: undefined })
  expect(await iterator.next()).toEqual({ done: true, value: undefined })
})

test('the end of the client ends iterators quietly where the application asked for it', async () => {
  const { keycast, say } = setup()
  const handle = keycast.value('a:1')
  await say('a:1', 1)
  const iterator = handle[Symbol.asyncIterator]()
  await iterator.next()
  const last = iterator.next()
  keycast.close()
  expect(await last).toEqual({ done: true, value: undefined })
  expect(handle.state.error).toMatchObject({ code: 'closed' })
})

test('a get gives up when its signal says so', async () => {
  const { keycast, settle, deeds } = setup()
  const abort = new AbortController()
  const asked = keycast.get('a:1', { signal: abort.signal })
  await settle()
  abort.abort(new Error('enough'))
  await expect(asked).rejects.toThrow('enough')
  await expect(keycast.get('a:1', { signal: abort.signal })).rejects.toThrow('enough')
  expect(deeds.filter(deed => 'out' in deed)).toHaveLength(1)
})

test('two calls of next() at once are given two states, or both the end', async () => {
  const { keycast, say, settle } = setup()
  const handle = keycast.value('a:1')
  const iterator = handle[Symbol.asyncIterator]()
  const both = [iterator.next(), iterator.next()]
  await say('a:1', 1)
  await settle()
  await say('a:1', 2)
  expect((await Promise.all(both)).map(({ value }) => value.value)).toEqual([1, 2])
  const last = [iterator.next(), iterator.next()]
  handle.close()
  expect((await Promise.all(last)).map(({ done }) => done)).toEqual([true, true])
})

test('an iterator that waits may be ended', async () => {
  const { keycast, settle } = setup()
  const handle = keycast.value('a:1')
  const iterator = handle[Symbol.asyncIterator]()
  const waiting = iterator.next()
  await settle()
  expect(await iterator.return?.()).toEqual({ done: true, value: undefined })
  expect(await waiting).toEqual({ done: true, value: undefined })
})
