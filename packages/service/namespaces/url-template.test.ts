import { readUrlTemplate } from './url-template.ts'

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
])('%s with the id %s is %s', (template, id, url) => {
  expect(read(template).urlFor(id)).toBe(url)
})

test('the origin is scheme, host and port', () => {
  expect(read('http://h:3000/a/{id}').origin).toBe('http://h:3000')
})

test.each([
  ['http://h/{id}/{id}', 'exactly once'],
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
  ['a?admin=1', 'http://h/items/a%3Fadmin%3D1'],
  ['a#b', 'http://h/items/a%23b'],
  ['a%2e%2e', 'http://h/items/a%252e%252e'],
  ['..\\x', 'http://h/items/..%5Cx'],
  ['a b\r\nc', 'http://h/items/a%20b%0D%0Ac'],
])('the id %j stays a part of the path', (id, url) => {
  expect(read('http://h/items/{id}').urlFor(id)).toBe(url)
})
