// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are the placeholders under test
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { NamespacesError, readNamespaces } from './namespaces.ts'
import { folder, problemsOf, read, readOne, useFolder } from './read-yaml.fixture.ts'

useFolder()

test('the file of the repository is readable without any variable set', () => {
  const path = new URL('../../../keycast.yaml', import.meta.url).pathname
  const namespaces = readNamespaces({ path, env: {} })
  expect(namespaces.fetched.names).toEqual(['conversation', 'text', 'binary', 'tick'])
  expect(namespaces.journal.names).toEqual(['room', 'user', 'all'])
  expect(namespaces.fetched.get('conversation')).toMatchObject({ name: 'conversation', source: 'http', headers: {} })
  expect(namespaces.fetched.get('conversation')?.urlFor('42')).toBe('http://127.0.0.1:3000/conversations/42')

  const elsewhere = readNamespaces({
    path,
    env: { PROVIDER_HOST: 'provider', PROVIDER_PORT: '80', BACKEND_TOKEN: 't' },
  })
  expect(elsewhere.fetched.get('tick')?.urlFor('1')).toBe('http://provider/ticks/1')
  expect(elsewhere.fetched.get('conversation')?.headers).toEqual({ authorization: 'Bearer t' })
})

test('an unknown name has no namespace, not even one every object has', () => {
  const namespaces = read('namespaces: { a: { source: http, url: "http://h/{id}" } }')
  expect(namespaces.all.get('constructor')).toBeUndefined()
})

test('one error names every bad field', () => {
  const problems = problemsOf(() =>
    read(`
namespaces:
  Room: { source: http, url: "http://h/{id}" }
  a: { source: http, url: http://h/, refresh: 1, maxBytes: 4MB, maxage: 1s }
  b: { url: "http://h/{id}", timeout: 0, headers: { "bad name": x } }
colour: blue
`),
  )
  expect(problems.map(problem => problem.split(':')[1].trim()).sort()).toEqual(
    [
      'namespaces.Room',
      'namespaces.a.refresh',
      'namespaces.a.maxBytes',
      'namespaces.a.maxage',
      'namespaces.b.source',
      'namespaces.b.timeout',
      'namespaces.b.headers.bad name',
      'colour',
    ].sort(),
  )
})

test('no error prints a secret', () => {
  const fields = 'source: http\nurl: "http://u:${TOKEN}@h/{id}"\nheaders: { authorization: "Bearer ${TOKEN}\\nx" }'
  const problems = problemsOf(() => readOne(fields, { TOKEN: 's3cret' }))
  expect(problems).toHaveLength(2)
  expect(problems.join()).not.toContain('s3cret')
})

test('a variable that is not set is named', () => {
  expect(problemsOf(() => readOne('source: http\nurl: "http://${BACKEND}/{id}"'))[0]).toContain('BACKEND is not set')
})

test('a gateway, which asks no backend, needs none of the variables in headers and gets no headers', () => {
  const path = join(folder, 'guarded.yaml')
  const headers = 'headers: { authorization: "Bearer ${BACKEND_TOKEN}" }'
  writeFileSync(path, `namespaces:\n  a: { source: http, url: "http://h/{id}", maxBytes: 64KiB, ${headers} }\n`)
  expect(problemsOf(() => readNamespaces({ path, env: {} }))[0]).toContain('BACKEND_TOKEN is not set')

  const namespaces = readNamespaces({ path, env: {}, headers: false })
  expect(namespaces.fetched.get('a')).toMatchObject({ bytesMax: 65_536, headers: {} })
  expect(readNamespaces({ path, env: { BACKEND_TOKEN: 't' }, headers: false }).fetched.get('a')?.headers).toEqual({})
})

test.each(['', 'namespaces:', 'namespaces: []', 'namespaces: { a: http }', 'namespaces: { a: }', 'a'])(
  'without headers too %j is refused',
  yaml => {
    const path = join(folder, 'keycast.yaml')
    writeFileSync(path, yaml)
    expect(() => readNamespaces({ path, env: {}, headers: false })).toThrow(NamespacesError)
  },
)

test.each([
  ['namespaces: {', 'line'],
  ['namespaces: *unknown', 'alias'],
  ['namespaces:\n  a: 1\n  a: 2\n', 'unique'],
  ['', 'the file: must be a map'],
  ['namespaces: {}', 'at least one'],
  ['namespaces: []', 'must map names'],
  ['namespaces: { a: http }', 'namespaces.a: must be a map'],
])('the file %j is refused', (yaml, why) => {
  expect(problemsOf(() => read(yaml)).join('\n')).toContain(why)
})

test.each([
  [100, 'namespaces.a: must be a map'],
  [100_000, 'line 1: nested too deeply'],
])('a file nested %d levels deep is refused', (levels, why) => {
  const yaml = `namespaces: { a: ${'['.repeat(levels)}${']'.repeat(levels)} }`
  expect(problemsOf(() => read(yaml)).join('\n')).toContain(why)
})

const secret = 'a-word-that-nobody-may-read'

test.each([
  ['namespaces:\n\ta: 1', ['line 2: Tabs are not allowed as indentation']],
  ['namespaces: {}\n---\naccess: {}', ['line 2: begins a second document: take the line --- away']],
  [`namespaces: !${secret}`, ['line 1: Unresolved tag']],
  [`namespaces: |${secret}`, ['line 1: Block scalar header includes extra characters']],
  [`namespaces: *${secret}`, ['Unresolved alias (the anchor must be set before the alias)']],
  [`- a\nb: ${secret}`, expect.arrayContaining([expect.stringContaining('line 2: Unexpected')])],
  [`namespaces: ${'['.repeat(5_000)}`, expect.arrayContaining([expect.stringContaining('line 1: Flow sequence')])],
])('of a file that is no YAML the first faults are named, by their lines, without its text', (yaml, problems) => {
  const found = problemsOf(() => read(yaml))
  expect(found).toEqual(problems)
  expect(found.length).toBeLessThan(10)
  expect(found.join()).not.toContain(secret)
})

test.each([
  ['a list 200 deep', '['.repeat(200) + ']'.repeat(200)],
  ['a map within itself', '&n { room: *n }'],
])('%s is refused as nested too deeply', (_, value) => {
  expect(problemsOf(() => read(`namespaces: ${value}`)).join()).toContain('nested deeper than 128')
})

test('a file that is not there is named', () => {
  const path = join(folder, 'absent.yaml')
  expect(() => readNamespaces({ path, env: {} })).toThrow(
    `Invalid namespaces in ${path}:\n  the file cannot be read (ENOENT)`,
  )
})

test('who may read what is not looked at here: its variables need not be set', () => {
  const access = 'access: { tokens: [{ secret: "${JWT_SECRET}" }] }'
  expect(read(`${access}\nnamespaces: { a: { source: http, url: "http://h/{id}" } }`).all.names).toEqual(['a'])
  expect(problemsOf(() => read('access: {}'))[0]).toContain('must map names to namespaces')
})
