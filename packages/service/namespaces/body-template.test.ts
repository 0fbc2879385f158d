import { readBodyTemplate } from './body-template.ts'

const read = (template: string | Record<string, unknown>) => {
  const body = readBodyTemplate(template)
  if ('problem' in body) throw new Error(body.problem)
  return body
}

test.each([
  ['{"query":"{ item(id: 1) { name } }","variables":{"id":"{id}"}}', '42'],
  ['{"a":"{id}","b":["{id}"]}', 'a/b'],
])('every {id} of %s is the id', (template, id) => {
  expect(JSON.parse(read(template).bodyFor(id))).toEqual(JSON.parse(template.replaceAll('{id}', id)))
})

test('it may be written as a map', () => {
  expect(read({ variables: { id: 'item-{id}' } }).bodyFor('7')).toBe('{"variables":{"id":"item-7"}}')
})

test('no id leaves its text', () => {
  const { bodyFor } = read('{"id":"{id}","other":1}')
  const alphabet = ['"', '\\', '\n', '\u0000', '{id}', '$&', "$'", '}', ',', ':', 'é', '\ud83d', '/', '\u2028', 'a']
  let seed = 1
  for (let run = 0; run < 5_000; run++) {
    let id = ''
    for (let length = run % 12; length >= 0; length--) {
      seed = (seed * 48_271) % 2_147_483_647
      id += alphabet[seed % alphabet.length]
    }
    expect(JSON.parse(bodyFor(id))).toEqual({ id, other: 1 })
  }
})

test.each(['', '{"id":{id}}', '{"id":"{id}"', '{id}', 'query { item }'])('%j is refused', template => {
  expect(readBodyTemplate(template)).toEqual({ problem: 'must be JSON, with {id} in its texts alone' })
})
