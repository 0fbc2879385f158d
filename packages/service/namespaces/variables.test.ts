// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are the placeholders under test
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { substituteVariables } from './variables.ts'

test('variables are put into every text, however deep', () => {
  const { value, problems } = substituteVariables(
    { a: ['http://${HOST}:${PORT}/', 7], b: { c: 'x' } },
    { HOST: 'h', PORT: '80' },
  )
  expect(problems).toEqual([])
  expect(value).toEqual({ a: ['http://h:80/', 7], b: { c: 'x' } })
})

test('the default stands in for a variable that is unset or empty, as in a shell', () => {
  const document = ['${A:-x}', '${B:-x}', '${C:-}', '${D:-a:-b}']
  expect(substituteVariables(document, { A: 'a', B: '' }).value).toEqual(['a', 'x', '', 'a:-b'])
})

test('a variable that is set and empty needs no default', () => {
  expect(substituteVariables('<${A}>', { A: '' })).toEqual({ value: '<>', problems: [] })
})

test('an unset variable without default is named, with the field', () => {
  const { problems } = substituteVariables({ namespaces: { a: { url: '${HOST}/${PORT}' } } }, {})
  expect(problems).toEqual([
    'namespaces.a.url: the environment variable HOST is not set, and there is no default',
    'namespaces.a.url: the environment variable PORT is not set, and there is no default',
  ])
})

test.each(['${}', '${1A}', '${A-b}', '${A:=b}', '${A B}'])('%s is no reference', text => {
  expect(substituteVariables({ a: text }, { A: 'a' }).problems[0]).toContain(text)
})

test("a variable's value is text and is not looked into", () => {
  expect(substituteVariables('${A}', { A: '${B} $& {x: 1}' }).value).toBe('${B} $& {x: 1}')
})

test('{id} and a lone dollar are left alone', () => {
  expect(substituteVariables('http://h/{id}?price=$5', {}).value).toBe('http://h/{id}?price=$5')
})

describe('a variable in a file', () => {
  let folder: string
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'keycast-variables-'))
    writeFileSync(join(folder, 'token'), 'opensesame\n')
  })
  afterAll(() => rmSync(folder, { recursive: true }))

  test('stands for what the file holds, but for the newline at its end', () => {
    const env = { TOKEN: '', TOKEN_FILE: join(folder, 'token') }
    expect(substituteVariables('Bearer ${TOKEN} ${TOKEN:-none}', env)).toEqual({
      value: 'Bearer opensesame opensesame',
      problems: [],
    })
  })

  test('that cannot be read is named, even where there is a default', () => {
    const path = join(folder, 'gone')
    expect(substituteVariables({ a: '${TOKEN:-none}' }, { TOKEN_FILE: path }).problems).toEqual([
      `a: TOKEN_FILE=${path}: cannot be read (ENOENT)`,
    ])
  })

  test('is not taken beside one in the environment', () => {
    const env = { TOKEN: 'x', TOKEN_FILE: join(folder, 'token') }
    expect(substituteVariables({ a: '${TOKEN}' }, env).problems).toEqual([
      'a: TOKEN and TOKEN_FILE are both set: unset one',
    ])
  })
})
