import { createOneLog } from './one-log.js'

test('the first log that is heard of is used, and no other beside it', () => {
  const oneLog = createOneLog()
  expect(oneLog.inUse).toBeUndefined()
  expect(oneLog.admits('n1', 'A', false)).toBe(true)
  expect(oneLog.admits('n2', 'B', false)).toBe(false)
  expect(oneLog.admits('n3', 'A', false)).toBe(true)
  expect(oneLog.others()).toEqual(['n2'])
  expect(oneLog.inUse).toBe('A')
})

test('a node of an older release says no log, and is used', () => {
  const oneLog = createOneLog()
  expect(oneLog.admits('n1', 'A', false)).toBe(true)
  expect(oneLog.admits('n2', undefined, false)).toBe(true)
  expect(oneLog.others()).toEqual([])
})

test('another log is used only when no node has the first one any more', () => {
  const oneLog = createOneLog()
  oneLog.admits('n1', 'A', false)
  oneLog.admits('n2', 'A', false)
  expect(oneLog.admits('n3', 'B', false)).toBe(false)
  oneLog.forget('n1')
  expect(oneLog.admits('n3', 'B', false)).toBe(false)
  // It was restored, or keeps its log in memory.
  expect(oneLog.admits('n2', 'C', false)).toBe(true)
  expect(oneLog.admits('n3', 'B', false)).toBe(false)
  oneLog.forget('n2')
  expect(oneLog.admits('n3', 'B', false)).toBe(true)
})

test('in whatever order nodes are heard at the start, the log of the first by name is used', () => {
  for (const order of [
    ['n1', 'n2', 'n3'],
    ['n3', 'n1', 'n2'],
    ['n2', 'n3', 'n1'],
  ]) {
    const oneLog = createOneLog()
    for (const node of order) oneLog.admits(node, node === 'n1' ? 'A' : 'B', true)
    expect([oneLog.inUse, oneLog.others().sort()]).toEqual(['A', ['n2', 'n3']])
  }
})
