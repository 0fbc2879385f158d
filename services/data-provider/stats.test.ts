import { createStats } from './stats.ts'

const setup = () => {
  const stats = createStats(() => 1_000)
  return { stats, read: () => stats.read({ log: true }) }
}

test('a request counts when it arrives, its outcome when it is answered', () => {
  const { stats, read } = setup()
  const first = stats.arrived('text', '/text/1')
  stats.arrived('text', '/text/1')
  expect(read().byKey).toEqual({ '/text/1': { total: 2, full: 0, notModified: 0, failed: 0 } })
  first.answered('notModified', 304)
  expect(read().byKey['/text/1']).toEqual({ total: 2, full: 0, notModified: 1, failed: 0 })
})

test('routes are sums over their paths', () => {
  const { stats, read } = setup()
  for (const path of ['/text/1', '/text/2']) stats.arrived('text', path).answered('full', 200)
  stats.arrived('binary', '/binary/1').answered('failed', 500)
  expect(read().requests).toEqual({
    text: { total: 2, full: 2, notModified: 0, failed: 0 },
    binary: { total: 1, full: 0, notModified: 0, failed: 1 },
  })
})

test('concurrency counts the requests under way, and its maximum is kept', () => {
  const { stats, read } = setup()
  const visits = [1, 2, 3].map(id => stats.arrived('text', `/text/${id}`))
  visits[0].ended()
  visits[1].ended()
  expect(read()).toMatchObject({ concurrency: 1, concurrencyMax: 3 })
  stats.reset()
  expect(read()).toMatchObject({ requests: {}, byKey: {}, concurrency: 1, concurrencyMax: 1, log: [] })
})

test('an answer to a request from before a reset is not counted', () => {
  const { stats, read } = setup()
  const visit = stats.arrived('text', '/text/1')
  stats.reset()
  visit.answered('full', 200)
  expect(read()).toMatchObject({ requests: {}, byKey: {} })
})

test('the log is in the order of arrival, with null for what is unanswered', () => {
  const { stats, read } = setup()
  stats.arrived('text', '/text/1')
  stats.arrived('text', '/text/2').answered('full', 200)
  expect(read().log).toEqual([
    { path: '/text/1', atMs: 1_000, status: null },
    { path: '/text/2', atMs: 1_000, status: 200 },
  ])
  expect(stats.read({ log: false })).not.toHaveProperty('log')
})

test('neither paths nor log grow without end', () => {
  const { stats, read } = setup()
  for (let id = 0; id < 100_002; id += 1) stats.arrived('text', `/text/${id}`)
  stats.arrived('text', '/text/0')
  expect(Object.keys(read().byKey)).toHaveLength(100_000)
  expect(read().byKey['/text/0'].total).toBe(2)
  expect(read().requests.text.total).toBe(100_003)
  expect(read().log).toHaveLength(10_000)
  expect(read().log?.at(-2)?.path).toBe('/text/100001')
})
