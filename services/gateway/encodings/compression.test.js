import { randomBytes } from 'node:crypto'
import { AWAITS, VALUE } from '../delivery/due.js'
import { createValue, valueBytes } from '../keys/value.js'
import { createCounts } from '../metrics.js'
import { deflatedFrame } from './compressed.js'
import { createCompression } from './compression.js'

const text = (/** @type {string} */ word, bytes = 10_000) =>
  Buffer.from(JSON.stringify(word.repeat(bytes / word.length)))

/** @param {(source: Buffer) => Promise<Buffer>} [deflate] */
function setUp(deflate) {
  /** @type {Map<string, import('../keys/value.js').Value>} */
  const held = new Map()
  /** @type {{ source: Buffer, done: (blocks?: Buffer) => void, fail: () => void }[]} */
  const jobs = []
  /** @type {unknown[]} */
  const resumed = []
  /** @type {string[]} */
  const kept = []
  const counts = createCounts()
  const compression = createCompression({
    latest: key => held.get(key),
    kept: key => kept.push(key),
    resume: waiting => resumed.push(...waiting),
    counts,
    observe() {},
    now: () => 0,
    deflate:
      deflate ??
      (source =>
        new Promise((resolve, reject) => {
          jobs.push({
            source,
            done: (blocks = Buffer.from('less')) => resolve(blocks),
            fail: () => reject(new Error('zlib')),
          })
        })),
  })
  let versions = 0
  return {
    compression,
    counts,
    jobs,
    resumed,
    kept,
    /** @param {string} key @param {Buffer} body */
    hold(key, body) {
      const value = createValue({
        key,
        version: `v${++versions}`,
        contentType: 'application/json',
        format: 'json',
        body,
      })
      held.set(key, value)
      return value
    },
    forget: (/** @type {string} */ key) => held.delete(key),
    /** A subscription that lacks the key's value. @param {string} key @param {boolean} [bytes] */
    subscription: (key, bytes = false) =>
      /** @type {import('../keys/subscriptions.js').Subscription} */ (
        /** @type {unknown} */ ({
          lacks: VALUE,
          entry: {
            get value() {
              return held.get(key)
            },
          },
          session: { bytes },
        })
      ),
    settle: () => new Promise(resolve => setImmediate(resolve)),
  }
}

test('one value is compressed once for all who wait for it, and they are told', async () => {
  const { compression, counts, jobs, resumed, kept, hold, subscription, settle } = setUp()
  const value = hold('a:1', text('ab'))
  const waiting = [subscription('a:1'), subscription('a:1')]
  expect(waiting.map(compression.isAwaited)).toEqual([true, true])
  expect(waiting.map(({ lacks }) => lacks)).toEqual([VALUE | AWAITS, VALUE | AWAITS])
  expect(jobs).toHaveLength(1)
  expect(deflatedFrame(value, false)).toBeUndefined()
  const bytesBefore = valueBytes(value)

  jobs[0].done()
  await settle()
  expect(resumed).toEqual(waiting)
  expect(kept).toEqual(['a:1'])
  expect(valueBytes(value)).toBe(bytesBefore + 'less'.length)
  expect(counts.compressions.kept).toBe(1)
  expect(deflatedFrame(value, false)?.rest.toString()).toBe('less')
  expect(deflatedFrame(value, false)?.start).toBe(deflatedFrame(value, false)?.start)
  expect(compression.isAwaited(subscription('a:1'))).toBe(false)
  expect(jobs).toHaveLength(1)
})

test('each subprotocol has its own, made of what it sends', () => {
  const { compression, jobs, hold, subscription } = setUp()
  const body = text('ab')
  hold('a:1', body)
  expect(compression.isAwaited(subscription('a:1'))).toBe(true)
  expect(compression.isAwaited(subscription('a:1', true))).toBe(true)
  expect(jobs.map(({ source }) => source.toString())).toEqual([`${body}}`, `${body}`])
})

test('what lacks no value, or lacks a small one, does not wait', () => {
  const { compression, jobs, hold, subscription } = setUp()
  expect(compression.isAwaited(subscription('a:none'))).toBe(false)
  hold('a:small', text('ab', 1_000))
  expect(compression.isAwaited(subscription('a:small'))).toBe(false)
  hold('a:large', text('ab'))
  expect(compression.isAwaited(Object.assign(subscription('a:large'), { lacks: 2 }))).toBe(false)
  expect(jobs).toHaveLength(0)
})

test('a version that is overtaken is dropped, and who waited for it does not wait for the newer one', async () => {
  const { compression, counts, jobs, resumed, hold, subscription, settle } = setUp()
  const first = hold('a:1', text('ab'))
  const early = subscription('a:1')
  compression.isAwaited(early)
  const second = hold('a:1', text('cd'))
  const late = subscription('a:1')
  expect(compression.isAwaited(late)).toBe(true)

  jobs[0].done()
  await settle()
  expect(resumed).toEqual([early])
  expect(counts.compressions).toMatchObject({ overtaken: 1, kept: 0 })
  expect(deflatedFrame(first, false)).toBeUndefined()
  expect(compression.isAwaited(early)).toBe(false)

  // Those who came later have it compressed, and so has who comes now.
  jobs[1].done()
  await settle()
  expect(resumed).toEqual([early, late])
  expect(deflatedFrame(second, false)).toBeDefined()
})

test('a version that is overtaken before its turn costs nothing', async () => {
  const { compression, counts, jobs, resumed, hold, forget, subscription, settle } = setUp()
  for (const key of ['a:1', 'a:2', 'a:3', 'a:4']) {
    hold(key, text('ab'))
    compression.isAwaited(subscription(key))
  }
  expect(jobs).toHaveLength(2)
  hold('a:3', text('cd'))
  forget('a:4')
  for (const { done } of jobs) done()
  await settle()
  expect(jobs).toHaveLength(2)
  expect(resumed).toHaveLength(4)
  expect(counts.compressions).toMatchObject({ kept: 2, overtaken: 2 })
})

test('what zlib fails at, and what it does not make smaller, is sent as it is', async () => {
  const failing = setUp()
  const value = failing.hold('a:1', text('ab'))
  failing.compression.isAwaited(failing.subscription('a:1'))
  failing.jobs[0].fail()
  await failing.settle()
  expect(failing.resumed).toHaveLength(1)
  expect(deflatedFrame(value, false)).toBeUndefined()
  expect(failing.compression.isAwaited(failing.subscription('a:1'))).toBe(false)
  expect(failing.counts.compressions.failed).toBe(1)

  const noise = setUp(async source => randomBytes(source.length + 5))
  noise.hold('a:1', text('ab'))
  noise.compression.isAwaited(noise.subscription('a:1'))
  await noise.settle()
  expect(noise.resumed).toHaveLength(1)
  expect(noise.compression.isAwaited(noise.subscription('a:1'))).toBe(false)
  expect(noise.counts.compressions.larger).toBe(1)
})

test('past the backlog nobody waits, unless the value alone is more than that', async () => {
  const { compression, counts, jobs, hold, subscription, settle } = setUp()
  const huge = text('ab', 5 * 1024 ** 2)
  hold('a:1', huge)
  hold('a:2', huge)
  expect(compression.isAwaited(subscription('a:1'))).toBe(true)
  expect(compression.isAwaited(subscription('a:2'))).toBe(false)
  expect(counts.compressions.busy).toBe(1)
  jobs[0].done()
  await settle()
  hold('a:2', huge)
  expect(compression.isAwaited(subscription('a:2'))).toBe(true)
})
