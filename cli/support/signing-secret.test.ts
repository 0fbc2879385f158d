import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SECRET_BYTES_MIN } from '../../services/gateway/access/tokens/issuer-keys.ts'
import { ensureSigningSecret } from './signing-secret.ts'

const folder = mkdtempSync(join(tmpdir(), 'keycast-signing-'))
afterAll(() => rmSync(folder, { recursive: true }))

test('it is made once, long enough for gateways, for its owner alone', () => {
  const file = join(folder, 'new', 'jwt-secret')
  expect(ensureSigningSecret(file)).toBe(file)
  const made = readFileSync(file, 'utf8')
  expect(made.trim().length).toBeGreaterThanOrEqual(SECRET_BYTES_MIN)
  expect(statSync(file).mode & 0o777).toBe(0o400)

  ensureSigningSecret(file)
  expect(readFileSync(file, 'utf8')).toBe(made)
  expect(readdirSync(join(folder, 'new'))).toEqual(['jwt-secret'])
})
