import type { Namespace, Namespaces } from '@keycast/service'
import { readChangedKeys } from './changed-keys.ts'

const names = ['article', 'task', 'room']
const namespaces = {
  names,
  get: name => (names.includes(name) ? ({ name } as Namespace) : undefined),
} as Namespaces

const read = (data: string) => readChangedKeys(data, namespaces, ['article', 'task'])

test('an event names a key, some keys, or all of a namespace', () => {
  expect(read('{"key":"article:7"}')).toEqual(['article:7'])
  expect(read('{"keys":["article:7","task:8"],"type":"changed"}')).toEqual(['article:7', 'task:8'])
  expect(read('{"key":"task:*"}')).toEqual(['task:*'])
  expect(read('{"keys":[]}')).toEqual([])
})

test.each([
  ['', 'it names no key: {"key": "namespace:id"}'],
  ['article:7', 'it names no key: {"key": "namespace:id"}'],
  ['null', 'it names no key: {"key": "namespace:id"}'],
  ['{"id":7}', 'it names no key: {"key": "namespace:id"}'],
  ['{"keys":["article:7",8]}', 'it names no key: {"key": "namespace:id"}'],
  ['{"keys":"article:7"}', 'keys is no list'],
  ['{"key":"room:7"}', '"room:7" is of no namespace that has this stream'],
  ['{"key":"article:7/8"}', expect.stringContaining('"article:7/8": ')],
  ['{"key":"article:../7"}', expect.stringContaining('"article:../7": ')],
])('of an event with %s it is said what is wrong', (data, problem) => {
  expect(read(data)).toEqual({ problem })
})
