// docs/dependencies.md names every package that the repository asks for, and no other, each with its licence.
import { readFileSync } from 'node:fs'

const read = (path: string) => readFileSync(new URL(`../${path}`, import.meta.url), 'utf8')

const { packages }: { packages: Record<string, any> } = JSON.parse(read('package-lock.json'))

/** Every package asked for by the root or a workspace, with the licence of the version it gets. */
const asked = Object.entries(packages)
  .filter(([path]) => !path.includes('node_modules'))
  .flatMap(([path, { dependencies, devDependencies, optionalDependencies }]) =>
    Object.keys({ ...dependencies, ...devDependencies, ...optionalDependencies })
      .filter(name => !name.startsWith('@keycast/'))
      .map(name => {
        const { license } = packages[`${path}/node_modules/${name}`] ?? packages[`node_modules/${name}`]
        return `${name}: ${license}`
      }),
  )

const page = read('docs/dependencies.md')

test('every direct dependency stands there with its licence', () => {
  const rows = [...page.matchAll(/^\| `([^`]+)` \| ([^|]+) \| [^|]+ \| [^|]*\|$/gm)]
  expect(rows.map(([, name, license]) => `${name}: ${license}`).sort()).toEqual([...new Set(asked)].sort())
})

test('every override stands there with a reason', () => {
  const { overrides } = JSON.parse(read('package.json'))
  for (const [name, version] of Object.entries(overrides)) expect(page).toContain(`\`${name}\` ${version}`)
})
