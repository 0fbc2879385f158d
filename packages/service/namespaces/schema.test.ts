// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are the placeholders under test
import { minimal, problemsOf, read, readOne, useFolder } from './read-yaml.fixture.ts'

useFolder()

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

test('ids have one segment, or as many as the namespace says', () => {
  expect(readOne(minimal).ids).toEqual({ min: 1, max: 1 })
  expect(readOne(`${minimal}\nids: { segments: 3 }`).ids).toEqual({ min: 1, max: 3 })
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
    expect(of('one').fetched.names).toEqual(['a', 'b'])
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

const beyond = 'must not hold {2}: an id here may have fewer segments'

test.each([
  ['source: http, url: "http://h/{id}", ids: { segments: 3 }, authorize: { url: "http://h/{2}" }', 'authorize.url'],
  ['source: pushed, ids: { segments: 3 }, authorize: { url: "http://h/{1}/{2}" }', 'authorize.url'],
  ['source: journal, authorize: { url: "http://h/{1}/{2}" }', 'authorize.url'],
  ['source: journal, publish: { ask: "http://h/{1}/{2}" }', 'publish.ask'],
])('a place for a segment that an id may lack is refused: %s', (fields, field) => {
  expect(problemsOf(() => read(`namespaces: { a: { ${fields} } }`))).toEqual([
    `line 1: namespaces.a.${field}: ${beyond}`,
  ])
})
