import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { rootCertificates } from 'node:tls'
import { certificatesProblem } from './certificates.ts'

const folder = mkdtempSync(join(tmpdir(), 'keycast-ca-'))
afterAll(() => rmSync(folder, { recursive: true }))

const path = join(folder, 'ca.pem')
const problemOf = (text: string) => {
  writeFileSync(path, text)
  return certificatesProblem(path)
}

const [first, second] = rootCertificates

test('a file of certificates is taken, with comments between them', () => {
  expect(problemOf(first)).toBeUndefined()
  expect(problemOf(`# ours\n${first}\n\n${second}\n`)).toBeUndefined()
})

test.each([
  ['', 'names a file without a certificate (PEM)'],
  ['not a certificate', 'names a file without a certificate (PEM)'],
  [first.slice(0, 500), 'names a file without a certificate (PEM)'],
  [
    `${first}\n${second.slice(0, 200)}\n-----END CERTIFICATE-----`,
    'names a file whose certificate 2 of 2 cannot be read',
  ],
])('%# is refused', (text, problem) => {
  expect(problemOf(text)).toBe(problem)
})

test('a file that is not there is refused', () => {
  expect(certificatesProblem('/nowhere/ca.pem')).toBe('names a file that cannot be read (ENOENT)')
})
