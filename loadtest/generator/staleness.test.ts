import { createHistogram } from './histogram.ts'
import { createStaleness } from './staleness.ts'

const start = Date.UTC(2026, 0, 1)
const document = (revision: number) =>
  `{"type":"value","key":"conversation:1","version":"v","data":{"id":"1","revision":${revision},"changedAt":"${new Date(start + revision * 1_000).toISOString()}","title"`

const setup = () => {
  const histogram = createHistogram()
  let nowMs = start
  const staleness = createStaleness({ changeMs: 1_000, histogram, nowMs: () => nowMs })
  return {
    staleness,
    histogram,
    /** @param ms since the start */
    at(ms: number) {
      nowMs = start + ms
    },
  }
}

test('a change is as stale as the time it took to be seen first', () => {
  const { staleness, histogram, at } = setup()
  const viewer = staleness.viewer()
  at(1_300)
  staleness.sawDocument(viewer, document(1))

  at(2_250)
  expect(staleness.sawDocument(viewer, document(2))).toBe(true)
  at(2_900)
  expect(staleness.sawDocument(viewer, document(2))).toBe(false)

  expect(histogram.totalCount).toBe(1)
  expect(histogram.maxValue / 1_000).toBeCloseTo(250, 0)
})

test('the first document says nothing of staleness: it was there before the viewer', () => {
  const { staleness, histogram, at } = setup()
  at(50_000)

  expect(staleness.sawDocument(staleness.viewer(), document(1))).toBe(true)
  expect(histogram.totalCount).toBe(0)
})

test('a difference is that of the latest change', () => {
  const { staleness, histogram, at } = setup()
  const viewer = { revision: 1 }
  at(3_400)

  staleness.sawDifference(viewer)

  expect(histogram.maxValue / 1_000).toBeCloseTo(400, 0)
})
