import { problemsOf, read, readOne, useFolder } from './read-yaml.fixture.ts'

useFolder()

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
  expect(namespaces.fetched.names).toEqual(['a'])
  expect(namespaces.fetched.get('room')).toBeUndefined()
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
