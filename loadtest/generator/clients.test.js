import { isLoopback, sourceAddress } from './clients.js'

const near = new URL('ws://127.0.0.1:8080/ws')

test('few clients come from wherever the kernel likes', () => {
  expect(sourceAddress(near, 1_999, 2_000)).toBeUndefined()
})

test('many come from several loopback addresses, none of which runs out of ports', () => {
  const addresses = Array.from({ length: 40_000 }, (_, number) => sourceAddress(near, number, 40_000))

  expect(new Set(addresses)).toEqual(new Set(Array.from({ length: 20 }, (_, n) => `127.0.0.${n + 2}`)))
  expect(addresses.filter(address => address === '127.0.0.2')).toHaveLength(2_000)
})

test('users with tokens come from as many addresses as a gateway would see', () => {
  const addresses = Array.from({ length: 200 }, (_, number) => sourceAddress(near, number, 200, true))

  expect(new Set(addresses).size).toBe(50)
})

test('no loopback address reaches another host', () => {
  expect(sourceAddress(new URL('ws://192.0.2.1:8080/ws'), 39_999, 40_000)).toBeUndefined()
})

test.each([
  ['localhost', true],
  ['127.0.0.1', true],
  ['127.0.0.9', true],
  ['[::1]', true],
  ['127.example.org', false],
  ['192.0.2.1', false],
  ['example.org', false],
])('%s is this host: %s', (hostname, expected) => {
  expect(isLoopback(hostname)).toBe(expected)
})
