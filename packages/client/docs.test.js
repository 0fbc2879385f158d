// The examples of docs/client.md in JSX: that they can be read, and import what the package has. Those in JavaScript are
// checked as the package is installed, in test/client-package.test.js.
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { build, transform } from 'esbuild'

const page = readFileSync(new URL('../../docs/client.md', import.meta.url), 'utf8')
const examples = [...page.matchAll(/^```jsx\n(.*?)^```$/gms)].map(([, code]) => code)
const { exports } = JSON.parse(readFileSync(new URL('package.json', import.meta.url), 'utf8'))

test('there are examples', () => expect(examples.length).toBeGreaterThan(2))

test.each(examples)('%s', async code => {
  await transform(code, { loader: 'jsx', format: 'esm' })
  for (const [, names, path = ''] of code.matchAll(/import \{([^}]*)\} from '@keycast\/client(\/[\w-]+)?'/g)) {
    const file = new URL(exports[`.${path}`]?.default, import.meta.url)
    expect([path, existsSync(file)]).toEqual([path, true])
    // Bundling says which of the names are not there.
    const contents = `export { ${names} } from ${JSON.stringify(fileURLToPath(file))}`
    const stdin = { contents, resolveDir: import.meta.dirname }
    await build({ stdin, bundle: true, write: false, format: 'esm', external: ['react'], logLevel: 'silent' })
  }
})
