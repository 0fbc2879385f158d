import { createArrivals, takeBeat, takeRequest } from './lost-requests.ts'

test('requests that come one after the other are not lost, a missing number is', () => {
  const arrivals = createArrivals()
  expect([takeRequest(arrivals, 1), takeRequest(arrivals, 2)]).toEqual([true, true])
  expect(takeRequest(arrivals, 4)).toBe(false)
  expect(arrivals.received).toBe(2)
})

test('what a beat announced may be lost once nothing has come until the next beat', () => {
  const arrivals = createArrivals()
  expect(takeBeat(arrivals, 3)).toBe(false)
  expect(takeBeat(arrivals, 3)).toBe(true)
})

test('a link that is behind, but moves, has lost nothing', () => {
  const arrivals = createArrivals()
  takeBeat(arrivals, 3)
  takeRequest(arrivals, 1)
  expect(takeBeat(arrivals, 9)).toBe(false)
  takeRequest(arrivals, 2)
  expect(takeBeat(arrivals, 9)).toBe(false)
  expect(takeBeat(arrivals, 9)).toBe(true)
})

test('a link that has heard all announced is never lossy, however long it says nothing', () => {
  const arrivals = createArrivals()
  takeRequest(arrivals, 1)
  for (let beat = 0; beat < 3; beat++) expect(takeBeat(arrivals, 1)).toBe(false)
})
