// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are the placeholders under test
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { substitute } from './variables.js'

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

describe('a variable in a file', () => {
  /** @type {string} */
  let folder
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'keycast-substitute-'))
    writeFileSync(join(folder, 'token'), 'opensesame\n')
  })
  afterAll(() => rmSync(folder, { recursive: true }))

  test('stands for what the file holds, but for the newline at its end', () => {
    const env = { TOKEN: '', TOKEN_FILE: join(folder, 'token') }
    expect(substitute('Bearer ${TOKEN} ${TOKEN:-none}', env)).toEqual({
      value: 'Bearer opensesame opensesame',
      problems: [],
    })
  })

  test('that cannot be read is named, even where there is a default', () => {
    const path = join(folder, 'gone')
    expect(substitute({ a: '${TOKEN:-none}' }, { TOKEN_FILE: path }).problems).toEqual([
      `a: TOKEN_FILE=${path}: ENOENT, cannot be read`,
    ])
  })

  test('is not taken beside one in the environment', () => {
    const env = { TOKEN: 'x', TOKEN_FILE: join(folder, 'token') }
    expect(substitute({ a: '${TOKEN}' }, env).problems).toEqual(['a: TOKEN and TOKEN_FILE are both set: unset one'])
  })
})
