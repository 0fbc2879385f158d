// docs/client-reference.md names everything that an application can use. The recipes in JSX can be read and import names
// that the package has. JavaScript examples are checked against the installed package, in test/clients/package.test.ts.
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { build, transform } from 'esbuild'
import { createMessageList } from './keycast/rooms/message-list.js'
import { createFakeKeycast } from './testing.js'

/** @param {string} name */
const read = name => readFileSync(new URL(`../../docs/${name}`, import.meta.url), 'utf8')
const page = read('client-reference.md')
const examples = [...read('client-recipes.md').matchAll(/^```jsx\n(.*?)^```$/gms)].map(([, code]) => code)
const { exports } = JSON.parse(readFileSync(new URL('package.json', import.meta.url), 'utf8'))

test('there are examples', () => expect(examples.length).toBeGreaterThan(2))

test.each(examples)('%s', async code => {
  await transform(code, { loader: 'jsx', format: 'esm' })
  for (const [, names, path = ''] of code.matchAll(/import \{([^}]*)\} from '@keycast\/client(\/[\w-]+)?'/g)) {
    const file = new URL(exports[`.${path}`]?.default, import.meta.url)
    expect([path, existsSync(file)]).toEqual([path, true])
    // The bundler reports names that do not exist.
    const contents = `export { ${names} } from ${JSON.stringify(fileURLToPath(file))}`
    const stdin = { contents, resolveDir: import.meta.dirname }
    await build({ stdin, bundle: true, write: false, format: 'esm', external: ['react'], logLevel: 'silent' })
  }
})

/** The names in code: `name`, `name(…)`, `on('name', …)`, and those of imports in examples. */
const named = new Set([...page.matchAll(/`[^`\n]+`|import \{[^}]*\}/g)].flatMap(([code]) => code.match(/\w+/g) ?? []))

/** The members of an object, those of its prototype's chain left out. @param {object} object */
const membersOf = object => Object.keys(object).filter(name => /^[a-z]/.test(name))

test.each(Object.entries(exports))('every export of %s is in the reference', async (_, { default: file }) => {
  const names = Object.keys(await import(new URL(file, import.meta.url).href))
  expect(names.length).toBeGreaterThan(0)
  expect(names.filter(name => !named.has(name))).toEqual([])
})

test('every member of what they make is in the reference', () => {
  const fake = createFakeKeycast()
  const { keycast } = fake
  const room = keycast.room('room:1')
  const made = [fake, keycast, keycast.value('a:1'), keycast.value('a:1').state, room, room.state, room.members]
  const list = createMessageList(keycast, 'room:1')
  const names = [...made, list, list.state].flatMap(membersOf)
  expect(names.filter(name => !named.has(name))).toEqual([])
  keycast.close()
})

/** Of the JSDoc of a source. @param {string} file @param {RegExp} pattern whose group is the name of an option */
const optionsOf = (file, pattern) =>
  [...readFileSync(new URL(file, import.meta.url), 'utf8').matchAll(pattern)].map(([, name]) => name)

test('every option is in the reference, with its default', () => {
  const options = [
    ...optionsOf('keycast/client.js', /@property \{.*\} \[(token|WebSocket|keepMs|keepForbidden|environment)\]/g),
    ...optionsOf('keycast/rooms/room.js', /@property \{[^}]*\} \[(\w+)\] (?=every|so many|whether|false|how)/g),
    ...optionsOf('keycast/rooms/publishes.js', /@property \{[^}]*\} \[(\w+)\]/g),
    ...optionsOf('keycast/rooms/message-list.js', /@param \{[^}]*\} \[options\.(\w+)\]/g),
  ]
  expect(options).toHaveLength(5 + 5 + 2 + 4)
  const rows = [...page.matchAll(/^\| option \| default \| meaning \|\n\|---\|---\|---\|\n((?:\|.*\n)+)/gm)]
  const documented = rows.flatMap(([, table]) =>
    table
      .trim()
      .split('\n')
      .map(row => row.split('|').map(cell => cell.trim())),
  )
  expect(documented.map(([, name]) => name.replaceAll('`', '')).sort()).toEqual(options.sort())
  for (const [, name, preset] of documented) expect([name, preset]).not.toEqual([name, ''])
})
