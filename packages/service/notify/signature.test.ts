import { signatureOf } from './signature.ts'

// The same in clients/python/tests/test_backend.py and packages/client/backend.test.js.
test('a call is signed as the libraries for backends expect it', () => {
  const body = '{"key":"room:1","text":"grüße"}'
  const v1 = '2d6c9ebe4f63044b546dd5d3f6aa069be030cedcb9aed9e9a2e62c1e9242f112'
  expect(signatureOf(body, ['a secret of sixteen'], 1_700_000_000)).toBe(`t=1700000000,v1=${v1}`)
  expect(signatureOf(body, ['another', 'a secret of sixteen'], 1_700_000_000)).toMatch(new RegExp(`,v1=${v1}$`))
})
