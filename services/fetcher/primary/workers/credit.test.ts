import { keysOf, setup } from '../test-support.ts'
import { creditFor } from './credit.ts'

test('backends that hang leave credit for the others, even where a single worker is left', () => {
  const namespaces = { doc: {}, other: { origin: 'http://other' }, third: { origin: 'http://third' } }
  const { watch, leased } = setup({ namespaces, inFlightMax: 4, credit: creditFor({ origins: 3, inFlightMax: 4 }) })
  for (const key of keysOf(20)) watch('a', key)
  for (let id = 0; id < 20; id++) watch('a', `other:${id}`)
  expect(leased()).toHaveLength(8)
  watch('a', 'third:1')
  expect(leased()).toContain('third:1')
})

test('without any namespace a worker still says that it takes leases: it is ready', () => {
  expect(creditFor({ origins: 0, inFlightMax: 256 })).toBeGreaterThan(0)
})

test('questions whether viewers may read have credit of their own', () => {
  expect(creditFor({ origins: 2, inFlightMax: 10, authorizeOrigins: 1, authorizeInFlightMax: 4 })).toBe(24)
})
