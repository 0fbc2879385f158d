import { z } from 'zod'
import { strictMap, unknownField, unknownFields } from './strict-map.ts'

const known = ['source', 'url', 'headers', 'maxAge', 'timeout', 'authorize', 'keepRefused']

test.each([
  ['header', 'headers'],
  ['max_age', 'maxAge'],
  ['max-age', 'maxAge'],
  ['timeuot', 'timeout'],
  ['authorise', 'authorize'],
  ['keeprefused', 'keepRefused'],
  ['URL', 'url'],
])('%s: was %s meant?', (name, meant) => {
  expect(unknownField(name, known)).toBe(`unknown field: did you mean "${meant}"?`)
})

test.each(['foo', '', 'x', 'ttl', 'headersheaders', 'x'.repeat(1_000_000)])('nothing was meant, %#', name => {
  expect(unknownField(name, known)).toBe('unknown field')
})

test('each unknown field of a map has its message, and what is no map has another', () => {
  const schema = strictMap({ url: z.string().optional() }, { error: 'must be a map' })
  const [issue] = schema.safeParse({ ulr: 1, other: 2 }).error?.issues ?? []
  expect(issue.code === 'unrecognized_keys' && unknownFields(issue)).toEqual([
    { name: 'ulr', message: 'unknown field: did you mean "url"?' },
    { name: 'other', message: 'unknown field' },
  ])
  expect(schema.safeParse(7).error?.issues[0].message).toBe('must be a map')
})
