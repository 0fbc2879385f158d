import { randomBytes } from 'node:crypto'
import { createCounts } from '../counts.ts'
import { PARKED } from '../topics/topics.ts'
import { mustWait, VALUE } from '../topics/values/due-values.ts'
import type { ValueSubscription } from '../topics/values/subscriptions.ts'
import { createValue, type Value, valueBytes } from '../topics/values/value.ts'
import { createEncodings } from './index.ts'

const text = (word: string, bytes = 10_000) => Buffer.from(JSON.stringify(word.repeat(bytes / word.length)))

function setUp(deflate?: (source: Buffer) => Promise<Buffer>) {
  const held = new Map<string, Value>()
  const jobs: { source: Buffer; done: (blocks?: Buffer) => void; fail: () => void }[] = []
  const resumed: unknown[] = []
  const grown: string[] = []
  const counts = createCounts()
  const encodings = createEncodings({
    latest: key => held.get(key),
    grown: key => grown.push(key),
    resume: waiting => resumed.push(...waiting),
    counts,
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
  const encodingOf = (isBytes: boolean) =>
    encodings.forTransport({ subprotocol: isBytes ? 'keycast.v1.bytes' : '', isCompressed: true })
  let versions = 0
  return {
    counts,
    jobs,
    resumed,
    grown,
    hold(key: string, body: Buffer) {
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
    forget: (key: string) => held.delete(key),
    /** The pieces of a value if it is sent compressed. */
    compressed(value: Value) {
      const pieces: Buffer[] = []
      encodingOf(false).addValue(value, pieces)
      return pieces[0][0] & 0x40 ? pieces : undefined
    },
    /** A subscription that is due the key's value. */
    subscription: (key: string, isBytes = false) =>
      ({
        due: VALUE,
        topic: {
          get value() {
            return held.get(key)
          },
        },
        session: { encoding: encodingOf(isBytes) },
      }) as unknown as ValueSubscription,
    settle: () => new Promise(resolve => setImmediate(resolve)),
  }
}

test('one value is compressed once for all subscriptions that wait for it, and they are resumed', async () => {
  const { counts, jobs, resumed, grown, compressed, hold, subscription, settle } = setUp()
  const value = hold('a:1', text('ab'))
  const waiting = [subscription('a:1'), subscription('a:1')]
  expect(waiting.map(mustWait)).toEqual([true, true])
  expect(waiting.map(({ due }) => due)).toEqual([VALUE | PARKED, VALUE | PARKED])
  expect(jobs).toHaveLength(1)
  expect(compressed(value)).toBeUndefined()
  const bytesBefore = valueBytes(value)

  jobs[0].done()
  await settle()
  expect(resumed).toEqual(waiting)
  expect(grown).toEqual(['a:1'])
  expect(valueBytes(value)).toBe(bytesBefore + 'less'.length)
  expect(counts.compressions.kept).toBe(1)
  expect(compressed(value)?.[1].toString()).toBe('less')
  expect(compressed(value)?.[0]).toBe(compressed(value)?.[0])
  expect(mustWait(subscription('a:1'))).toBe(false)
  expect(jobs).toHaveLength(1)
})

test('each subprotocol has its own blocks, made of what it sends', () => {
  const { jobs, hold, subscription } = setUp()
  const body = text('ab')
  hold('a:1', body)
  expect(mustWait(subscription('a:1'))).toBe(true)
  expect(mustWait(subscription('a:1', true))).toBe(true)
  expect(jobs.map(({ source }) => source.toString())).toEqual([`${body}}`, `${body}`])
})

test('a subscription that is due no value, or a small one, does not wait', () => {
  const { jobs, hold, subscription } = setUp()
  expect(mustWait(subscription('a:none'))).toBe(false)
  hold('a:small', text('ab', 1_000))
  expect(mustWait(subscription('a:small'))).toBe(false)
  hold('a:large', text('ab'))
  expect(mustWait(Object.assign(subscription('a:large'), { due: 2 }))).toBe(false)
  expect(jobs).toHaveLength(0)
})

test('a version that is overtaken is dropped, and a subscription that waited for it does not wait for the newer one', async () => {
  const { counts, jobs, resumed, compressed, hold, subscription, settle } = setUp()
  const first = hold('a:1', text('ab'))
  const early = subscription('a:1')
  mustWait(early)
  const second = hold('a:1', text('cd'))
  const late = subscription('a:1')
  expect(mustWait(late)).toBe(true)

  jobs[0].done()
  await settle()
  expect(resumed).toEqual([early])
  expect(counts.compressions).toMatchObject({ overtaken: 1, kept: 0 })
  expect(compressed(first)).toBeUndefined()
  expect(mustWait(early)).toBe(false)

  // Later subscriptions got the compressed form, and a new one gets it as well.
  jobs[1].done()
  await settle()
  expect(resumed).toEqual([early, late])
  expect(compressed(second)).toBeDefined()
})

test('a version that is overtaken before its turn costs nothing', async () => {
  const { counts, jobs, resumed, hold, forget, subscription, settle } = setUp()
  for (const key of ['a:1', 'a:2', 'a:3', 'a:4']) {
    hold(key, text('ab'))
    mustWait(subscription(key))
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

test('a value that zlib fails at, or does not make smaller, is sent as it is', async () => {
  const failing = setUp()
  const value = failing.hold('a:1', text('ab'))
  mustWait(failing.subscription('a:1'))
  failing.jobs[0].fail()
  await failing.settle()
  expect(failing.resumed).toHaveLength(1)
  expect(failing.compressed(value)).toBeUndefined()
  expect(mustWait(failing.subscription('a:1'))).toBe(false)
  expect(failing.counts.compressions.failed).toBe(1)

  const noise = setUp(async source => randomBytes(source.length + 5))
  noise.hold('a:1', text('ab'))
  mustWait(noise.subscription('a:1'))
  await noise.settle()
  expect(noise.resumed).toHaveLength(1)
  expect(mustWait(noise.subscription('a:1'))).toBe(false)
  expect(noise.counts.compressions.larger).toBe(1)
})

test('past the backlog no session waits, unless the value alone is more than that; the next one may have it compressed', async () => {
  const { counts, jobs, compressed, hold, subscription, settle } = setUp()
  const huge = text('ab', 5 * 1024 ** 2)
  hold('a:1', huge)
  const second = hold('a:2', huge)
  expect(mustWait(subscription('a:1'))).toBe(true)
  expect(mustWait(subscription('a:2'))).toBe(false)
  expect(counts.compressions.busy).toBe(1)
  expect(mustWait(subscription('a:2'))).toBe(false)
  expect(counts.compressions.busy).toBe(1)
  jobs[0].done()
  await settle()
  expect(mustWait(subscription('a:2'))).toBe(true)
  jobs[1].done()
  await settle()
  expect(compressed(second)).toBeDefined()
})
