import { headersOfKey } from './key-headers.ts'

const query = { names: ['status', 'lang', 'tenant'], headers: { lang: 'accept-language', tenant: 'x-tenant' } }

test('parameters of a key that are headers are sent as such, the others are not', () => {
  expect(headersOfKey({ query }, '7?status=open&lang=de&tenant=acme')).toEqual({
    'accept-language': 'de',
    'x-tenant': 'acme',
  })
})

test.each(['7', '7?status=open'])('%s has none', id => {
  expect(headersOfKey({ query }, id)).toBeUndefined()
  expect(headersOfKey({}, id)).toBeUndefined()
})
