import { createSharedStrings } from './shared-strings.ts'

test('a string comes back as it is, also where there are too many to share', () => {
  const { shared } = createSharedStrings({ max: 1 })

  expect(['a', 'a', 'b', 'b', 'a'].map(shared)).toEqual(['a', 'a', 'b', 'b', 'a'])
})
