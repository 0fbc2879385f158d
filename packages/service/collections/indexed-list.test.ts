import { addIndexed, removeIndexed } from './indexed-list.ts'

test('an item that is taken out gives its place to the last one', () => {
  const list: { name: string; index: number }[] = []
  const [a, b, c] = ['a', 'b', 'c'].map(name => ({ name, index: -1 }))
  for (const item of [a, b, c]) addIndexed(list, item)
  removeIndexed(list, a)
  expect(list).toEqual([
    { name: 'c', index: 0 },
    { name: 'b', index: 1 },
  ])
  removeIndexed(list, b)
  removeIndexed(list, c)
  expect(list).toEqual([])
})
