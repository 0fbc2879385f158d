import { versionOf } from '@keycast/protocol'
import type { Result } from '../worker-messages.ts'
import { readBatch } from './batch.ts'
import type { Pulled } from './response.ts'

const head = { status: 200, store: true, maxAgeMs: 5_000 }

/** @param ids asked for, and perhaps the version held of each */
function read(body: string | Buffer, ids: (string | [id: string, version: string])[], items = '/items', id = '/id') {
  const keys = ids.map(each => {
    const [id, version] = typeof each === 'string' ? [each] : each
    return { key: `item:${id}`, id, version, delta: false }
  })
  const { result, body: own, others } = readBatch({ items, id, keys }, Buffer.from(body), head)
  return { all: [{ result, body: own }, ...(others ?? [])], others }
}

const shown = ({ result, body }: Pulled) => (result.kind === 'value' ? String(body) : codeOf(result))
const codeOf = (result: Result) => (result.kind === 'failed' ? result.code : result.kind)

test('each key has the item with its id, whatever their order, as it was written', () => {
  const body = '{"items":[{"id":"b","n":1.0},{"id":7, "x":[{"id":"a"}]},{"n":12345678901234567890,"id":"a"}]}'
  const { all } = read(body, ['a', 'b', '7'])
  expect(all.map(shown)).toEqual([
    '{"n":12345678901234567890,"id":"a"}',
    '{"id":"b","n":1.0}',
    '{"id":7, "x":[{"id":"a"}]}',
  ])
  const version = versionOf(Buffer.from('{"id":"b","n":1.0}'), 'application/json')
  expect(all[1].result).toEqual({
    kind: 'value',
    version,
    contentType: 'application/json',
    format: 'json',
    ...head,
  })
})

test('an item that is held already is current', () => {
  const version = versionOf(Buffer.from('{"id":"a"}'), 'application/json')
  const { all } = read('{"items":[{"id":"a"},{"id":"b"}]}', [
    ['a', version],
    ['b', version],
  ])
  expect(all[0]).toEqual({ result: { kind: 'current', ...head } })
  expect(all[1].result.kind).toBe('value')
})

test('an item that is missing is not_found for as long as the answer is fresh, and no other is', () => {
  const { all } = read('{"items":[{"id":"a"}]}', ['missing', 'a'])
  expect(all[0].result).toMatchObject({ code: 'not_found', status: 200, maxAgeMs: 5_000 })
  expect(all[1].result.kind).toBe('value')
})

test('items that nobody asked for, or without an id, harm no other', () => {
  const body = '{"items":[null,{},{"id":null},{"id":{"id":"a"}},{"id":"other"},7,[],{"id":"a"}]}'
  expect(read(body, ['a', 'null', '7']).all.map(shown)).toEqual(['{"id":"a"}', 'not_found', 'not_found'])
})

test('ids are compared as text, and long numbers digit by digit', () => {
  const body = '[{"key":{"id":12345678901234567891}},{"key":{"id":"M\\u00fcller"}},{"key":{"id":"01"}}]'
  const ids = ['12345678901234567891', '12345678901234567890', 'Müller', '1']
  expect(read(body, ids, '', '/key/id').all.map(codeOf)).toEqual(['value', 'not_found', 'value', 'not_found'])
  function codeOf({ result }: Pulled) {
    return result.kind === 'failed' ? result.code : result.kind
  }
})

test.each([
  ['{"items":', 'the JSON does not parse'],
  ['', 'the content is empty, which no JSON is'],
  [Buffer.from('{"items":["\xff"]}', 'latin1'), 'the JSON is not in UTF-8'],
  ['{"data":[]}', 'the response to a batch has no list where `items` points'],
  ['{"items":{"a":1}}', 'the response to a batch has no list where `items` points'],
])('a response that is no list fails as a whole: %s', (body, message) => {
  const { all, others } = read(body, ['a', 'b'])
  expect(all[0].result).toEqual({ kind: 'failed', code: 'invalid_content', message, status: 200 })
  expect(others).toBeUndefined()
})

test('a response of more items than anybody asks for is not gone through to its end', () => {
  const { all, others } = read(`[${'0,'.repeat(100_000)}{"id":"a"}]`, ['a', 'b'], '')
  expect(all[0].result).toMatchObject({ kind: 'failed', code: 'too_large', status: 200 })
  expect(others).toBeUndefined()
  expect(read(`[${'0,'.repeat(99_999)}{"id":"a"}]`, ['a'], '').all.map(shown)).toEqual(['{"id":"a"}'])
})
