import { ownersAmong } from './rendezvous.ts'

const keys = Array.from({ length: 10_000 }, (_, i) => `conversation:${i}`)
const nodes = ['10.0.0.1:7001', '10.0.0.2:7001', '10.0.0.3:7001', '10.0.0.4:7001']

test('without nodes nobody owns a key', () => {
  expect(ownersAmong([])('conversation:1')).toBeUndefined()
})

test('the order in which nodes are known does not matter', () => {
  const ownerOf = ownersAmong(nodes)
  const ownerOfReversed = ownersAmong([...nodes].reverse())
  for (const key of keys) expect(ownerOfReversed(key)).toBe(ownerOf(key))
})

test('keys spread evenly: no node is a tenth off its share', () => {
  const ownerOf = ownersAmong(nodes)
  const owned = new Map(nodes.map(node => [node, 0]))
  for (const key of keys) {
    const owner = ownerOf(key) as string
    owned.set(owner, (owned.get(owner) as number) + 1)
  }
  for (const count of owned.values()) expect(Math.abs(count - 2500)).toBeLessThan(250)
})

test('when a node goes, only its keys move', () => {
  const ownerOf = ownersAmong(nodes)
  const ownerOfLeft = ownersAmong(nodes.slice(1))
  for (const key of keys) {
    const before = ownerOf(key)
    if (before !== nodes[0]) expect(ownerOfLeft(key)).toBe(before)
  }
})
