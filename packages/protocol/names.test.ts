import { NAME_CHARACTERS_MAX, readMemberName } from './names.ts'

test('names of many scripts, and emoji, are taken as they are', () => {
  for (const name of [
    'Ann',
    "Ann O'Neil-Smith (2)",
    'Søren',
    '王小明',
    'محمد',
    'می\u200cخواهم',
    'क्\u200dष',
    '👩\u200d💻',
    '❤\uFE0F',
    '❤️ Ann',
    '🏳️\u200d🌈',
    '1\uFE0F\u20E3',
  ]) {
    expect([name, readMemberName(name)]).toEqual([name, { name: name.normalize('NFC') }])
  }
})

test('one name has one form: what is composed and what is not are the same', () => {
  expect(readMemberName('Zoe\u0308')).toEqual({ name: 'Zo\u00eb' })
  expect(readMemberName('\u212B')).toEqual({ name: '\u00c5' })
})

test('letters of different scripts that look alike are different names', () => {
  expect(readMemberName('Аnn')).toEqual({ name: 'Аnn' }) // a Cyrillic capital A
})

test.each([
  ['', 'the name is empty'],
  [' Ann', 'the name starts or ends with a space'],
  ['Ann ', 'the name starts or ends with a space'],
  ['Ann  Lee', 'the name has two spaces in a row'],
  ['Ann\u00a0Lee', 'the name has white space that is no plain space'],
  ['Ann\u3000', 'the name has white space that is no plain space'],
  ['Ann\u2028Lee', 'the name has white space that is no plain space'],
  ['Ann\n', 'the name has white space that is no plain space'],
  ['An\u0000n', 'the name has a control or invisible character'],
  ['An\u007fn', 'the name has a control or invisible character'],
  ['An\u200bn', 'the name has a control or invisible character'],
  ['Ann\u200d', 'the name has a control or invisible character'],
  ['A\u200cnn', 'the name has a control or invisible character'],
  ['Ann\uFE0F', 'the name has a control or invisible character'],
  ['Ann1\uFE0F', 'the name has a control or invisible character'],
  ['王\uFE0F明', 'the name has a control or invisible character'],
  ['王\u200d', 'the name has a control or invisible character'],
  ['王\u200d\u200d明', 'the name has a control or invisible character'],
  ['\u202Enn', 'the name has a control or invisible character'],
  ['Ann\u2066', 'the name has a control or invisible character'],
  ['\u3164', 'the name has a control or invisible character'],
  ['\u2800', 'the name has a control or invisible character'],
  ['\ud800', 'the name has a control or invisible character'],
  ['Ann\u{E0041}', 'the name has a control or invisible character'],
])('%j is refused', (text, problem) => {
  expect(readMemberName(text)).toEqual({ problem })
})

test('a name has 64 characters at most, of whatever size', () => {
  expect(readMemberName('😀'.repeat(NAME_CHARACTERS_MAX)).problem).toBe(undefined)
  expect(readMemberName('a'.repeat(65)).problem).toBe('the name is longer than 64 characters')
  // Each becomes three characters in normal form.
  expect(readMemberName('\ufb2c'.repeat(22)).problem).toBe('the name is longer than 64 characters')
  expect(readMemberName('a'.repeat(1e6)).problem).toBe('the name is longer than 64 characters')
})
