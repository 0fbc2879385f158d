import { readFileSync } from 'node:fs'
import { readSettings } from '@keycast/service'
import { settings } from './settings.js'

test('without any variable set a gateway serves the loopback interface and asks the fetcher there', () => {
  const config = readSettings(settings, { name: 'gateway', about: 'x', env: {}, argv: [] })
  expect(config).toMatchObject({
    host: '127.0.0.1',
    port: 8080,
    internalPort: 8081,
    fetcherNodes: '127.0.0.1:7001:7002',
    apiToken: undefined,
  })
})

test('clients are sent away well before the process must be gone', () => {
  const { drainMs, shutdownGraceMs } = readSettings(settings, { name: 'gateway', about: 'x', env: {}, argv: [] })
  expect(drainMs + 2_000).toBeLessThan(shutdownGraceMs)
})

test('the table in the README is that of the settings', () => {
  const readme = readFileSync(new URL('./README.md', import.meta.url), 'utf8')
  const rows = readme
    .split('\n')
    .filter(line => line.startsWith('| `') && !line.includes('.js`') && !line.includes('/`'))
  expect(rows).toEqual(
    Object.values(settings).map(({ env, default: value, doc, show }) => {
      const shown = value === undefined ? 'unset' : `\`${/** @type {(value: any) => string} */ (show)(value)}\``
      return `| \`${env}\` | ${shown} | ${doc} |`
    }),
  )
})
