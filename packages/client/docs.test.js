// The examples of docs/client.md: that they are JavaScript, and import what the package has.
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { build, transform } from 'esbuild'

const page = readFileSync(new URL('../../docs/client.md', import.meta.url), 'utf8')
const examples = [...page.matchAll(/^```(js|jsx)\n([\s\S]*?)^```$/gm)].map(([, loader, code]) => ({ loader, code }))
const { exports } = JSON.parse(readFileSync(new URL('package.json', import.meta.url), 'utf8'))

test('there are examples', () => expect(examples.length).toBeGreaterThan(15))

test.each(examples.map(({ loader, code }, index) => [index + 1, loader, code]))(
  'example %i',
  async (_, loader, code) => {
    await transform(code, { loader: /** @type {'js' | 'jsx'} */ (loader), format: 'esm' })
    const imports = [...code.matchAll(/import (?:\* as \w+|\{([^}]*)\}) from '@keycast\/client(\/[\w-]+)?'/g)]
    for (const [, names = '', path = ''] of imports) {
      const target = exports[`.${path}`]?.default
      expect([path, target && existsSync(new URL(target, import.meta.url))]).toEqual([path, true])
      // Bundling says which of the names are not there.
      const contents = `export { ${names} } from ${JSON.stringify(fileURLToPath(new URL(target, import.meta.url)))}`
      await build({
        stdin: { contents, resolveDir: import.meta.dirname },
        bundle: true,
        write: false,
        format: 'esm',
        external: ['react'],
        logLevel: 'silent',
      })
    }
  },
)
