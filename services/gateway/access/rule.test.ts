import { createRandom } from '../../../test/support/random.js'
import { createPatternSet } from './rights.ts'
import { escapeUser, fillUser, PATTERN_CHARACTERS_MAX, type Pattern, readPattern } from './rule.ts'

const read = (text: string, user?: string): Pattern => {
  const pattern = readPattern(text, { user: user !== undefined })
  if ('problem' in pattern) throw new Error(pattern.problem)
  return user === undefined ? pattern : fillUser(pattern, user)
}

const admits = (patterns: string | string[], key: string, user?: string) =>
  createPatternSet([patterns].flat().map(text => read(text, user))).admits(key)

const problemOf = (text: unknown, user = true) => {
  const pattern = readPattern(text, { user })
  return 'problem' in pattern ? pattern.problem : undefined
}

test.each([
  ['room:7', 'room:7', true],
  ['room:7', 'room:8', false],
  ['room:7', 'room:7/a', false],
  ['room:*', 'room:7', true],
  ['room:*', 'room:7/a', false],
  ['room:*', 'rooms:7', false],
  ['room:*/a', 'room:7/a', true],
  ['room:*/a', 'room:7/b', false],
  ['room:*/*', 'room:7/b', true],
  ['room:*/*', 'room:7', false],
  ['room:**', 'room:7', true],
  ['room:**', 'room:7/b/c', true],
  ['room:7/**', 'room:7', false],
  ['room:7/**', 'room:7/b', true],
  ['room:7/**', 'room:7/b/c', true],
  ['room:7/**', 'room:8/b', false],
  ['room:*/a/**', 'room:7/a/b', true],
  ['*:7', 'room:7', true],
  ['*:7', 'room:8', false],
  ['*:**', 'room:7/b', true],
  ['inbox:', 'inbox:', true],
  ['inbox:', 'inbox:7', false],
  ['inbox:*', 'inbox:', true],
  ['*:**', 'inbox:', true],
  ['room:7', 'room:7?page=2', true],
  ['room:*/a', 'room:7/a?page=2', true],
  ['room:7', 'room:8?x=room:7', false],
])('%s and %s: %s', (pattern, key, expected) => {
  expect(admits(pattern, key)).toBe(expected)
})

test('of several patterns one that admits is enough, whichever way the others turn off', () => {
  const patterns = ['room:7/x', 'room:*/a/c', 'room:7/a/b', 'user:**']
  expect(admits(patterns, 'room:7/a/c')).toBe(true)
  expect(admits(patterns, 'room:7/a/b')).toBe(true)
  expect(admits(patterns, 'room:7/a/d')).toBe(false)
})

test('no pattern admits nothing', () => {
  expect(admits([], 'room:7')).toBe(false)
})

test('names that every object has are names as any other', () => {
  expect(admits(['room:*/b'], 'constructor:__proto__')).toBe(false)
  expect(admits(['room:__proto__/*'], 'room:__proto__/x')).toBe(true)
})

test('{sub} stands for the user alone, in a whole segment or a part of it', () => {
  expect(admits('user:{sub}', 'user:ann', 'ann')).toBe(true)
  expect(admits('user:{sub}', 'user:bob', 'ann')).toBe(false)
  expect(admits('user:{sub}/inbox-{sub}/*', 'user:ann/inbox-ann/1', 'ann')).toBe(true)
})

test('a user whose name looks like a pattern, a path or an escape gets the keys of that name and no others', () => {
  expect(admits('user:{sub}', 'user:bob', '*')).toBe(false)
  expect(admits('user:{sub}', 'user:~2A', '*')).toBe(true)
  expect(admits('user:{sub}', 'user:a/b', '**')).toBe(false)
  expect(admits('user:{sub}', 'user:bob/private', 'bob/private')).toBe(false)
  expect(admits('user:{sub}/*', 'user:ann/1', '{sub}')).toBe(false)
  expect(admits('user:{sub}', 'user:a~2Ab', 'a~2Ab')).toBe(false)
  expect(admits('user:{sub}', 'user:$~26', '$&')).toBe(true)
})

test('escaping is UTF-8 in upper-case hexadecimal, and no two names are written alike', () => {
  expect(escapeUser('Ann.Lee_1-x')).toBe('Ann.Lee_1-x')
  expect(escapeUser('ann@acme.test')).toBe('ann@acme.test')
  expect(escapeUser('Jörg Müller')).toBe('Jörg Müller')
  expect(escapeUser('Jo\u0308rg')).toBe('Jo~CC~88rg')
  expect(escapeUser('app|7')).toBe('app~7C7')
  expect(escapeUser('~7C')).toBe('~7E7C')
  expect(escapeUser('é😀\n')).toBe('é~F0~9F~98~80~0A')
})

test.each([
  [7, '7 is no pattern'],
  [null, 'null is no pattern'],
  ['room', '"room" has no namespace'],
  ['room:/', 'a segment of the id is empty'],
  ['room:a//b', 'a segment of the id is empty'],
  ['room:a/', 'a segment of the id is empty'],
  ['Room:a', 'a namespace is a-z'],
  [':a', 'the namespace is empty'],
  ['ro*:a', '* stands for the whole namespace'],
  ['**:a', '* stands for the whole namespace'],
  ['{sub}:a', 'a namespace cannot hold {sub}'],
  ['room:a*', '* stands for a whole segment'],
  ['room:**/a', '** stands at the end only'],
  ['room:***', '* stands for a whole segment'],
  ['room:a?b=c', 'has the characters of keys'],
  ['room:{user}', 'has the characters of keys'],
  ['room:Mu\u0308ller', 'Unicode form NFC'],
  ['room:..', 'no key has'],
  ['room:a/./b', 'no key has'],
])('%j is refused, and named', (text, why) => {
  const problem = problemOf(text)
  expect(problem).toContain(why)
  expect(problem).toContain(JSON.stringify(text))
})

test('a pattern may be as long as is of use, and no longer; one that is longer is not said back at length', () => {
  const longest = `room:${'a'.repeat(PATTERN_CHARACTERS_MAX - 5)}`
  expect(problemOf(longest)).toBeUndefined()
  expect(problemOf(`${longest}a`)).toMatch(/^"room:a+…" is longer than 256 characters$/)
})

test.each([
  ['an object', {}, '{…}'],
  ['a list nested 100,000 levels deep', JSON.parse('['.repeat(100_000) + ']'.repeat(100_000)), '[…]'],
])('%s is no pattern', (_, written, shown) => {
  expect(readPattern(written, { user: true })).toEqual({
    problem: `${shown} is no pattern: write text, as in "room:*"`,
  })
})

test('{sub} is refused where there is no user', () => {
  expect(problemOf('user:{sub}', false)).toContain('an anonymous session has no user')
})

describe('random patterns and keys', () => {
  const { integer, pick } = createRandom(42)
  const segment = () => pick(['a', 'b', 'ab', 'constructor'])
  const key = () => `${pick(['a', 'b'])}:${Array.from({ length: 1 + integer(6) }, segment).join('/')}`
  const pattern = () => {
    const ids = Array.from({ length: 1 + integer(6) }, () => (integer(2) ? '*' : segment()))
    if (integer(3) === 0) ids[ids.length - 1] = '**'
    return `${pick(['a', 'b', '*'])}:${ids.join('/')}`
  }

  test('are judged as by comparing segment with segment', () => {
    for (let round = 0; round < 400; round++) {
      const texts = Array.from({ length: integer(12) }, pattern)
      const set = createPatternSet(texts.map(text => read(text)))
      for (let each = 0; each < 20; each++) {
        const asked = key()
        const expected = texts.some(text => matchesNaively(text, asked))
        if (set.admits(asked) !== expected) throw new Error(`${asked} and ${texts.join(' ')}: not ${expected}`)
      }
    }
  })

  test('take no more steps than patterns have segments, however they are made to branch', () => {
    // Every way through two segments to choose from, and none leads to the end.
    const texts = Array.from({ length: 512 }, (_, bits) => {
      const ids = Array.from({ length: 9 }, (_, at) => ((bits >> at) & 1 ? 'a' : '*'))
      return `a:${ids.join('/')}/b`
    })
    const set = createPatternSet(texts.map(text => read(text)))
    const segmentsMax = texts.length * 11
    expect(stepsOf(() => set.admits(`a:${'a/'.repeat(9)}c`))).toBeLessThanOrEqual(segmentsMax)
    expect(stepsOf(() => set.admits(`a:${'a/'.repeat(127)}a`))).toBeLessThanOrEqual(segmentsMax)

    const longest = read(`a:${'*/'.repeat(125)}b`)
    expect(stepsOf(() => createPatternSet([longest]).admits(`a:${'a/'.repeat(125)}c`))).toBeLessThanOrEqual(127)
  })
})

/** Each step of the tree looks into one map: the number of look-ups is the cost of a question. */
function stepsOf(ask: () => unknown) {
  const looks = jest.spyOn(Map.prototype, 'get')
  try {
    ask()
    return looks.mock.calls.length
  } finally {
    looks.mockRestore()
  }
}

function matchesNaively(pattern: string, key: string): boolean {
  const wanted = pattern.split(/[:/]/)
  const given = key.split(/[:/]/)
  const last = wanted.length - 1
  if (wanted[last] === '**') {
    if (given.length <= last) return false
    wanted.pop()
    given.length = last
  }
  return given.length === wanted.length && wanted.every((each, at) => each === '*' || each === given[at])
}
