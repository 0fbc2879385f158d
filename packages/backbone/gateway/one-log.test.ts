import { createOneLog } from './one-log.ts'

test('the first log that is heard of is used, and no other beside it', () => {
  const oneLog = createOneLog()
  expect(oneLog.inUse).toBeUndefined()
  expect(oneLog.admits('n1', 'A', undefined, false)).toBe(true)
  expect(oneLog.admits('n2', 'B', undefined, false)).toBe(false)
  expect(oneLog.admits('n3', 'A', undefined, false)).toBe(true)
  expect(oneLog.others()).toEqual([{ node: 'n2', log: 'B' }])
  expect(oneLog.inUse).toBe('A')
})

test('a node of an older release says no log, and is used', () => {
  const oneLog = createOneLog()
  expect(oneLog.admits('n1', 'A', undefined, false)).toBe(true)
  expect(oneLog.admits('n2', undefined, undefined, false)).toBe(true)
  expect(oneLog.others()).toEqual([])
})

test('another log is used only when no node has the first one any more', () => {
  const oneLog = createOneLog()
  oneLog.admits('n1', 'A', undefined, false)
  oneLog.admits('n2', 'A', undefined, false)
  expect(oneLog.admits('n3', 'B', undefined, false)).toBe(false)
  oneLog.forget('n1')
  expect(oneLog.admits('n3', 'B', undefined, false)).toBe(false)
  // It was restored, or keeps its log in memory.
  expect(oneLog.admits('n2', 'C', undefined, false)).toBe(true)
  expect(oneLog.admits('n3', 'B', undefined, false)).toBe(false)
  oneLog.forget('n2')
  expect(oneLog.admits('n3', 'B', undefined, false)).toBe(true)
})

test('in whatever order nodes are heard at the start, the log of the first by name is used', () => {
  for (const order of [
    ['n1', 'n2', 'n3'],
    ['n3', 'n1', 'n2'],
    ['n2', 'n3', 'n1'],
  ]) {
    const oneLog = createOneLog()
    for (const node of order) oneLog.admits(node, node === 'n1' ? 'A' : 'B', undefined, true)
    const others = oneLog.others().map(({ node }) => node)
    expect([oneLog.inUse, others.sort()]).toEqual(['A', ['n2', 'n3']])
  }
})

test('a log that has gone back is not used until it has another id, and its node is told where it was', () => {
  const oneLog = createOneLog()
  expect(oneLog.admits('n1', 'A', 10, false)).toBe(true)
  oneLog.note('n1', 17)
  expect(oneLog.admits('n1', 'A', 17, false)).toBe(true)
  expect(oneLog.before('n1')).toBeUndefined()
  expect(oneLog.admits('n1', 'A', 16, false)).toBe(false)
  expect(oneLog.before('n1')).toEqual({ log: 'A', logAt: 17 })
  expect(oneLog.inUse).toBe('A')
  // It may have come as far again by then, with other messages.
  expect(oneLog.admits('n1', 'B', 18, false)).toBe(true)
  expect([oneLog.before('n1'), oneLog.inUse]).toEqual([undefined, 'B'])
  // The same state of the disk was restored once more.
  expect(oneLog.admits('n1', 'A', 16, false)).toBe(false)
  expect(oneLog.before('n1')).toEqual({ log: 'A', logAt: 17 })
})

test('of many logs the latest are known', () => {
  const oneLog = createOneLog()
  for (let n = 0; n < 100; n++) oneLog.admits('n1', `log ${n}`, 5, false)
  expect(oneLog.admits('n1', 'log 99', 4, false)).toBe(false)
  expect(oneLog.admits('n1', 'log 0', 4, false)).toBe(true)
})
