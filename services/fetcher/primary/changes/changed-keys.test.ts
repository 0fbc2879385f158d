import type { Namespace, Namespaces } from '@keycast/service'
import { readChanges } from './changed-keys.ts'

const names = ['article', 'task', 'room', 'own']
const namespaces = {
  names,
  get: name => (names.includes(name) ? ({ name, bytesMax: 20, isPerUser: name === 'own' } as Namespace) : undefined),
} as Namespaces

const read = (data: string) => readChanges(data, namespaces, ['article', 'task', 'own'])

test('an event names a key, some keys, or all of a namespace', () => {
  expect(read('{"key":"article:7"}')).toEqual({ keys: ['article:7'] })
  expect(read('{"keys":["article:7","task:8"],"type":"changed"}')).toEqual({ keys: ['article:7', 'task:8'] })
  expect(read('{"key":"task:*"}')).toEqual({ keys: ['task:*'] })
  expect(read('{"keys":[]}')).toEqual({ keys: [] })
})

test('an event that names very many keys names all of its namespaces', () => {
  const keys = Array.from({ length: 10_001 }, (_, n) => `article:${n}`)
  expect(read(JSON.stringify({ keys })).keys).toEqual(['article:*', 'task:*', 'own:*'])
  expect(read(JSON.stringify({ keys: keys.slice(1) })).keys).toHaveLength(10_000)
})

test.each([
  ['', 'it names no key: {"key": "namespace:id"}'],
  ['article:7', 'it names no key: {"key": "namespace:id"}'],
  ['null', 'it names no key: {"key": "namespace:id"}'],
  ['{"id":7}', 'it names no key: {"key": "namespace:id"}'],
  ['{"keys":[["article:7"]]}', 'it names no key: {"key": "namespace:id"}'],
  ['{"keys":{"article:7":1}}', 'keys is no list'],
  ['{"keys":null}', 'keys is no list'],
  ['{"key":["article:7"]}', 'it names no key: {"key": "namespace:id"}'],
  ['{"keys":["article:7",8]}', 'it names no key: {"key": "namespace:id"}'],
  ['{"keys":"article:7"}', 'keys is no list'],
  ['{"key":"room:7"}', '"room:7" is of no namespace that has this stream'],
  ['{"key":"article:7/8"}', expect.stringContaining('"article:7/8": ')],
  ['{"key":"article:../7"}', expect.stringContaining('"article:../7": ')],
])('of an event with %s it is said what is wrong', (data, problem) => {
  expect(read(data)).toEqual({ keys: [], problem })
})

test('an event carries a value as it is written, its type and its order; or says that there is none', () => {
  const { keys, value } = read('{"key":"article:7","value":{"n": 1.0},"order":12,"type":"changed"}')
  expect(keys).toEqual([])
  const version = expect.any(String)
  const content = { version, contentType: 'application/json', format: 'json', body: Buffer.from('{"n": 1.0}') }
  expect(value).toEqual({ key: 'article:7', content, rank: 12 })
  expect(read('{"key":"article:7","value":"Milk","contentType":"text/plain"}').value).toMatchObject({
    content: { format: 'text', body: Buffer.from('Milk') },
    rank: undefined,
  })
  expect(read('{"key":"article:7","delete":true,"order":13}')).toEqual({
    keys: [],
    value: { key: 'article:7', content: undefined, rank: 13 },
  })
})

test.each([
  ['{"key":"article:7","value":"longer than it may be"}', '"article:7": the content is over 20 bytes in UTF-8'],
  ['{"key":"article:7","value":1,"order":-1}', '"article:7": order must be a whole number from 0'],
  ['{"key":"article:7","value":1,"contentType":"text/plain"}', expect.stringContaining('must be a text')],
  ['{"key":"article:7","value":1,"delete":true}', '"article:7": it must have "value" or "delete":true'],
  ['{"key":"article:7","delete":"yes"}', '"article:7": delete must be true'],
  ['{"key":"own:7","value":1}', '"own:7": each user has another value of it'],
  ['{"key":"article:*","value":1}', '"article:*": it names no single key'],
])('of an event with %s the key is asked for, and it is said why', (data, problem) => {
  expect(read(data)).toEqual({ keys: [JSON.parse(data).key], problem })
})

test('a list of keys has no value', () => {
  expect(read('{"keys":["article:7"],"value":1}')).toEqual({ keys: ['article:7'] })
})

function cpuMs(work: () => void) {
  const before = process.cpuUsage()
  work()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1_000
}

test('an event takes about as long whatever stands in it', () => {
  const mapsOf = (member: (index: number) => string) =>
    `{"key":"article:7","x":[${Array.from({ length: 50_000 }, (_, index) => `{${member(index)}}`)}]}`
  const usual = mapsOf(() => '"name":"ab"')
  const others = mapsOf(index => `"n${index.toString(36).padStart(5, '0')}":1`)
  read(usual)
  const usualMs = cpuMs(() => read(usual))
  expect(cpuMs(() => expect(read(others)).toEqual({ keys: ['article:7'] }))).toBeLessThan(3 * usualMs + 20)
})
