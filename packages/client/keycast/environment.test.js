import { completeEnvironment } from './environment.js'

class FakeWebSocket {}
const given = { WebSocket: /** @type {any} */ (FakeWebSocket) }

/** Runs something while the global object has more than Node gives it. @param {object} more @param {() => void} run */
function within(more, run) {
  const world = /** @type {any} */ (globalThis)
  const before = Object.getOwnPropertyDescriptors(world)
  for (const [name, value] of Object.entries(more)) {
    Object.defineProperty(world, name, { value, configurable: true, writable: true })
  }
  try {
    run()
  } finally {
    for (const name of Object.keys(more)) {
      if (before[name]) Object.defineProperty(world, name, before[name])
      else delete world[name]
    }
  }
}

test('Node has clocks, chance and SHA-256, and no page', async () => {
  const environment = completeEnvironment(given)
  expect(environment).toMatchObject({ WebSocket: FakeWebSocket, document: undefined, window: undefined })
  expect(environment.isOffline()).toBe(false)
  expect(environment.random()).toBeLessThan(1)
  expect(environment.date()).toBeGreaterThan(environment.now())
  const hash = await environment.subtle?.digest('SHA-256', new Uint8Array())
  expect(Buffer.from(/** @type {ArrayBuffer} */ (hash)).toString('hex')).toMatch(/^e3b0c442/)
  const rung = new Promise(resolve => environment.setTimeout(() => resolve('rung'), 0))
  environment.clearTimeout(environment.setTimeout(() => expect('cleared').toBe('never called'), 0))
  expect(await rung).toBe('rung')
})

test('what is handed in is taken, also that there is no such thing', () => {
  const now = () => 7
  const environment = completeEnvironment({ ...given, now, subtle: undefined })
  expect(environment.now).toBe(now)
  expect(environment.subtle).toBeUndefined()
})

test('a worker knows of the network without a page; where nothing tells of its return, nothing counts as offline', () => {
  within({ navigator: { onLine: false } }, () => expect(completeEnvironment(given).isOffline()).toBe(false))
  within({ navigator: { onLine: false }, addEventListener: () => {} }, () => {
    const environment = completeEnvironment(given)
    expect(environment.isOffline()).toBe(true)
    expect(environment.window).toBe(globalThis)
    expect(environment.document).toBeUndefined()
  })
})

test('a page without SHA-256, over plain HTTP, does without', () => {
  within({ crypto: {} }, () => expect(completeEnvironment(given).subtle).toBeUndefined())
})
