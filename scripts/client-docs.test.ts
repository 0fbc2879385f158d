import { readFileSync } from 'node:fs'
import { clientApi } from './client-docs.ts'

test('docs/client-api.md shows every export as it is declared (node scripts/client-docs.js writes it)', () => {
  expect(readFileSync(new URL('../docs/client-api.md', import.meta.url), 'utf8')).toBe(clientApi())
})
