import type { Request } from './dispatcher.ts'
import { createSources } from './origins.ts'

test('a namespace that is gone keeps its source, of which nothing is told until it comes back', () => {
  const limit = { inForce: () => 1, started() {}, ended() {} }
  const sources = createSources<Request>({ inFlightMax: 1, newLimit: () => limit, now: () => 0 })
  const named = () => Array.from(sources.named(), ({ namespace, origin }) => `${namespace} of ${origin.name}`)
  sources.take([
    ['doc', 'http://one'],
    ['page', 'http://one'],
  ])
  const doc = sources.get('doc')
  sources.take([['page', 'http://one']])
  expect(named()).toEqual(['page of http://one'])
  expect(sources.get('doc')).toBe(doc)
  sources.take([
    ['page', 'http://one'],
    ['doc', 'http://two'],
  ])
  expect(named()).toEqual(['page of http://one', 'doc of http://two'])
  expect(sources.get('doc')).toBe(doc)
})
