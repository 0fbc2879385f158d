// test/security.md against the tests it names: each file is there, and holds the words quoted.
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { read } from './markdown.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))
const list = read('test/security.md')
const entries = Array.from(
  list.matchAll(/^- (.+):\n {2}`([^`]+\.test\.[jt]s)`(?: "([^"]+)")?$/gm),
  ([, ...parts]) => parts,
)

test('every promise names a test', () => {
  expect(entries).toHaveLength(list.split('\n').filter(line => line.startsWith('- ')).length)
})

test.each(entries)('%s: %s', (_, file, words) => {
  expect(existsSync(`${root}${file}`)).toBe(true)
  // A name may be cut over two lines of code, never inside the words.
  if (words !== undefined) expect(read(file)).toContain(words)
})
