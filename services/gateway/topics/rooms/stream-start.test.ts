import { noContainment } from '@keycast/service'
import { createCounts } from '../../counts.ts'
import { MESSAGES } from './room.ts'
import { createStreamStart } from './stream-start.ts'

function setUp({ isAvailable = true } = {}) {
  const sent: any[] = []
  const removed: unknown[] = []
  const reads: { after: number; answer: (page: any) => void }[] = []
  const counts = createCounts()
  let at = 0
  /** The tail reaches back to 50. */
  const tails = { seal() {}, covers: (_: unknown, cursor: number) => cursor >= 50 }
  const read = (_: unknown, after: number) => new Promise(answer => reads.push({ after, answer })) as Promise<any>
  const streamStart = createStreamStart({
    containment: noContainment,
    backbone: { isAvailable: () => isAvailable },
    tails,
    pages: { after: read, before: read },
    followers: {
      remove(subscription) {
        subscription.index = -1
        subscription.topic.subscriptions = []
        subscription.session.subscriptions.clear()
        removed.push(subscription)
      },
    },
    gate: { release() {} },
    watching: { end() {} },
    outbox: {
      send: (_, message) => void sent.push(message),
      forget(subscription) {
        subscription.due = 0
      },
      owe: (subscription, bits) => {
        subscription.due = bits
      },
      close() {},
    },
    counts,
    now: () => at,
  })
  const createSubscription = () => {
    const topic = { key: 'room:1', epoch: 'E1', reached: 100, oldest: 5, subscriptions: [] as unknown[] }
    const subscription = {
      session: { subscriptions: new Map([['room:1', {}]]) },
      topic,
      cursor: 0,
      index: 0,
      due: 0,
    } as any
    topic.subscriptions.push(subscription)
    return subscription
  }
  const begin = (start: any, subscription: any = createSubscription()) => {
    streamStart.begin(subscription, { id: 7, ...start })
    return subscription
  }
  const answer = async (page: object, index = 0) => {
    reads[index].answer({ epoch: 'E1', oldest: 5, newest: 100, ...page })
    for (let n = 0; n < 5; n++) await undefined
  }
  const pass = (ms: number) => {
    at += ms
    streamStart.retry()
  }
  return { streamStart, sent, removed, reads, counts, createSubscription, begin, answer, pass }
}

/** A stream whose beginning is due to its session. */
const placed = (cursor: number, isRecovered: boolean, head = 100) => ({
  cursor,
  due: MESSAGES,
  placing: { head: Math.max(cursor, head), isRecovered, start: { id: 7 } },
})

const after = (seq: number, epoch = 'E1') => ({ after: { epoch, seq }, last: undefined, presence: false })

test.each([
  ['without a start', undefined, placed(100, false)],
  ['after a position in the tail', after(60), placed(60, true)],
  ['after the head', after(100), placed(100, true)],
  ['after a position of another history', after(60, 'E0'), placed(100, false)],
  ['with the last few', { after: undefined, last: 10, presence: false }, placed(90, false)],
])('%s the place is known at once', (_, start, expected) => {
  expect(setUp().begin(start)).toMatchObject(expected)
})

test.each([
  ['is whole', 20, {}, placed(20, true)],
  ['begins right after it', 4, {}, placed(4, true)],
  ['no longer reaches back', 3, {}, placed(100, false)],
  ['ends before it', 101, {}, placed(100, false)],
  ['is ahead of this gateway', 103, { newest: 105 }, placed(103, true)],
])('behind the tail the journal is asked: where the history %s', async (_, seq, page, expected) => {
  const { begin, answer, reads } = setUp()
  const subscription = begin(after(seq))
  expect(subscription).toMatchObject({ due: 0, placing: { head: undefined } })
  expect(reads.map(each => each.after)).toEqual([seq])
  await answer(page)
  expect(subscription).toMatchObject(expected)
})

test('a position of a history that ended while it was looked for is not looked for in the next one', async () => {
  const { begin, answer } = setUp()
  const subscription = begin(after(20))
  subscription.topic.epoch = 'E2'
  await answer({ epoch: 'E2' })
  expect(subscription).toMatchObject(placed(100, false))
})

test('a read that others began before the message of the position came loses no place', async () => {
  const { begin, answer } = setUp()
  const subscription = begin(after(40))
  await answer({ newest: 39 })
  expect(subscription).toMatchObject(placed(40, true))
})

test('the last few are as many as there are', async () => {
  const { begin, answer } = setUp()
  const subscription = begin({ after: undefined, last: 90, presence: false })
  await answer({ first: 31 })
  expect(subscription).toMatchObject(placed(30, false))
})

test('a room whose history cannot be read now is told so, and placed when it can', async () => {
  const { streamStart, begin, answer, sent } = setUp()
  const subscription = begin(after(20))
  await answer({ code: 'journal_unavailable', message: 'm', retryAfterMs: 500 })
  expect(sent).toMatchObject([
    { type: 'error', id: 7, key: 'room:1', subscribed: true, code: 'journal_unavailable', retryAfterMs: 500 },
  ])
  streamStart.retry()
  await answer({}, 1)
  expect(subscription).toMatchObject(placed(20, true))
  expect(sent).toHaveLength(1)
})

test('while no journal answers that is said, once', () => {
  const { streamStart, begin, createSubscription, sent } = setUp({ isAvailable: false })
  const subscription = createSubscription()
  subscription.topic.epoch = undefined
  begin(undefined, subscription)
  streamStart.delay(subscription, { code: 'journal_unavailable', message: 'm', retryAfterMs: 1 })
  expect(sent).toMatchObject([{ type: 'error', id: 7, code: 'journal_unavailable', subscribed: true }])
  subscription.topic.epoch = 'E1'
  streamStart.place(subscription)
  expect(subscription).toMatchObject(placed(100, false))
})

test('while a journal answers and does not say where the room stands, that is said after a while, once', () => {
  const { streamStart, begin, createSubscription, sent, pass } = setUp()
  const waiting = Array.from({ length: 3 }, createSubscription)
  for (const subscription of waiting) {
    subscription.topic.epoch = undefined
    begin(undefined, subscription)
  }
  const [first, left, placedInTime] = waiting
  pass(4_000)
  streamStart.end(left)
  placedInTime.topic.epoch = 'E1'
  streamStart.place(placedInTime)
  expect(sent).toEqual([])
  pass(1_000)
  pass(60_000)
  expect(sent).toMatchObject([{ id: 7, key: 'room:1', code: 'journal_unavailable', subscribed: true }])
  first.topic.epoch = 'E1'
  streamStart.place(first)
  expect(first).toMatchObject(placed(100, false))
})

test('a room that the journal does not have ends the subscription', () => {
  const { streamStart, begin, createSubscription, sent, removed } = setUp()
  const subscription = createSubscription()
  subscription.topic.epoch = undefined
  begin(undefined, subscription)
  streamStart.refuse(subscription, { code: 'unknown_namespace', message: 'm' })
  expect(removed).toEqual([subscription])
  expect(sent).toMatchObject([{ type: 'error', id: 7, key: 'room:1', subscribed: false, code: 'unknown_namespace' }])
})

test('a place that was found and not written counts no more once the room has another history', () => {
  const { streamStart, begin } = setUp()
  const subscription = begin(after(60))
  Object.assign(subscription.topic, { epoch: 'E2', reached: 3, oldest: 1 })
  streamStart.placeAnew(subscription)
  expect(subscription).toMatchObject(placed(3, false, 3))
})

test('what was read for a subscription that began anew meanwhile does not place it', async () => {
  const { begin, answer } = setUp()
  const subscription = begin(after(20))
  begin(undefined, subscription)
  await answer({})
  expect(subscription).toMatchObject(placed(100, false))
})

test('one that begins anew again and again has one read under way, and is placed by the latest', async () => {
  const { begin, answer, reads } = setUp()
  const subscription = begin(after(40))
  for (const seq of [30, 20, 10]) begin(after(seq), subscription)
  expect(reads.map(each => each.after)).toEqual([40])
  await answer({})
  expect(reads.map(each => each.after)).toEqual([40, 10])
  expect(subscription).toMatchObject({ due: 0, placing: { head: undefined } })
  await answer({}, 1)
  expect(subscription).toMatchObject(placed(10, true))
})

test('the last few are read once where a read gives fewer than are asked for, while what it gave is held', async () => {
  const { begin, answer, reads } = setUp()
  const subscription = begin({ after: undefined, last: 90, presence: false })
  await answer({ first: 61 })
  expect(begin({ after: undefined, last: 90, presence: false }, subscription)).toMatchObject(placed(60, false))
  expect(begin({ after: undefined, last: 80, presence: false }, subscription)).toMatchObject(placed(60, false))
  expect(reads).toHaveLength(1)
  begin({ after: undefined, last: 95, presence: false }, subscription)
  expect(reads).toHaveLength(2)
  await answer({ first: 41 }, 1)
  // The tail reaches no further back than 50 by now.
  begin({ after: undefined, last: 90, presence: false }, subscription)
  expect(reads).toHaveLength(3)
})
