import { idProblem, roomProblem } from './id-problem.ts'

test('the id of a room is one segment without spaces: `room:1 members` are the members of room:1', () => {
  expect(roomProblem('room:1')).toBeUndefined()
  for (const text of ['room', 'room:1/2', 'room:1 members', 'room:1?a=b']) expect(roomProblem(text)).toBeDefined()
})

test('an id has one segment unless the namespace says more', () => {
  expect(idProblem({}, '42')).toBeUndefined()
  expect(idProblem({}, '42/private')).toBe('an id of this namespace has 1 segment at most')
})

test('an id has as many segments as the namespace says', () => {
  expect(idProblem({ ids: { min: 1, max: 3 } }, 'a/b/c')).toBeUndefined()
  expect(idProblem({ ids: { min: 1, max: 3 } }, 'a/b/c/d')).toBe('an id of this namespace has 3 segments at most')
})

test('an id has all the segments that have a place of their own', () => {
  expect(idProblem({ ids: { min: 2, max: 2 } }, 'a/b')).toBeUndefined()
  expect(idProblem({ ids: { min: 2, max: 2 } }, 'a')).toBe('an id of this namespace has 2 segments')
  expect(idProblem({ ids: { min: 2, max: 2 } }, 'a/b/c')).toBe('an id of this namespace has 2 segments')
})

test('a namespace without ids has one key', () => {
  expect(idProblem({ ids: { min: 0, max: 0 } }, '')).toBeUndefined()
  expect(idProblem({ ids: { min: 0, max: 0 } }, '7')).toBe('this namespace has no ids: its key ends in the colon')
  expect(idProblem({}, '')).toBe('the id is empty')
})

describe('a query', () => {
  const query = { names: ['status', 'page', 'lang'], headers: { lang: 'accept-language' } }

  test.each(['7', '7?status=open', '7?page=2', '7?status=open&page=2&lang=de'])('%s fits', id => {
    expect(idProblem({ query }, id)).toBeUndefined()
  })

  test('has one order, so that a value has one key', () => {
    const why = 'a query of this namespace has status, page, lang: in this order, each once at most'
    for (const id of ['7?page=2&status=open', '7?page=2&page=3', '7?other=1', '7?status=open&other=1']) {
      expect(idProblem({ query }, id)).toBe(why)
    }
  })

  test('that is sent as a header is ASCII', () => {
    expect(idProblem({ query }, '7?status=offen für alle')).toBeUndefined()
    expect(idProblem({ query }, '7?lang=français')).toBe('lang is sent as a header: ASCII only')
  })

  test('belongs to namespaces that name its parameters', () => {
    expect(idProblem({}, '7?status=open')).toBe('keys of this namespace have no query')
  })
})
