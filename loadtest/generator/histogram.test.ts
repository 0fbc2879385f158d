import type { Histogram } from 'hdr-histogram-js'
import * as hdr from 'hdr-histogram-js'
import { createHistogram, createRecorder, curve, encode, merge, record, summarize, takeEncoded } from './histogram.ts'

test('histograms of several processes merged are the histogram of all', () => {
  const all = createHistogram()
  const parts = [createHistogram(), createHistogram(), createHistogram()]
  for (let value = 1; value <= 30_000; value++) {
    const us = (value * 7_919) % 100_003
    record(all, us)
    record(parts[value % 3], us)
  }

  const merged = createHistogram()
  for (const part of parts) merge(merged, takeEncoded(part))

  expect(summarize(merged)).toEqual(summarize(all))
  expect(merged.totalCount).toBe(30_000)
})

test('what was taken is not reported again', () => {
  const histogram = createHistogram()
  record(histogram, 1_000, 5)
  takeEncoded(histogram)

  expect(takeEncoded(histogram)).toBe('')
  expect(histogram.totalCount).toBe(0)
})

test('a summary is in milliseconds, to a thousandth of the value', () => {
  const histogram = createHistogram()
  for (let ms = 1; ms <= 1_000; ms++) record(histogram, ms * 1_000)

  const { count, meanMs, p50Ms, p99Ms, maxMs } = summarize(histogram)

  expect(count).toBe(1_000)
  expect(meanMs).toBeCloseTo(500.5, 0)
  expect(Math.abs(p50Ms - 500)).toBeLessThan(1)
  expect(Math.abs(p99Ms - 990)).toBeLessThan(1)
  expect(Math.abs(maxMs - 1_000)).toBeLessThan(1)
})

test('a clock that runs a little behind another makes no negative latency, and the slowest counts', () => {
  const histogram = createHistogram()
  record(histogram, -3)
  record(histogram, 10 ** 12)

  expect(histogram.totalCount).toBe(2)
})

test('an empty histogram has a summary, and no curve', () => {
  expect(summarize(createHistogram())).toMatchObject({ count: 0, meanMs: 0, maxMs: 0 })
  expect(curve(createHistogram())).toEqual([])
})

test('the curve rises from the fastest to the slowest', () => {
  const histogram = createHistogram()
  for (let value = 1; value <= 5_000; value++) record(histogram, value * 10)

  const points = curve(histogram)

  expect(points.map(({ ms }) => ms)).toEqual(points.map(({ ms }) => ms).sort((a, b) => a - b))
  expect(points.at(-1)?.ms).toBeCloseTo(50, 0)
})

test('what a result holds can be read by any HdrHistogram', () => {
  const histogram = createHistogram()
  record(histogram, 1_234)

  expect(hdr.decodeFromCompressedBase64(encode(histogram)).totalCount).toBe(1)
})

test('what a recorder counted is, once flushed, what the histogram itself would have', () => {
  const expected = createHistogram()
  const histogram = createHistogram()
  const { record: count, flush } = createRecorder(histogram)
  const edges = [-3, 0, 1, 0.6, 10 ** 12]
  for (let bits = 8; bits <= 28; bits++) edges.push(2 ** bits - 1, 2 ** bits, 2 ** bits + 1, 2 ** bits * 1.37)
  for (const us of edges) {
    record(expected, us)
    count(us)
  }
  flush()
  flush()

  const counted = (of: Histogram) =>
    [0, 10, 25, 50, 75, 90, 99, 100].map(percentile => of.getValueAtPercentile(percentile))
  expect(counted(histogram)).toEqual(counted(expected))
  expect([histogram.totalCount, histogram.mean]).toEqual([expected.totalCount, expected.mean])
})
