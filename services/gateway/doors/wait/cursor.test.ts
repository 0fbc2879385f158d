import fc from 'fast-check'
import { EDGE_MS, edgeAfter, readWaitQuery, timeOfEdge } from './cursor.ts'

const NOW_MS = 1_795_000_000_000

test('a query is the version and the cursor, once each, in this order', () => {
  expect(readWaitQuery('/v1/wait/a:1?after=x_-9&cursor=17.4')).toEqual({ after: 'x_-9', order: 17, edge: 4 })
})

test.each([
  '',
  '?',
  '?after=x',
  '?cursor=1.2',
  '?cursor=1.2&after=x',
  '?after=x&cursor=1.2&',
  '?after=x&cursor=1.2&cursor=1.2',
  '?after=x&cursor=1.2&x=1',
  '?after=x&after=x&cursor=1.2',
  '?after=&cursor=1.2',
  '?after=x&cursor=1',
  '?after=x&cursor=-1.2',
  '?after=x&cursor=1e3.2',
  '?after=%78&cursor=1.2',
  '?after=x&cursor=9999999999999999.2',
  '?a?after=x&cursor=1.2',
])('another query is refused: %s', query => {
  expect(readWaitQuery(`/v1/wait/a:1${query}`)).toBeUndefined()
})

test('the next edge of a key is ahead, by an edge at most', () => {
  fc.assert(
    fc.property(fc.string(), fc.nat(10 * EDGE_MS), (key, ms) => {
      const at = NOW_MS + ms
      const left = timeOfEdge(key, edgeAfter(key, at)) - at
      expect(left).toBeGreaterThan(0)
      expect(left).toBeLessThanOrEqual(EDGE_MS)
    }),
  )
})

test('keys have their edges at different times', () => {
  const times = new Set(Array.from({ length: 20 }, (_, id) => timeOfEdge(`a:${id}`, 1) % EDGE_MS))
  expect(times.size).toBeGreaterThan(10)
})
