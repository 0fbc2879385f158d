import { stopOrder } from './stop.ts'

test('gateways stop first and together, the backend last', () => {
  expect(stopOrder(['data-provider', 'fetcher', 'journal', 'gateway', 'gateway-2'])).toEqual([
    ['gateway', 'gateway-2'],
    ['fetcher', 'journal'],
    ['data-provider'],
  ])
})

test('what was never started is not stopped', () => {
  expect(stopOrder(['data-provider'])).toEqual([['data-provider']])
})
