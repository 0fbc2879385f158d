import { originsProblem, readOrigins } from './allowed-origins.ts'

test.each(['*', 'https://example.org', 'https://example.org:8443, http://127.0.0.1:3000', 'capacitor://localhost'])(
  '%s can be set',
  text => {
    expect(originsProblem(text)).toBeUndefined()
  },
)

test.each([
  ['https://example.org/', 'write https://example.org'],
  ['https://Example.org', 'write https://example.org'],
  ['https://example.org:443', 'write https://example.org'],
  ['https://a.example, https://example.org/app', 'write https://example.org'],
  ['https://bücher.example', 'write https://xn--bcher-kva.example'],
  ['*, https://example.org', '* means any origin, and stands alone'],
  ['example.org', 'is no origin'],
  ['https://example.org,', '"" is no origin'],
  ['null', 'is no origin'],
])('%s would match nobody, which is said', (text, problem) => {
  expect(originsProblem(text)).toContain(problem)
})

test('pages of the origins named may connect, or any page', () => {
  const isAllowed = readOrigins('https://a.example, https://b.example')
  expect(['https://a.example', 'https://b.example', 'https://c.example'].map(isAllowed)).toEqual([true, true, false])
  expect(readOrigins('*')('https://c.example')).toBe(true)
})
