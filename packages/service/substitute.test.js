// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are the placeholders under test
import { substitute } from './substitute.js'

test('variables are put into every text, however deep', () => {
  const { value, problems } = substitute(
    { a: ['http://${HOST}:${PORT}/', 7], b: { c: 'x' } },
    { HOST: 'h', PORT: '80' },
  )
  expect(problems).toEqual([])
  expect(value).toEqual({ a: ['http://h:80/', 7], b: { c: 'x' } })
})

test('the default stands in for a variable that is unset or empty, as in a shell', () => {
  const document = ['${A:-x}', '${B:-x}', '${C:-}', '${D:-a:-b}']
  expect(substitute(document, { A: 'a', B: '' }).value).toEqual(['a', 'x', '', 'a:-b'])
})

test('a variable that is set and empty needs no default', () => {
  expect(substitute('<${A}>', { A: '' })).toEqual({ value: '<>', problems: [] })
})

test('an unset variable without default is named, with the field', () => {
  const { problems } = substitute({ namespaces: { a: { url: '${HOST}/${PORT}' } } }, {})
  expect(problems).toEqual([
    'namespaces.a.url: the environment variable HOST is not set, and no default is given',
    'namespaces.a.url: the environment variable PORT is not set, and no default is given',
  ])
})

test.each(['${}', '${1A}', '${A-b}', '${A:=b}', '${A B}'])('%s is no reference', text => {
  expect(substitute({ a: text }, { A: 'a' }).problems[0]).toContain(text)
})

test("a variable's value is text and is not looked into", () => {
  expect(substitute('${A}', { A: '${B} $& {x: 1}' }).value).toBe('${B} $& {x: 1}')
})

test('{id} and a lone dollar are left alone', () => {
  expect(substitute('http://h/{id}?price=$5', {}).value).toBe('http://h/{id}?price=$5')
})
