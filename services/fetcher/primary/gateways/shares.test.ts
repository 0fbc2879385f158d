// Whoever wants keys is charged for them, and nobody holds more than their share of what the node may hold.
import { ENTRY_BYTES } from '../keys/key-table.ts'
import { keysOf, setup } from '../test-support.ts'

const room = (keys: number) => keys * ENTRY_BYTES

/** A node with room for 900 keys, of which one user may have 100. `want`s are those of one gateway unless said. */
function node({ credit = 0 } = {}) {
  const primary = setup({ cacheBytesMax: room(900), credit })
  const watch = (payer: string | undefined, key: string, link = 'a') => primary.onWatch(link, { key, payer })
  const refusals = (link = 'a') =>
    primary.take(link).flatMap(answer => (answer.type === 'failed' && answer.code === 'capacity' ? [answer] : []))
  return { primary, watch, refusals }
}

test('a user who watches without end is told of the share, and all others go on', () => {
  const { primary, watch, refusals } = node()
  for (const key of keysOf(150)) watch('a1.u1', key)
  const refused = refusals()
  expect(refused).toHaveLength(50)
  expect(refused[0]).toMatchObject({
    payer: 'a1.u1',
    message: expect.stringContaining('this user'),
  })
  expect(primary.refused).toEqual(Array(50).fill('share'))

  for (let id = 0; id < 50; id++) watch('a2.u2', `doc:other-${id}`)
  expect(refusals()).toEqual([])
})

test('what was let go of is free again', () => {
  const { primary, watch, refusals } = node()
  for (const key of keysOf(100)) watch('a1.u1', key)
  watch('a1.u1', 'doc:more')
  expect(refusals()).toHaveLength(1)
  for (const key of keysOf(10)) primary.onUnwatch('a', key)
  primary.pass(2_000)
  watch('a1.u1', 'doc:more')
  expect(refusals()).toEqual([])
})

test('a key that is watched already costs nobody a place', () => {
  const { watch, refusals } = node()
  for (const key of keysOf(100)) watch('a1.u1', key)
  for (let id = 0; id < 10; id++) watch('a2.u2', `doc:other-${id}`, 'b')
  for (let id = 0; id < 10; id++) watch('a1.u1', `doc:other-${id}`)
  expect(refusals()).toEqual([])
})

test('a key that many watch is charged to one who holds little', () => {
  const { primary, watch, refusals } = node()
  for (const key of keysOf(100)) watch('a1.u1', key)
  for (const key of keysOf(40)) watch('a2.u2', key, 'b')
  watch('a1.u1', 'doc:more')
  expect(refusals()).toEqual([])
  // And to the first again, once the other has left, as far as it may hold so much.
  primary.onLinkLost('b')
  primary.pass(2_000)
  expect(refusals()).toHaveLength(1)
  watch('a1.u1', 'doc:another')
  expect(refusals()).toHaveLength(1)
})

test('guests who hold all that guests may leave keys to each other', () => {
  const { primary, watch, refusals } = node()
  const guests = Array.from({ length: 40 }, (_, guest) => `g.A${guest}`)
  for (const [number, key] of keysOf(400).entries()) watch(guests[number % 40], key)
  expect(refusals().length).toBeGreaterThan(100)
  for (const [number, key] of keysOf(100).entries()) watch(guests[(number + 1) % 40], key, 'b')
  for (const key of keysOf(100)) primary.onUnwatch('a', key)
  primary.pass(2_000)
  expect(refusals('b')).toEqual([])
})

test('a first value for which the payer has no room is refused, one that has grown is not', () => {
  const { primary, watch, refusals } = node({ credit: 10 })
  watch('a1.u1', 'doc:0')
  primary.value('doc:0', 'v1')
  watch('a1.u1', 'doc:1')
  primary.value('doc:1', 'v1', { body: Buffer.alloc(room(120)) })
  expect(refusals()).toMatchObject([{ key: 'doc:1', payer: 'a1.u1' }])
  primary.onRefresh('doc:0')
  primary.value('doc:0', 'v2', { body: Buffer.alloc(room(120)) })
  expect(primary.sent('a')).toEqual(['value v2'])
})

test('fetches of accounts take turns: 200 new keys of one keep no other waiting', () => {
  const primary = setup({ cacheBytesMax: room(10_000), credit: 1 })
  for (const key of keysOf(200)) primary.onWatch('a', { key, payer: 'a1.u1' })
  primary.onWatch('a', { key: 'doc:other', payer: 'a2.u2' })
  for (let fetches = 0; fetches < 2; fetches++) primary.value(primary.leased()[0], 'v1')
  expect(primary.leased()).toEqual(['doc:other'])
})

test.each(['another gateway', 'the same gateway'])('two who open keys for each other at %s hold two shares', where => {
  const { primary, watch, refusals } = node()
  const link = where === 'the same gateway' ? 'a' : 'b'
  for (let round = 0; round < 20; round++) {
    const keys = keysOf(100).map(key => `${key}-${round}`)
    for (const key of keys) watch('a1.u1', key)
    const refused = new Set(refusals().map(({ key }) => key))
    // Each is left to the other.
    for (const key of keys) if (!refused.has(key)) watch('a2.u2', key, link)
    if (link === 'b') for (const key of keys) primary.onUnwatch('a', key)
    primary.pass(2_000)
    refusals(link)
  }
  expect(primary.primary.table.wantedBytes()).toBeLessThanOrEqual(room(200))
  for (let id = 0; id < 50; id++) watch('a3.u3', `doc:other-${id}`)
  expect(refusals()).toEqual([])
})

test('a key whose payer left stays with one who may pay, be others past their share', () => {
  const { primary, watch, refusals } = node()
  for (const key of keysOf(100)) watch('a1.u1', key, 'b')
  watch('a2.u2', 'doc:popular')
  watch('a1.u1', 'doc:popular', 'b')
  watch('a3.u3', 'doc:popular', 'c')
  primary.onLinkLost('a')
  primary.pass(2_000)
  expect([refusals('b'), refusals('c')]).toEqual([[], []])
  primary.onLinkLost('c')
  primary.pass(2_000)
  expect(refusals('b')).toMatchObject([{ key: 'doc:popular', payer: 'a1.u1' }])
})

test('of one that comes and goes all fetches have one turn, whoever its keys were left to', () => {
  const primary = setup({ cacheBytesMax: room(10_000), credit: 1 })
  for (let round = 0; round < 5; round++) {
    const keys = keysOf(10).map(key => `${key}-${round}`)
    for (const key of keys) primary.onWatch('a', { key, payer: 'a1.u1' })
    for (const key of keys) primary.onWatch('b', { key, payer: 'a2.u2' })
    for (const key of keys) primary.onUnwatch('a', key)
  }
  primary.onWatch('a', { key: 'doc:other', payer: 'a3.u3' })
  for (let fetches = 0; fetches < 3; fetches++) primary.value(primary.leased()[0], 'v1')
  expect(primary.leased()).toEqual(['doc:other'])
})
