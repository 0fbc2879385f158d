import { readFileSync } from 'node:fs'
import { withTables } from './settings-docs.js'

test('docs/runbook.md shows every setting as the services declare it (node scripts/settings-docs.js writes it)', () => {
  const page = readFileSync(new URL('../docs/runbook.md', import.meta.url), 'utf8')
  for (const service of ['gateway', 'fetcher', 'data-provider']) expect(page).toContain(`<!-- settings: ${service} -->`)
  expect(withTables(page)).toBe(page)
})

test('a table for something that is no service is an error', () => {
  expect(() => withTables('<!-- settings: teapot -->\n<!-- end -->')).toThrow('teapot')
})
