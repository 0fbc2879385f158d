// The client against a gateway that breaks everything that can break, at random. The shown content always matches its
// version, never goes back, and in the end is the latest of exactly the wanted keys.
import { createHash } from 'node:crypto'
import { createDelta } from 'fossil-delta'
import { createRandom, randomNumbers } from '../../../../test/support/random.js'
import { connect } from '../../keycast.js'
import { createWorld, welcome } from '../../test-support.js'

const KEYS = ['a:0', 'a:1', 'a:2']
const LIMITS = { keysPerSession: 10, requestsPerSecond: 100 }
const pad = 'what was said in this conversation until now. '.repeat(4)

const contentOf = (/** @type {number} */ revision) =>
  Buffer.from(JSON.stringify({ revision, pad: pad + revision + pad }))
const versionOf = (/** @type {Buffer} */ bytes) =>
  createHash('sha256').update(bytes).digest().toString('base64url', 0, 16)

/** @param {number} seed */
async function live(seed) {
  const random = randomNumbers(seed)
  const integer = (/** @type {number} */ below) => Math.floor(random() * below)
  const { mutate } = createRandom(seed)
  const world = createWorld()
  world.network.random = 0.1
  const keycast = connect('ws://gateway/ws', { environment: world.environment, keepMs: 2_000 })

  /** The latest of each key, as the gateway has it. */
  const revisions = new Map(KEYS.map(key => [key, 0]))
  const latest = (/** @type {string} */ key) => contentOf(revisions.get(key) ?? 0)
  /**
   * The session's keys, each with the content that the client holds as the gateway sees it.
   *
   * @type {Map<string, Buffer | undefined>}
   */
  let session = new Map()
  let isOpen = false
  let isHonest = false

  /** @type {Map<string, { handle: import('../../keycast.js').ValueHandle, shown: number }>} */
  const watched = new Map()

  /** @param {string} key */
  function inspect(key) {
    const one = watched.get(key)
    if (!one || one.handle.state.version === undefined) return
    const { value, version } = one.handle.state
    const { revision } = /** @type {{ revision: number }} */ (value)
    if (versionOf(contentOf(revision)) !== version) throw new Error(`${key} shows what is not its version`)
    if (JSON.stringify(value) !== contentOf(revision).toString()) throw new Error(`${key} shows a damaged content`)
    if (revision < one.shown) throw new Error(`${key} went back from ${one.shown} to ${revision}`)
    one.shown = revision
  }

  /** Gives the session the latest of a key, as a gateway may. @param {string} key */
  function tell(key) {
    const held = session.get(key)
    const bytes = latest(key)
    const line = { key, version: versionOf(bytes), contentType: 'application/json' }
    session.set(key, bytes)
    if (held && versionOf(held) === line.version && integer(2)) return world.socket().say({ type: 'current', ...line })
    if (!held || (isHonest && !integer(3))) return world.socket().say({ type: 'value', ...line }, bytes)
    const delta = Buffer.from(createDelta(held, bytes))
    const head = { type: 'delta', from: versionOf(held), ...line }
    const fault = isHonest ? 0 : integer(6)
    if (fault === 1) return world.socket().say(head, mutate(delta))
    if (fault === 2) return world.socket().say({ ...head, from: versionOf(contentOf(1_000)) }, delta)
    if (fault === 3) return world.socket().say({ ...head, version: versionOf(contentOf(1_000)) }, delta)
    world.socket().say(head, delta)
  }

  /** @param {any} request */
  function answer({ type, id, keys }) {
    if (type === 'ping') return world.socket().say({ type: 'pong', id, count: 1 })
    if (!isHonest && !integer(5)) {
      return world.socket().say({ type: 'error', id, code: 'rate_limited', message: '', retryAfterMs: integer(500) })
    }
    if (type === 'unsubscribe') {
      for (const key of keys) session.delete(key)
      return world.socket().say({ type: 'ok', id })
    }
    const named = keys.map((/** @type {any} */ entry) => (typeof entry === 'string' ? { key: entry } : entry))
    world.socket().say({ type: 'subscribed', id, keys: named })
    for (const { key, version } of named) {
      const held = Array.from({ length: (revisions.get(key) ?? 0) + 1 }, (_, n) => contentOf(n))
      session.set(
        key,
        held.find(bytes => versionOf(bytes) === version),
      )
      tell(key)
    }
  }

  function serve() {
    for (const deed of world.done()) {
      if ('dials' in deed) {
        session = new Map()
        isOpen = false
        if (isHonest || integer(4)) {
          isOpen = true
          world.socket().say(welcome(LIMITS))
        } else world.socket().lose(1006)
      } else if ('out' in deed && isOpen) answer(deed.out)
    }
  }

  const acts = [
    (/** @type {string} */ key) => {
      revisions.set(key, (revisions.get(key) ?? 0) + 1)
      if (session.has(key)) tell(key)
    },
    (/** @type {string} */ key) => {
      if (watched.has(key)) return
      const handle = keycast.value(key)
      watched.set(key, { handle, shown: -1 })
      handle.on('change', () => inspect(key))
    },
    (/** @type {string} */ key) => {
      watched.get(key)?.handle.close()
      watched.delete(key)
    },
    (/** @type {string} */ key) => {
      if (!session.has(key)) return
      const code = integer(2) ? 'not_found' : 'backend_error'
      if (code === 'not_found') session.set(key, undefined)
      world.socket().say({ type: 'error', key, subscribed: true, code, message: '', retryAfterMs: 1 })
    },
    (/** @type {string} */ key) => {
      if (session.has(key)) world.socket().say({ type: 'stale', key, sinceMs: 1, code: 'backend_timeout' })
    },
    (/** @type {string} */ key) => {
      if (!session.delete(key)) return
      world.socket().say({ type: 'error', key, subscribed: false, code: 'forbidden', message: '' })
    },
    () => {
      if (!isOpen || integer(4)) return
      isOpen = false
      session = new Map()
      world.socket().lose(1006)
    },
    () => world.pass(integer(3_000)),
    () => world.settle(),
  ]

  for (let step = 0; step < 60; step += 1) {
    await acts[integer(acts.length)](KEYS[integer(KEYS.length)])
    if (integer(2)) await world.settle()
    serve()
  }
  isHonest = true
  for (let round = 0; round < 20; round += 1) {
    serve()
    await world.pass(3_000)
  }
  for (const key of session.keys()) acts[0](key)
  for (let round = 0; round < 3; round += 1) {
    await world.settle()
    serve()
  }
  expect([...session.keys()].sort()).toEqual([...watched.keys()].sort())
  for (const [key, { handle }] of watched) {
    expect(handle.state).toMatchObject({ version: versionOf(latest(key)), stale: false, error: undefined })
  }
  keycast.close()
}

test.each(Array.from({ length: 10 }, (_, n) => n))(
  'worlds %i00 and after',
  async hundred => {
    for (let n = 0; n < 30; n += 1) {
      const seed = hundred * 100 + n
      try {
        await live(seed)
      } catch (error) {
        throw new Error(`in world ${seed}: ${/** @type {Error} */ (error).message}`)
      }
    }
  },
  60_000,
)
