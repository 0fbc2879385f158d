// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are the placeholders under test
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { NamespacesError, readNamespaces } from './namespaces.ts'

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'keycast-namespaces-'))
})
afterAll(() => rmSync(folder, { recursive: true }))

const read = (yaml: string, env: NodeJS.ProcessEnv = {}, options: { headers?: boolean; authorize?: boolean } = {}) => {
  const path = join(folder, 'keycast.yaml')
  writeFileSync(path, yaml)
  return readNamespaces({ path, env, ...options })
}

/** One namespace "a" with the given fields. */
const readOne = (fields: string, env?: NodeJS.ProcessEnv) => {
  const lines = fields.split('\n').map(line => `    ${line}`)
  const namespace = read(`namespaces:\n  a:\n${lines.join('\n')}\n`, env).get('a')
  if (!namespace) throw new Error('no namespace "a"')
  return namespace
}

const minimal = 'source: http\nurl: http://h/{id}'

const problemsOf = (reading: () => unknown) => {
  try {
    reading()
  } catch (error) {
    if (error instanceof NamespacesError) return error.problems
    throw error
  }
  throw new Error('the file was accepted')
}

test('the file of the repository is readable without any variable set', () => {
  const path = new URL('../../../keycast.yaml', import.meta.url).pathname
  const namespaces = readNamespaces({ path, env: {} })
  expect(namespaces.names).toEqual(['conversation', 'text', 'binary', 'tick'])
  expect(namespaces.journal.names).toEqual(['room', 'user', 'all'])
  expect(namespaces.get('conversation')).toMatchObject({ name: 'conversation', source: 'http', headers: {} })
  expect(namespaces.get('conversation')?.urlFor('42')).toBe('http://127.0.0.1:3000/conversations/42')

  const elsewhere = readNamespaces({
    path,
    env: { PROVIDER_HOST: 'provider', PROVIDER_PORT: '80', BACKEND_TOKEN: 't' },
  })
  expect(elsewhere.get('tick')?.urlFor('1')).toBe('http://provider/ticks/1')
  expect(elsewhere.get('conversation')?.headers).toEqual({ authorization: 'Bearer t' })
})

test('a field left out has its default', () => {
  expect(readOne(minimal)).toMatchObject({
    origin: 'http://h',
    headers: {},
    maxAgeMs: 1_000,
    refreshMs: 1_000,
    timeoutMs: 2_000,
    bytesMax: 4_194_304,
    ids: { min: 1, max: 1 },
  })
})

test('fields are read in their units, also from a variable', () => {
  const written = 'maxAge: 0\nrefresh: ${REFRESH:-0}\ntimeout: ${TIMEOUT}\nmaxBytes: 64KiB'
  expect(readOne(`${minimal}\n${written}`, { TIMEOUT: '500ms' })).toMatchObject({
    maxAgeMs: 0,
    refreshMs: 0,
    timeoutMs: 500,
    bytesMax: 65_536,
  })
})

test('an unknown name has no namespace, not even one every object has', () => {
  const namespaces = read('namespaces: { a: { source: http, url: "http://h/{id}" } }')
  expect(namespaces.get('constructor')).toBeUndefined()
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

test('namespaces of messages are apart from those of values, and have defaults', () => {
  const namespaces = read(`namespaces:
  a: { source: http, url: "http://h/{id}" }
  room: { source: journal }
  all:
    source: journal
    publish: server
    history: { messages: 100, age: 30d, bytes: 1MiB }
    maxBytes: 1KiB
    members: named
    names: unique
`)
  expect(namespaces.names).toEqual(['a'])
  expect(namespaces.get('room')).toBeUndefined()
  expect(namespaces.journal.names).toEqual(['room', 'all'])
  expect(namespaces.journal.get('room')).toEqual({
    name: 'room',
    source: 'journal',
    history: { messages: 1_000, ageMs: 604_800_000, bytes: 16_777_216 },
    bytesMax: 65_536,
    publish: 'client',
    members: 'none',
    names: 'any',
  })
  expect(namespaces.journal.get('all')).toMatchObject({
    history: { messages: 100, ageMs: 2_592_000_000, bytes: 1_048_576 },
    bytesMax: 1_024,
    publish: 'server',
    members: 'named',
    names: 'unique',
  })
})

test('a backend is asked about messages where publish names it, with headers that gateways and journals need not have', () => {
  const text = `namespaces:
  room:
    source: journal
    publish: { ask: "http://h/\${PATH_OF_IT}/{id}", otherwise: take }
    headers: { authorization: "Bearer \${SECRET}" }
`
  const asked = { timeoutMs: 2_000, otherwise: 'take', origin: 'http://h' }
  const whole = read(text, { PATH_OF_IT: 'check', SECRET: 's' }).journal.get('room')
  expect(whole).toMatchObject({ publish: 'client', ask: { ...asked, headers: { authorization: 'Bearer s' } } })
  expect(whole?.ask?.urlFor('7')).toBe('http://h/check/7')
  const atGateway = read(text, { PATH_OF_IT: 'check' }, { headers: false }).journal.get('room')
  expect(atGateway?.ask).toMatchObject({ ...asked, headers: {} })
  const atJournal = read(text, {}, { headers: false, authorize: false }).journal.get('room')
  expect(atJournal).toMatchObject({ publish: 'client' })
  expect(atJournal).not.toHaveProperty('ask')
})

test('what a backend is told of rooms has defaults', () => {
  const { journal } = read(
    'namespaces:\n  room: { source: journal, notify: { url: http://h/told, secretFiles: [one] } }\n',
  )
  expect(journal.get('room')?.notify).toEqual({
    url: 'http://h/told',
    secretFiles: ['one'],
    timeoutMs: 5_000,
    messages: true,
    members: false,
  })
})

test.each([
  ['history: 1000', 'namespaces.a.history: must be a map with messages, age and bytes'],
  ['history: { messages: 0 }', 'namespaces.a.history.messages: must be a whole number: 1 to 1000000'],
  ['history: { messages: 1.5 }', 'namespaces.a.history.messages: must be a whole number: 1 to 1000000'],
  ['history: { age: 400d }', 'namespaces.a.history.age: must be a duration such as 500ms or 2s, from 1s to 366d'],
  [
    'history: { bytes: 1 }',
    'namespaces.a.history.bytes: must be bytes, or a size such as 64KiB or 4MiB, from 1KiB to 1GiB',
  ],
  ['history: { length: 1 }', 'namespaces.a.history.length: unknown field'],
  ['maxBytes: 1MiB', 'namespaces.a.maxBytes: must be bytes, or a size such as 64KiB or 4MiB, from 1 to 512KiB'],
  ['publish: everybody', 'namespaces.a.publish: must be client, server, or a map with ask'],
  ['publish: { timeout: 1s }', 'namespaces.a.publish.ask: must be a URL'],
  ['publish: { ask: "ftp://h/" }', 'namespaces.a.publish.ask: must begin with http:// or https://'],
  ['publish: { ask: "http://h/", otherwise: maybe }', 'namespaces.a.publish.otherwise: must be refuse or take'],
  [
    'publish: { ask: "http://h/", timeout: soon }',
    'namespaces.a.publish.timeout: must be a duration such as 500ms or 2s, from 1ms to 1d',
  ],
  ['publish: { ask: "http://h/", body: x }', 'namespaces.a.publish.body: unknown field'],
  ['headers: { x-key: k }', 'namespaces.a.headers: need publish: { ask }: nothing else sends them'],
  ['members: all', 'namespaces.a.members: must be none or counted or named'],
  ['names: many', 'namespaces.a.names: must be unique or any'],
  ['notify: http://h/told', 'namespaces.a.notify: must be a map with url, secretFiles, timeout, messages and members'],
  [
    'notify: { url: "http://h/{id}", secretFiles: [one] }',
    'namespaces.a.notify.url: must hold no {id}: each call names its keys',
  ],
  [
    'notify: { url: http://h/told }',
    'namespaces.a.notify.secretFiles: must be a list of one path, or of two while secrets change',
  ],
  [
    'notify: { url: http://h/told, secretFiles: [one, two, three] }',
    'namespaces.a.notify.secretFiles: must be a list of one path, or of two while secrets change',
  ],
  [
    'notify: { url: http://h/told, secretFiles: [one], members: true }',
    'namespaces.a.notify.members: needs members: counted or named in the namespace',
  ],
  [
    'notify: { url: http://h/told, secretFiles: [one], messages: false }',
    'namespaces.a.notify.messages: or members must be true',
  ],
  ['url: http://h/{id}', 'namespaces.a.url: unknown field'],
])('of a journal, %s is refused', (field, problem) => {
  expect(problemsOf(() => readOne(`source: journal\n${field}`))).toEqual([`line 4: ${problem}`])
})

test('of values a backend can be told which keys have viewers', () => {
  const notify = 'notify: { url: http://h/told, secretFiles: [one, two], timeout: 1s, viewers: true }'
  const read = { url: 'http://h/told', secretFiles: ['one', 'two'], timeoutMs: 1_000 }
  expect(readOne(`${minimal}\n${notify}`).notify).toEqual(read)
})

test.each([
  [minimal, 'notify: {}', 'notify.url: must be a URL'],
  [
    minimal,
    'notify: { url: http://h/told, secretFiles: [one] }',
    'notify.viewers: must be true: of values a backend is told nothing else',
  ],
  [
    minimal,
    'notify: { url: http://h/told, secretFiles: [one], viewers: true, members: true }',
    'notify.members: unknown field',
  ],
  [
    `${minimal}\nper: user\ncredentials: viewer`,
    'notify: { url: http://h/told, secretFiles: [one], viewers: true }',
    'notify: cannot be set with per: user: a key has a value for each user there',
  ],
  [
    'source: pushed',
    'notify: { url: http://h/told, secretFiles: [one], viewers: true }',
    'notify: is for source: http and journal: of values that are handed over no backend is told',
  ],
])('of values, %s and %s is refused', (source, field, problem) => {
  const problems = problemsOf(() => readOne(`${source}\n${field}`))
  expect(problems.map(each => each.replace(/^line \d+: /, ''))).toContain(`namespaces.a.${problem}`)
})

test('ids have one segment, or as many as the namespace says', () => {
  expect(readOne(minimal).ids).toEqual({ min: 1, max: 1 })
  expect(readOne(`${minimal}\nids: { segments: 3 }`).ids).toEqual({ min: 1, max: 3 })
})

test('who may read what is not looked at here: its variables need not be set', () => {
  const access = 'access: { tokens: [{ secret: "${JWT_SECRET}" }] }'
  expect(read(`${access}\nnamespaces: { a: { source: http, url: "http://h/{id}" } }`).names).toEqual(['a'])
  expect(problemsOf(() => read('access: {}'))[0]).toContain('must map names to namespaces')
})

test.each([
  ['ids: 2', 'namespaces.a.ids: must be a map as in { segments: 1 }'],
  ['ids: {}', 'namespaces.a.ids.segments: must be'],
  ['ids: { segments: 0 }', 'namespaces.a.ids.segments: must be'],
  ['ids: { segments: 1.5 }', 'namespaces.a.ids.segments: must be'],
  ['ids: { segments: 129 }', 'namespaces.a.ids.segments: must be'],
  ['ids: { depth: 1 }', 'namespaces.a.ids.depth: unknown field'],
  ['refresh: 1000', 'namespaces.a.refresh: must be a duration'],
  ['refresh: 49ms', 'namespaces.a.refresh: must be a duration'],
  ['refresh: soon', 'namespaces.a.refresh: must be a duration'],
  ['maxAge: 25h', 'namespaces.a.maxAge: must be a duration'],
  ['timeout: 0', 'namespaces.a.timeout: must be a duration'],
  ['timeout: [1s]', 'namespaces.a.timeout: must be a duration'],
  ['maxBytes: 0', 'namespaces.a.maxBytes: must be bytes, or a size'],
  ['maxBytes: 65MiB', 'namespaces.a.maxBytes: must be bytes, or a size'],
  ['maxBytes: 1.5', 'namespaces.a.maxBytes: must be bytes, or a size'],
  ['headers:', 'namespaces.a.headers: must be a map'],
  ['headers: { a: [b] }', 'namespaces.a.headers.a: must be text'],
])('%s is refused', (field, problem) => {
  expect(problemsOf(() => readOne(`${minimal}\n${field}`)).join('\n')).toContain(problem)
})

const authorized = `${minimal}\nauthorize: { url: "http://api/rights/{id}" }`

test('where the backend is asked whether a viewer may read has a method and a time for which its word holds', () => {
  const { authorize } = readOne(authorized)
  expect(authorize).toMatchObject({ origin: 'http://api', method: 'HEAD', keepMs: 60_000 })
  expect(authorize?.urlFor('a/b')).toBe('http://api/rights/a/b')
  const other = `${minimal}\nauthorize: { url: "http://api/rights/{id}", method: GET, keep: 5s }`
  expect(readOne(other).authorize).toMatchObject({ method: 'GET', keepMs: 5_000 })
  expect(readOne(minimal)).not.toHaveProperty('authorize')
})

test.each([
  ['authorize: http://api/{id}', 5, 'authorize: must be a map with url, method, keep and keepRefused'],
  ['authorize: {}', 5, 'authorize.url: must be a URL'],
  ['authorize:\n  url: http://api/rights', 6, 'authorize.url: must hold {id}'],
  ['authorize:\n  url: http://api/{id}\n  method: POST', 7, 'authorize.method: must be HEAD or GET'],
  ['authorize: { url: "http://api/{id}", keep: 500ms }', 5, 'authorize.keep: must be a duration'],
  ['authorize: { url: "http://api/{id}", keep: 25h }', 5, 'authorize.keep: must be a duration'],
  ['authorize: { url: "http://api/{id}", cache: 1s }', 5, 'authorize.cache: unknown field'],
])('%j is refused, with its line', (fields, line, problem) => {
  const problems = problemsOf(() => readOne(`${minimal}\n${fields}`))
  expect(problems.join('\n')).toContain(`line ${line}: namespaces.a.${problem}`)
})

test('headers are sent under lower-case names', () => {
  expect(readOne(`${minimal}\nheaders: { X-Api-Version: 2, Accept: text/plain }`).headers).toEqual({
    'x-api-version': '2',
    accept: 'text/plain',
  })
})

test('a header with nothing in it, or nothing after its scheme, is not sent', () => {
  const fields = `${minimal}\nheaders: { authorization: "Bearer \${TOKEN:-}", x-a: "\${A:-}", x-b: "" }`
  expect(readOne(fields).headers).toEqual({})
  expect(readOne(fields, { TOKEN: 't', A: ' ' }).headers).toEqual({ authorization: 'Bearer t' })
})

test.each([
  ['"a b"', 'x', 'not a valid header name'],
  ['x-a', '"a\\nb: c"', 'not valid in a header'],
  ['Connection', 'close', 'Keycast sets it itself'],
  ['If-None-Match', 'x', 'Keycast sets it itself'],
])('the header %s: %s is refused', (name, value, why) => {
  expect(problemsOf(() => readOne(`${minimal}\nheaders: { ${name}: ${value} }`))[0]).toContain(why)
})

test('a header given twice in different case is refused', () => {
  expect(problemsOf(() => readOne(`${minimal}\nheaders: { X-A: 1, x-a: 2 }`))[0]).toContain('given twice')
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
  expect(namespaces.get('a')).toMatchObject({ bytesMax: 65_536, headers: {} })
  expect(readNamespaces({ path, env: { BACKEND_TOKEN: 't' }, headers: false }).get('a')?.headers).toEqual({})
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
  [100_000, 'nested too deeply at line 1'],
])('a file nested %d levels deep is refused', (levels, why) => {
  const yaml = `namespaces: { a: ${'['.repeat(levels)}${']'.repeat(levels)} }`
  expect(problemsOf(() => read(yaml)).join('\n')).toContain(why)
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

describe('values that differ per user', () => {
  const perUser = `${minimal}\nper: user\ncredentials: viewer`

  test('are said with both fields', () => {
    expect(readOne(perUser).isPerUser).toBe(true)
    expect(readOne(minimal).isPerUser).toBeUndefined()
    expect(readOne(`${perUser}\nheaders: { x-service: s, authorization: "Bearer \${TOKEN:-}" }`).headers).toEqual({
      'x-service': 's',
    })
  })

  test.each([
    [
      `${minimal}\ncredentials: viewer`,
      "line 5: namespaces.a.credentials: without per: user, a value had with one viewer's token would be shown to all",
    ],
    [
      `${minimal}\nper: user`,
      'line 5: namespaces.a.per: needs credentials: viewer, or the backend could not tell whose value it is asked for',
    ],
    [`${minimal}\nper: session`, 'line 5: namespaces.a.per: must be user, or left out'],
    [`${minimal}\ncredentials: service`, 'line 5: namespaces.a.credentials: must be viewer, or left out'],
    [
      `${perUser}\nheaders:\n  authorization: Bearer s3cret`,
      "line 8: namespaces.a.headers.authorization: cannot be set with credentials: viewer, which sends the viewer's own",
    ],
  ])('%j is refused', (fields, problem) => {
    expect(problemsOf(() => readOne(fields))).toEqual([problem])
  })
})

describe('a namespace that is asked by POST', () => {
  const post = 'source: http\nmethod: POST\nurl: http://h/graphql'

  test('has a body with the id', () => {
    const { urlFor, bodyFor } = readOne(`${post}\nbody: { variables: { id: "{id}" } }`)
    expect([urlFor('7'), bodyFor?.('7')]).toEqual(['http://h/graphql', '{"variables":{"id":"7"}}'])
  })

  test.each([
    [post, 'body: is needed with method: POST'],
    [`${post}\nbody: "{id}"`, 'body: must be JSON'],
    [`${minimal}\nbody: '{"id":"{id}"}'`, 'body: needs method: POST'],
    [`${minimal}\nmethod: PUT`, 'method: must be GET or POST'],
    [`${minimal}\nauthorize: { url: "http://h/items" }`, 'authorize.url: must hold {id}'],
  ])('%j is refused: %s', (fields, why) => {
    expect(problemsOf(() => readOne(fields)).join()).toContain(why)
  })
})

describe('the keys of a namespace', () => {
  const of = (fields: string) => readOne(`source: http\n${fields}`)

  test('have no id where the URL has no place for one', () => {
    const namespace = of('url: http://h/me/inbox')
    expect(namespace.ids).toEqual({ min: 0, max: 0 })
    expect(namespace.urlFor('')).toBe('http://h/me/inbox')
  })

  test('have as many segments as the URL and the body have places for', () => {
    expect(of('url: http://h/{1}/tasks/{2}').ids).toEqual({ min: 2, max: 2 })
    const posted = of('url: http://h/{1}\nmethod: POST\nbody: { task: "{2}" }')
    expect(posted.ids).toEqual({ min: 2, max: 2 })
    expect([posted.urlFor('acme/7'), posted.bodyFor?.('acme/7')]).toEqual(['http://h/acme', '{"task":"7"}'])
  })

  test('may have a query, of which some parameters are headers', () => {
    const namespace = of(
      'url: http://h/{id}\nquery: [status, lang]\nasHeaders: { lang: Accept-Language }\nauthorize: { url: "http://h/may/{id}" }',
    )
    expect(namespace.query).toEqual({ names: ['status', 'lang'], headers: { lang: 'accept-language' } })
    expect(namespace.urlFor('7?status=open&lang=de')).toBe('http://h/7?status=open')
    expect(namespace.authorize?.urlFor('7?status=open&lang=de')).toBe('http://h/may/7?status=open')
  })

  test('may be asked about by a part of the id', () => {
    const namespace = of('url: http://h/{1}/tasks/{2}\nauthorize: { url: "http://h/{1}/may" }')
    expect(namespace.authorize?.urlFor('acme/7')).toBe('http://h/acme/may')
  })

  test.each([
    ['url: http://h/{2}', 'url: must hold {1}, too'],
    ['url: http://h/{1}\nids: { segments: 2 }', 'url: must hold {id}, where ids says'],
    ['url: http://h/inbox\nids: { segments: 1 }', 'url: must hold {id}, where ids says'],
    ['url: http://h/{id}\nmethod: POST\nbody: { a: "{1}" }', 'url: must hold {id}, or {1} and so on, not both'],
    ['url: http://h/{id}\nauthorize: { url: "http://h/may/{2}" }', 'authorize.url: must not hold {2}'],
    ['url: http://h/inbox\nauthorize: { url: "http://h/may/{id}" }', 'authorize.url: must not hold an id'],
    ['url: http://h/{id}\nquery: status', 'query: must be a list of parameters'],
    ['url: http://h/{id}\nquery: ["a b"]', 'query.0: is no name of a parameter'],
    ['url: http://h/{id}\nquery: [a, a]', 'query.1: is given twice'],
    ['url: http://h/{id}\nasHeaders: { lang: accept-language }', 'asHeaders.lang: must be named by query, too'],
    [
      'url: http://h/{id}\nquery: [u]\nasHeaders: { u: Authorization }',
      'asHeaders.u: Authorization cannot come from a key',
    ],
    ['url: http://h/{id}\nquery: [u]\nasHeaders: { u: Range }', 'asHeaders.u: Range cannot be set'],
    [
      'url: http://h/{id}\nquery: [u]\nasHeaders: { u: x-u }\nheaders: { X-U: a }',
      'asHeaders.u: x-u is set by headers, too',
    ],
  ])('%j is refused: %s', (fields, why) => {
    expect(problemsOf(() => of(fields)).join()).toContain(why)
  })
})

describe('a backend that waits for a change', () => {
  test('is asked to for 20 s, and each second where it does not', () => {
    expect(readOne(`${minimal}\nrefresh: wait`)).toMatchObject({ waitMs: 20_000, refreshMs: 1_000 })
    expect(readOne(minimal)).not.toHaveProperty('waitMs')
  })

  test.each([
    ['refresh: waits', 'refresh: must be '],
    ['refresh: wait\nmethod: POST\nbody: { a: 1 }', 'refresh: cannot be wait with method: POST'],
    ['refresh: wait\nper: user\ncredentials: viewer', 'refresh: cannot be wait with per: user'],
    ['refresh: wait\nbatch: { url: "http://h/?i={ids}", items: "", id: /id }', 'refresh: cannot be wait with batch'],
    ['refresh: wait\nchanges: { sse: "http://h/" }', 'refresh: cannot be wait with changes'],
  ])('%j is refused: %s', (fields, why) => {
    expect(problemsOf(() => readOne(`${minimal}\n${fields}`)).join()).toContain(why)
  })
})

describe("a backend's stream of changes", () => {
  test('takes the place of refresh, which holds while the stream is down', () => {
    expect(readOne(`${minimal}\nchanges: { sse: "http://h/changes?of=all" }\nrefresh: 5s`)).toMatchObject({
      refreshMs: 0,
      changes: { url: 'http://h/changes?of=all', origin: 'http://h', pollMs: 5_000 },
    })
    expect(readOne(`${minimal}\nchanges: { sse: "http://other/" }`).changes).toMatchObject({ pollMs: 1_000 })
    expect(readOne(minimal)).not.toHaveProperty('changes')
  })

  test.each([
    ['changes: http://h/changes', 'changes: must be a map with sse'],
    ['changes: {}', 'changes.sse: must be a URL'],
    ['changes: { sse: "http://h/{id}" }', 'changes.sse: must hold no {id}'],
    ['changes: { sse: "ftp://h/" }', 'changes.sse: must begin with http'],
  ])('%j is refused: %s', (fields, why) => {
    expect(problemsOf(() => readOne(`${minimal}\n${fields}`)).join()).toContain(why)
  })

  test('may be that of several namespaces, whose credentials are the same', () => {
    const of = (headers: string) =>
      read(
        ['a', 'b']
          .map(name => `  ${name}: { source: http, url: "http://h/${name}/{id}", changes: { sse: "http://h/changes" }`)
          .map((line, index) => `${line}, headers: { x-key: ${index === 0 ? 'one' : headers} } }`)
          .reduce((file, line) => `${file}${line}\n`, 'namespaces:\n'),
      )
    expect(of('one').names).toEqual(['a', 'b'])
    expect(problemsOf(() => of('two'))).toEqual([
      'line 3: namespaces.b.changes.sse: is also that of a, whose headers or token differ: a stream is opened once, with one identity',
    ])
  })
})

describe('the token that a backend is shown', () => {
  test('is in a file, or comes from an endpoint', () => {
    expect(readOne(`${minimal}\ntoken: { file: /run/token }`).token).toEqual({ file: '/run/token' })
    const written = 'token: { url: "https://login/token", client: keycast, secret: "${SECRET}", scope: read }'
    expect(readOne(`${minimal}\n${written}`, { SECRET: 's3cret' }).token).toEqual({
      url: 'https://login/token',
      client: 'keycast',
      secret: 's3cret',
      scope: 'read',
    })
  })

  test.each([
    ['token: abc', 'token: must be { file: PATH }, or { url, client, secret }'],
    ['token: { file: "" }', 'token'],
    ['token: { url: "ftp://x", client: a, secret: b }', 'token'],
    ['token: { url: "https://x" }', 'token'],
    ['token: { file: /run/token }\nheaders: { authorization: x }', 'token: sends authorization, as headers does'],
    [
      'token: { file: /run/token }\nper: user\ncredentials: viewer',
      'token: sends authorization, as credentials: viewer',
    ],
  ])('%j is refused', (fields, why) => {
    expect(problemsOf(() => readOne(`${minimal}\n${fields}`)).join()).toContain(why)
  })
})

describe('a namespace that is asked for many keys at once', () => {
  const batch = 'batch: { url: "http://api/items?ids={ids}", items: /data/items, id: /id }'

  test('has a URL for them, pointers into its response, and no other URL', () => {
    const namespace = readOne(`source: http\n${batch}`)
    expect(namespace).toMatchObject({
      origin: 'http://api',
      ids: { min: 1, max: 1 },
      batch: { max: 100, items: '/data/items', id: '/id' },
    })
    expect(namespace.batch?.urlFor(['a', 'b'])).toBe('http://api/items?ids=a,b')
    expect(namespace.urlFor('a')).toBe('http://api/items?ids=a')
  })

  test('may leave to its backend who reads, of each key', () => {
    const fields = `source: http\n${batch}\nauthorize: { url: "http://api/may/{id}" }`
    expect(readOne(fields).authorize?.urlFor('7')).toBe('http://api/may/7')
  })

  test.each([
    [`url: http://api/{id}\n${batch}`, 'a.url: must be left out with batch'],
    [`${batch}\nmethod: POST\nbody: { a: "{id}" }`, 'a.method: must be GET with batch'],
    [`${batch}\nper: user\ncredentials: viewer`, 'a.per: cannot be set with batch'],
    [`${batch}\nids: { segments: 2 }`, 'a.ids: cannot be set with batch'],
    [`${batch}\nquery: [page]`, 'a.query: cannot be set with batch'],
    ['batch: http://api/{ids}', 'a.batch: must be a map with url, max, items and id'],
    ['batch: { url: "http://api/{id}", items: "", id: /id }', 'a.batch.url: must hold {ids} once'],
    ['batch: { url: "http://api/{ids}", items: "", id: id }', 'a.batch.id: must be a JSON pointer'],
    ['batch: { url: "http://api/{ids}", items: "/a~2", id: /id }', 'a.batch.items: must be a JSON pointer'],
    ['batch: { url: "http://api/{ids}", items: "", id: /id, max: 1 }', 'a.batch.max: must be a whole number: 2 to 500'],
    ['batch: { url: "http://api/{ids}", items: "", id: /id, size: 1 }', 'a.batch.size: unknown field'],
    ['refresh: 1s', 'a.url: must be a URL'],
  ])('%j is refused', (fields, problem) => {
    expect(problemsOf(() => readOne(`source: http\n${fields}`)).join('\n')).toContain(problem)
  })
})

describe('values that are handed over', () => {
  test('have few fields, and are no namespace of fetched ones', () => {
    const { names, pushed, journal } = read('namespaces: { price: { source: pushed, maxBytes: 64KiB } }')
    expect([names, pushed.names, journal.names]).toEqual([[], ['price'], []])
    expect(pushed.get('price')).toEqual({
      name: 'price',
      source: 'pushed',
      maxAgeMs: 1_000,
      refreshMs: 0,
      timeoutMs: 2_000,
      bytesMax: 64 * 1_024,
      ids: { min: 1, max: 1 },
    })
  })

  test('what is for fetching is refused by name, and by why', () => {
    const fields = 'url: "http://h/{id}", refresh: 1s, changes: { sse: "http://h/c" }, history: {}, maxBytes: 1MiB'
    expect(problemsOf(() => read(`namespaces: { price: { source: pushed, ${fields} } }`))).toEqual([
      expect.stringMatching(/namespaces.price.maxBytes: must be .*512/),
      expect.stringMatching(/namespaces.price.url: is for source: http: a value that is handed over is never fetched/),
      expect.stringMatching(/namespaces.price.refresh: is for source: http/),
      expect.stringMatching(/namespaces.price.changes: is for source: http/),
      expect.stringMatching(/namespaces.price.history: unknown field/),
    ])
  })

  test('may leave to the backend who reads', () => {
    const { pushed } = read(
      'namespaces: { price: { source: pushed, authorize: { url: "http://h/{id}", timeout: 1s } } }',
    )
    expect(pushed.get('price')).toMatchObject({ timeoutMs: 1_000, authorize: { method: 'HEAD', origin: 'http://h' } })
  })
})
