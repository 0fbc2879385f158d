import { keyProblem } from '@keycast/protocol'
import fc from 'fast-check'
import { readBatchUrl, readUrlTemplate } from './url-template.ts'

const read = (template: string) => {
  const url = readUrlTemplate(template)
  if ('problem' in url) throw new Error(url.problem)
  return url
}

test.each([
  ['http://h:3000/items/{id}', '42', 'http://h:3000/items/42'],
  ['http://h/items/{id}', 'a/b-c/d_e', 'http://h/items/a/b-c/d_e'],
  ['https://h/{id}.json?bytes=1000&x=/', 'a.b~c', 'https://h/a.b~c.json?bytes=1000&x=/'],
  ['http://H.example:80/A/../b/{id}/tail', '1', 'http://h.example/b/1/tail'],
  ['http://[::1]:3000/{id}', '...', 'http://[::1]:3000/...'],
  ['http://h/items?id={id}&x=1', 'a/b-c', 'http://h/items?id=a%2Fb-c&x=1'],
  ['http://h/graphql', '42', 'http://h/graphql'],
  ['http://h/me/inbox', '', 'http://h/me/inbox'],
  ['http://h/projects/{1}/tasks/{2}', 'acme/7', 'http://h/projects/acme/tasks/7'],
  ['http://h/tasks/{2}?project={1}', 'acme/7', 'http://h/tasks/7?project=acme'],
  ['http://h/tasks/{id}', '7?status=open&page[size]=2', 'http://h/tasks/7?status=open&page%5Bsize%5D=2'],
  ['http://h/tasks?x=1', '?q=C+, a/b', 'http://h/tasks?x=1&q=C%2B%2C%20a%2Fb'],
])('%s with the id %s is %s', (template, id, url) => {
  expect(read(template).urlFor(id)).toBe(url)
})

test('the origin is scheme, host and port', () => {
  expect(read('http://h:3000/a/{id}').origin).toBe('http://h:3000')
})

test.each([
  ['http://h/{id}/{id}', 'each of {id}, {1}, {2} once'],
  ['http://h/{1}/{1}', 'each of {id}, {1}, {2} once'],
  ['http://h/{id}/{1}', 'not both'],
  ['http://h/{0}', 'braces'],
  ['http://{id}/items', 'in its path'],
  ['http://{id}.example/items', 'in its path'],
  ['http://h:{id}/items', 'absolute URL'],
  ['http://{id}@h/items', 'user name'],
  ['http://h/items#{id}', 'fragment'],
  ['http://h/{id}#', 'fragment'],
  ['http://user:s3cret@h/{id}', 'user name'],
  ['http://h/{id}/..', 'in its path'],
  ['http://h/{id}/%2e%2e/x', 'in its path'],
  ['http://h/{ID}/{id}', 'braces'],
  ['http://h\\{id}', 'backslash'],
  ['http://h/{id} ', 'white space'],
  ['http://h/\n{id}', 'white space'],
  ['ftp://h/{id}', 'http:// or https://'],
  ['file:///{id}', 'http:// or https://'],
  ['/items/{id}', 'absolute URL'],
  ['h/{id}', 'absolute URL'],
])('the template %j is refused: %s', (template, why) => {
  const url = readUrlTemplate(template)
  expect('problem' in url ? url.problem : 'accepted').toContain(why)
})

test('an error does not print the template, which may hold a secret', () => {
  expect(JSON.stringify(readUrlTemplate('http://user:s3cret@h/{id}'))).not.toContain('s3cret')
})

test('a log shows the template without its query, which may hold a secret, too', () => {
  const url = readUrlTemplate('http://h/may/{id}?key=s3cret')
  expect(url).toMatchObject({ pattern: 'http://h/may/{id}' })
})

// None of these is a key's id (keyProblem); should one come through all the same, no request may leave with it.
test.each(['..', '.', '../admin', 'a/../../admin', './a', 'a/.'])('the id %j makes no URL', id => {
  expect(() => read('http://h/items/{id}').urlFor(id)).toThrow(RangeError)
})

test.each([
  ['http://h/items/.{id}', '.'],
  ['http://h/items/%2e{id}', '.'],
  ['http://h/items/{id}.', '.'],
])('nor does %s make a dot segment with the id %j', (template, id) => {
  expect(() => read(template).urlFor(id)).toThrow(RangeError)
})

test.each([
  ['@evil.example', 'http://h/items/%40evil.example'],
  ['/evil.example', 'http://h/items//evil.example'],
  ['a&admin=1', 'http://h/items/a%26admin%3D1'],
  ["!'()*", 'http://h/items/%21%27%28%29%2A'],
  ['Müller', 'http://h/items/M%C3%BCller'],
  ['a#b', 'http://h/items/a%23b'],
  ['a%2e%2e', 'http://h/items/a%252e%252e'],
  ['..\\x', 'http://h/items/..%5Cx'],
  ['a b\r\nc', 'http://h/items/a%20b%0D%0Ac'],
])('the id %j stays a part of the path', (id, url) => {
  expect(read('http://h/items/{id}').urlFor(id)).toBe(url)
})

test('a parameter that stands elsewhere is not in the URL', () => {
  expect(read('http://h/{id}').urlFor('7?lang=de&page=2', ['lang'])).toBe('http://h/7?page=2')
})

test('an id without a segment that has a place makes no URL', () => {
  expect(() => read('http://h/{1}/{2}').urlFor('a')).toThrow(RangeError)
})

// By the grammar of keys, and a little beyond it.
const letters = [..."abzAZ09._~-@:+,=!$'() éß日ि"]
const strange = [...letters, '/', '?', '&', '#', '%', '2', 'e', '\\', ';', '*', '{', '}', '|', '\n', '\ud83d']
const text = (characters: string[]) =>
  fc.array(fc.constantFrom(...characters), { minLength: 1, maxLength: 9 }).map(each => each.join(''))
const templates = [
  'http://h/a/{id}/b',
  'http://h/{1}/{2}?x=1',
  'http://h/a?b={id}&c=d',
  'http://h/a.{1}?b={2}#'.slice(0, -1),
]

/** What a server reads out of a URL. */
function readBack(url: string) {
  const { pathname, searchParams, host } = new URL(url)
  return { host, segments: pathname.split('/').slice(1).map(decodeURIComponent), query: [...searchParams] }
}

test('no id leaves its place: a server reads back just what the template has, with the id in it', () => {
  const segment = text(letters).map(each => each.normalize())
  const parameters = fc.uniqueArray(fc.tuple(fc.constantFrom('p', 'q', 'page[size]'), segment), {
    selector: ([name]) => name,
  })
  fc.assert(
    fc.property(fc.constantFrom(...templates), segment, segment, parameters, (template, one, two, given) => {
      const query = given.map(([name, value]) => `${name}=${value}`).join('&')
      const id = `${one}/${two}${query && `?${query}`}`
      fc.pre(keyProblem(`n:${id}`) === undefined)
      const back = readBack(read(template).urlFor(id))
      expect(back.host).toBe('h')
      const expected = {
        [templates[0]]: { segments: ['a', one, two, 'b'], query: [] },
        [templates[1]]: { segments: [one, two], query: [['x', '1']] },
        [templates[2]]: {
          segments: ['a'],
          query: [
            ['b', `${one}/${two}`],
            ['c', 'd'],
          ],
        },
        [templates[3]]: { segments: [`a.${one}`], query: [['b', two]] },
      }[template] as { segments: string[]; query: string[][] }
      expect(back.segments).toEqual(expected.segments)
      expect(back.query).toEqual([...expected.query, ...given])
    }),
    { numRuns: 2_000 },
  )
})

test('what is no key, should it come through all the same, stays in its place or makes no URL', () => {
  fc.assert(
    fc.property(fc.constantFrom(...templates), text(strange), text(strange), (template, one, two) => {
      let url: string
      try {
        url = read(template).urlFor(`${one}/${two}`)
      } catch (error) {
        expect(error).toBeInstanceOf(Error)
        return
      }
      const { host, segments } = readBack(url)
      expect(host).toBe('h')
      expect(segments).not.toContain('..')
      if (template === templates[0]) expect([segments[0], url.startsWith('http://h/a/')]).toEqual(['a', true])
    }),
    { numRuns: 2_000 },
  )
})

describe('the URL of a batch', () => {
  const readBatch = (template: string) => {
    const url = readBatchUrl(template)
    if ('problem' in url) throw new Error(url.problem)
    return url
  }

  test.each([
    ['http://h/items?ids={ids}', ['1', '2', 'a/b,c'], 'http://h/items?ids=1,2,a%2Fb%2Cc'],
    ['http://H:80/items/{ids}?full=1', ['Müller', 'x&y=#'], 'http://h/items/M%C3%BCller,x%26y%3D%23?full=1'],
    ['http://h/rows?id=in.({ids})', ['7'], 'http://h/rows?id=in.(7)'],
  ])('%s with the ids %j is %s', (template, ids, url) => {
    expect(readBatch(template).urlFor(ids)).toBe(url)
    expect(readBatch(template).origin).toBe('http://h')
  })

  test('says how much room ids have, and what each takes', () => {
    const { urlFor, idsBytesMax, bytesOf } = readBatch('http://h/items?ids={ids}&x=1')
    const ids = ['7', 'Müller', 'a b']
    const room = ids.reduce((sum, id) => sum + bytesOf(id), 0)
    expect(urlFor(ids).length).toBe(8_000 - idsBytesMax + room - ','.length)
  })

  test.each([
    ['http://h/items', '{ids} once'],
    ['http://h/{ids}?ids={ids}', '{ids} once'],
    ['http://h/{id}?ids={ids}', 'braces'],
    ['http://{ids}/items', 'in its path'],
    ['ftp://h/{ids}', 'http:// or https://'],
  ])('the template %j is refused: %s', (template, why) => {
    const url = readBatchUrl(template)
    expect('problem' in url ? url.problem : 'accepted').toContain(why)
  })

  test('no ids leave their place', () => {
    const { urlFor } = readBatch('http://h/items?ids={ids}&x=1')
    fc.assert(
      fc.property(fc.array(fc.string({ unit: 'grapheme' }).filter(id => keyProblem(`n:${id}`) === undefined)), ids => {
        const url = new URL(urlFor(ids))
        expect(url.pathname + url.hash).toBe('/items')
        expect([...url.searchParams]).toEqual([
          ['ids', ids.join(',')],
          ['x', '1'],
        ])
      }),
    )
  })

  test('an id that got past the grammar of keys does not leave it either', () => {
    expect(() => readBatch('http://h/items/{ids}').urlFor(['..'])).toThrow(RangeError)
  })
})
