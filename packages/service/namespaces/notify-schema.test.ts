import { minimal, problemsOf, read, readOne, useFolder } from './read-yaml.fixture.ts'

useFolder()

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
