import { createCounts } from '../counts.ts'
import { createAnnouncement } from './announcement.ts'
import { createPlacing } from './placing.ts'

function setUp({ isAvailable = true } = {}) {
  const sent: any[] = []
  const owed: unknown[] = []
  const removed: unknown[] = []
  const reads: { after: number; answer: (page: any) => void }[] = []
  const counts = createCounts()
  /** The tail reaches back to 50. */
  const tails = { seal() {}, covers: (_: unknown, cursor: number) => cursor >= 50 }
  const read = (_: unknown, after: number) => new Promise(answer => reads.push({ after, answer })) as Promise<any>
  const placing = createPlacing({
    backbone: { isAvailable: () => isAvailable },
    tails,
    pages: { after: read, before: read },
    followers: {
      remove(subscription) {
        subscription.index = -1
        removed.push(subscription)
      },
    },
    gate: { release() {} },
    watching: { begin() {} },
    outbox: {
      send: (_, message) => void sent.push(message),
      forget() {},
      oweMessages: subscription => void owed.push(subscription),
      close() {},
    },
    counts,
  })
  const session = {} as any
  const createSubscription = (key = 'room:1') =>
    ({ session, room: { key, epoch: 'E1', reached: 100, oldest: 5 }, cursor: 0, index: 0 }) as any
  const begin = (start: any, subscription: any = createSubscription()) => {
    const announcement = createAnnouncement(session, 7)
    placing.begin(subscription, start, announcement)
    placing.finish(announcement)
    return subscription
  }
  const answer = async (page: object, index = 0) => {
    reads[index].answer({ epoch: 'E1', oldest: 5, newest: 100, ...page })
    for (let n = 0; n < 5; n++) await undefined
  }
  return { placing, sent, owed, removed, reads, counts, session, createSubscription, begin, answer }
}

const after = (seq: number, epoch = 'E1') => ({ after: { epoch, seq }, last: undefined, presence: false })

test.each([
  ['without a start', undefined, { recovered: false, count: 0 }],
  ['after a position in the tail', after(60), { recovered: true, count: 40 }],
  ['after the head', after(100), { recovered: true, count: 0 }],
  ['after a position of another history', after(60, 'E0'), { recovered: false, count: 0 }],
  ['with the last few', { after: undefined, last: 10, presence: false }, { recovered: false, count: 10 }],
])('%s the place is known at once', (_, start, expected) => {
  const { begin, sent, owed } = setUp()
  const subscription = begin(start)
  const keys = [{ key: 'room:1', epoch: 'E1', seq: 100, oldest: 5, ...expected }]
  expect(sent).toEqual([{ type: 'subscribed', id: 7, keys }])
  expect(subscription).toMatchObject({ cursor: 100 - expected.count, placing: undefined })
  expect(owed).toEqual(expected.count > 0 ? [subscription] : [])
})

test.each([
  ['is whole', 20, {}, { seq: 100, recovered: true, count: 80 }],
  ['begins right after it', 4, {}, { seq: 100, recovered: true, count: 96 }],
  ['no longer reaches back', 3, {}, { seq: 100, recovered: false, count: 0 }],
  ['ends before it', 101, {}, { seq: 100, recovered: false, count: 0 }],
  ['is ahead of this gateway', 103, { newest: 105 }, { seq: 103, recovered: true, count: 0 }],
])('behind the tail the journal is asked: where the history %s', async (_, seq, page, expected) => {
  const { begin, answer, sent, reads } = setUp()
  begin(after(seq))
  expect(sent).toEqual([])
  expect(reads.map(each => each.after)).toEqual([seq])
  await answer(page)
  expect(sent).toMatchObject([{ type: 'subscribed', id: 7, keys: [expected] }])
})

test('the last few are as many as there are', async () => {
  const { begin, answer, sent } = setUp()
  begin({ after: undefined, last: 90, presence: false })
  await answer({ first: 31 })
  expect(sent).toMatchObject([{ keys: [{ recovered: false, count: 70 }] }])
})

test('the rooms of a request are announced together, but for those that take a while', async () => {
  const { placing, createSubscription, answer, sent, session } = setUp()
  const announcement = createAnnouncement(session, 7)
  const all = ['room:1', 'room:2', 'room:3'].map(createSubscription)
  placing.begin(all[0], undefined, announcement)
  placing.begin(all[1], after(20), announcement)
  placing.begin(all[2], after(21), announcement)
  placing.finish(announcement)
  await answer({}, 1)
  expect(sent).toEqual([])
  const away = { code: 'journal_unavailable', message: 'm', retryAfterMs: 500 }
  await answer(away)
  expect(sent).toMatchObject([
    { type: 'error', id: 7, key: 'room:2', subscribed: true, code: 'journal_unavailable', retryAfterMs: 500 },
    { type: 'subscribed', id: 7, keys: [{ key: 'room:1' }, { key: 'room:3' }] },
  ])
  placing.retry()
  await answer({}, 2)
  expect(sent[2]).toMatchObject({ type: 'subscribed', id: 7, keys: [{ key: 'room:2', recovered: true }] })
})

test('while no journal answers that is said, once', () => {
  const { placing, begin, createSubscription, sent } = setUp({ isAvailable: false })
  const subscription = createSubscription()
  subscription.room.epoch = undefined
  begin(undefined, subscription)
  placing.delay(subscription, { code: 'journal_unavailable', message: 'm', retryAfterMs: 1 })
  expect(sent).toMatchObject([{ type: 'error', id: 7, code: 'journal_unavailable', subscribed: true }])
  subscription.room.epoch = 'E1'
  placing.place(subscription)
  expect(sent[1]).toMatchObject({ type: 'subscribed', id: 7 })
})

test('a room that the journal does not have ends the subscription', () => {
  const { placing, begin, createSubscription, sent, removed } = setUp()
  const subscription = createSubscription()
  subscription.room.epoch = undefined
  begin(undefined, subscription)
  placing.refuse(subscription, { code: 'unknown_namespace', message: 'm' })
  expect(removed).toEqual([subscription])
  expect(sent).toMatchObject([{ type: 'error', id: 7, key: 'room:1', subscribed: false, code: 'unknown_namespace' }])
})

test('one that ends while it is placed keeps the others waiting no longer', () => {
  const { placing, createSubscription, sent, session } = setUp()
  const announcement = createAnnouncement(session, 7)
  const [one, two] = ['room:1', 'room:2'].map(createSubscription)
  placing.begin(one, undefined, announcement)
  placing.begin(two, after(20), announcement)
  placing.finish(announcement)
  placing.end(two)
  expect(sent).toMatchObject([{ type: 'subscribed', keys: [{ key: 'room:1' }] }])
})

test('a place that was found and not said counts no more once the room has another history', () => {
  const { placing, createSubscription, sent, session } = setUp()
  const announcement = createAnnouncement(session, 7)
  const subscription = createSubscription()
  placing.begin(subscription, after(60), announcement)
  subscription.room = { ...subscription.room, epoch: 'E2', reached: 3, oldest: 1 }
  placing.placeAnew(subscription)
  placing.finish(announcement)
  expect(sent).toMatchObject([{ keys: [{ epoch: 'E2', seq: 3, recovered: false, count: 0 }] }])
})

test('what was read for a subscription that began anew meanwhile is not said', async () => {
  const { begin, answer, sent } = setUp()
  const subscription = begin(after(20))
  begin(undefined, subscription)
  expect(sent).toHaveLength(1)
  await answer({})
  expect(sent).toHaveLength(1)
})
