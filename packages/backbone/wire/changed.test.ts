import { type Changed, decodeChanged, encodeChanged } from './changed.ts'

test('keys and values arrive as they were sent, in their order', () => {
  const json = { version: 'v', contentType: 'application/json', format: 'json' as const }
  const changed: Changed[] = [
    'doc:1',
    { key: 'doc:2', content: { ...json, body: Buffer.from('{"n": 1.0}') }, rank: 7 },
    'doc:*',
    { key: 'doc:3', content: { ...json, format: 'text', body: Buffer.from('Grüße\n') } },
    { key: 'doc:4', content: undefined, rank: 8 },
  ]
  expect(decodeChanged(encodeChanged(changed))).toEqual(changed)
})
