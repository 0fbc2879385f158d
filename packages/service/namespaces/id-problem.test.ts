import { idProblem } from './id-problem.ts'

test('an id has one segment unless the namespace says more', () => {
  expect(idProblem({}, '42')).toBeUndefined()
  expect(idProblem({}, '42/private')).toBe('an id of this namespace has 1 segment at most')
})

test('an id has as many segments as the namespace says', () => {
  expect(idProblem({ idSegmentsMax: 3 }, 'a/b/c')).toBeUndefined()
  expect(idProblem({ idSegmentsMax: 3 }, 'a/b/c/d')).toBe('an id of this namespace has 3 segments at most')
})
