import { randomBytes } from 'node:crypto'
import { viewerKey } from '@keycast/backbone'
import { versionOf } from '@keycast/protocol'
import { realWorld } from '@keycast/service'
import { applyDelta } from 'fossil-delta'
import { randomNumbers } from '../../../test/support/random.js'
import { createDeltas, type Deltas } from './deltas.ts'

const MIB = 1024 ** 2

const lease = (key: string, version: string | undefined, delta = true) => ({ key, version, delta })

const of = (version: string, store = true) => ({ version, store })

const body = (n: number, bytes = 5_000) => Buffer.from(`{"n":${n},"pad":"${'lorem ipsum '.repeat(bytes / 12)}"}`)

/** Makes a key's deltas one after the other. */
function follow(deltas: Deltas, key = 'a:1') {
  let held: string | undefined
  return (bytes: Buffer) => {
    const version = versionOf(bytes)
    const made = deltas.make(lease(key, held), { version, store: true }, bytes)
    held = version
    return made
  }
}

test('a small change makes a small delta, from the version held to the bytes themselves', () => {
  const next = follow(createDeltas({ ...realWorld, bytesMax: MIB }))
  expect(next(body(1))).toEqual({})
  const { delta } = next(body(2))
  expect(delta?.length).toBeLessThan(60)
  expect(Buffer.from(applyDelta(body(1), delta as Buffer))).toEqual(body(2))
})

test('whatever is changed, cut, doubled or put in, a delta makes exactly the new bytes', () => {
  const random = randomNumbers(7)
  const upTo = (max: number) => Math.floor(random() * max)
  const next = follow(createDeltas({ ...realWorld, bytesMax: MIB, now: () => 0 }))
  let held = randomBytes(2_000)
  next(held)
  let made = 0
  for (let n = 0; n < 2_000; n++) {
    const at = upTo(held.length)
    const to = Math.min(held.length, at + upTo(200))
    const parts = [
      [held.subarray(0, at), Buffer.from([upTo(256)]), held.subarray(at + 1)],
      [held.subarray(0, at), held.subarray(to)],
      [held.subarray(0, to), held.subarray(at)],
      [held.subarray(to), held.subarray(0, to)],
      [held.subarray(0, at), Buffer.alloc(upTo(300), upTo(3)), held.subarray(at)],
      [randomBytes(200 + upTo(2_000))],
    ]
    const changed = Buffer.concat(parts[upTo(parts.length)]).subarray(0, 20_000)
    if (changed.equals(held)) continue
    const { delta } = next(changed)
    if (delta) {
      made++
      expect(Buffer.from(applyDelta(held, delta)).equals(changed)).toBe(true)
    }
    held = changed
  }
  expect(made).toBeGreaterThan(500)
})

test('none is made from a version that is not held here', () => {
  const deltas = createDeltas({ ...realWorld, bytesMax: MIB })
  expect(deltas.make(lease('a:1', 'v1'), of('v2'), body(2))).toEqual({ skipped: 'no_base' })
  expect(deltas.make(lease('a:1', 'v1'), of('v3'), body(3))).toEqual({ skipped: 'no_base' })
  expect(deltas.make(lease('a:1', 'v3'), of('v4'), body(4)).delta).toBeDefined()
  expect(deltas.make(lease('a:2', 'v4'), of('v5'), body(5))).toEqual({ skipped: 'no_base' })
})

test('where none can be of use none is made, and no body is held for the next one', () => {
  const deltas = createDeltas({ ...realWorld, bytesMax: 12_000 })
  for (const key of ['a:1', 'a:2']) deltas.make(lease(key, undefined), of('v1'), body(1))
  for (const key of ['a:3', 'a:4', 'a:2']) {
    expect(deltas.make(lease(key, undefined, false), of('v1'), body(1))).toEqual({})
    expect(deltas.make(lease(key, 'v1', false), of('v2'), body(2))).toEqual({})
  }
  expect(deltas.make(lease('a:2', 'v2'), of('v3'), body(3))).toEqual({ skipped: 'no_base' })
  expect(deltas.make(lease('a:1', 'v1'), of('v2'), body(2)).delta).toBeDefined()
})

test.each([
  ['too small to pay', body(1, 24), 'size'],
  ['too large to be quick', Buffer.alloc(MIB / 2 + 1), 'size'],
  ['too different', randomBytes(5_000), 'gain'],
])('none is made of a body that is %s', (_, bytes, skipped) => {
  const next = follow(createDeltas({ ...realWorld, bytesMax: 8 * MIB }))
  next(body(1))
  expect(next(bytes)).toEqual({ skipped })
})

test('the bodies held are those used last, up to a limit of bytes', () => {
  const deltas = createDeltas({ ...realWorld, bytesMax: 12_000 })
  for (const key of ['a:1', 'a:2', 'a:3']) deltas.make(lease(key, undefined), of('v1'), body(1))
  expect(deltas.make(lease('a:1', 'v1'), of('v2'), body(2))).toEqual({ skipped: 'no_base' })
  expect(deltas.make(lease('a:3', 'v1'), of('v2'), body(2)).delta).toBeDefined()
})

test('a body that is to be held only while watched is let go of ten seconds after it was pulled', () => {
  jest.useFakeTimers()
  try {
    const deltas = createDeltas({ ...realWorld, bytesMax: MIB, now: Date.now })
    deltas.make(lease('a:1', undefined), of('v1', false), body(1))
    deltas.make(lease('a:2', undefined), of('v1'), body(1))
    jest.advanceTimersByTime(9_000)
    expect(deltas.make(lease('a:1', 'v1'), of('v2', false), body(2)).delta).toBeDefined()
    jest.advanceTimersByTime(11_000)
    expect(deltas.make(lease('a:1', 'v2'), of('v3', false), body(3))).toEqual({ skipped: 'no_base' })
    expect(deltas.make(lease('a:2', 'v1'), of('v2'), body(2)).delta).toBeDefined()
  } finally {
    jest.useRealTimers()
  }
})

test("a user's own body is let go of a minute after it was pulled, though it may be stored", () => {
  jest.useFakeTimers()
  try {
    const own = viewerKey('a:1', 'x'.repeat(43))
    const deltas = createDeltas({ ...realWorld, bytesMax: MIB, now: Date.now })
    deltas.make(lease(own, undefined), of('v1'), body(1))
    jest.advanceTimersByTime(59_000)
    expect(deltas.make(lease(own, 'v1'), of('v2'), body(2)).delta).toBeDefined()
    jest.advanceTimersByTime(61_000)
    expect(deltas.make(lease(own, 'v2'), of('v3'), body(3))).toEqual({ skipped: 'no_base' })
  } finally {
    jest.useRealTimers()
  }
})

test("a user's own body is held for as long as the backend confirms it, and no longer for those that do not want it", () => {
  jest.useFakeTimers()
  try {
    const own = viewerKey('a:1', 'x'.repeat(43))
    const deltas = createDeltas({ ...realWorld, bytesMax: MIB, now: Date.now })
    deltas.make(lease(own, undefined), of('v1'), body(1))
    for (let times = 0; times < 3; times++) {
      jest.advanceTimersByTime(50_000)
      deltas.confirm(lease(own, 'v1'), { store: true })
    }
    expect(deltas.make(lease(own, 'v1'), of('v2'), body(2)).delta).toBeDefined()
    jest.advanceTimersByTime(50_000)
    deltas.confirm(lease(own, 'other'), { store: true })
    jest.advanceTimersByTime(11_000)
    expect(deltas.make(lease(own, 'v2'), of('v3'), body(3))).toEqual({ skipped: 'no_base' })
    deltas.confirm(lease(own, 'v3', false), { store: true })
    expect(deltas.make(lease(own, 'v3'), of('v4'), body(4))).toEqual({ skipped: 'no_base' })
  } finally {
    jest.useRealTimers()
  }
})

test('without bytes to hold bodies in there are no deltas', () => {
  const next = follow(createDeltas({ ...realWorld, bytesMax: 0 }))
  next(body(1))
  expect(next(body(2))).toEqual({})
})

test('deltas take a quarter of the time at most, saved up for when many keys change at once', () => {
  let nowMs = 0
  // Each look at the clock finds it 50 ms on: that long a delta takes.
  const deltas = createDeltas({ ...realWorld, bytesMax: MIB, now: () => (nowMs += 50) })
  const next = follow(deltas)
  next(body(0))
  let made = 0
  let n = 1
  for (; n <= 100; n++) if (next(body(n)).delta) made++
  const spentMs = made * 50
  expect(made).toBeGreaterThan(10)
  expect(spentMs).toBeLessThanOrEqual(500 + 50 + nowMs / 4)
  expect(next(body(n))).toEqual({ skipped: 'time' })
  nowMs += 2_000
  expect(next(body(n + 1)).delta).toBeDefined()
})
