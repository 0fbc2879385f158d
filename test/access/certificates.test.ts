// scripts/certificates, which the proxy runs at its start: it warns of a certificate that expires soon or renews it, and
// refuses an expired one.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { newFolder } from '../support/cleanup.ts'
import { run } from '../support/run.ts'

const script = fileURLToPath(new URL('../../scripts/certificates', import.meta.url))

/** As the script names itself in the pairs it makes. */
const OURS = '/O=Keycast self-signed/CN=localhost'

/** A folder with a pair. @param days until its end */
async function folderWith(subject: string, days: number): Promise<string> {
  const folder = newFolder()
  const [key, certificate] = ['privkey.pem', 'fullchain.pem'].map(name => join(folder, name))
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes']
  await run('openssl', ['req', ...curve, '-subj', subject, '-keyout', key, '-out', `${certificate}.csr`])
  // Unlike `req -x509`, it takes an end that has passed.
  const signed = ['-req', '-in', `${certificate}.csr`, '-signkey', key, '-days', String(days), '-out', certificate]
  await run('openssl', ['x509', ...signed])
  return folder
}

const check = (folder: string, ...names: string[]) =>
  run(script, [folder, ...names]).then(
    ({ stderr }) => ({ code: 0, said: stderr }),
    ({ code, stderr }) => ({ code, said: stderr }),
  )

const certificateIn = (folder: string) => readFileSync(join(folder, 'fullchain.pem'), 'utf8')

test.each([
  ['with weeks to go is taken', 30, 0, /^(?!.*WARNING).*valid until/s],
  ['that ends within 14 days is taken with a warning', 10, 0, /WARNING: .* ends within 14 days/],
  ['that has expired is refused', -1, 1, /has EXPIRED/],
])('a pair of somebody’s own %s, and left as it is', async (_, days, code, said) => {
  const folder = await folderWith('/CN=example.org', days)
  const before = certificateIn(folder)
  expect(await check(folder)).toEqual({ code, said: expect.stringMatching(said) })
  expect(certificateIn(folder)).toBe(before)
})

test.each([
  ['ends within 14 days', 10],
  ['has expired', -1],
])('a pair made here that %s is made anew', async (_, days) => {
  const folder = await folderWith(OURS, days)
  const before = certificateIn(folder)
  const { code, said } = await check(folder)
  expect(said).toContain('made a SELF-SIGNED')
  expect(code).toBe(0)
  expect(certificateIn(folder)).not.toBe(before)

  // The script recognizes its own certificates as made here.
  const { stdout } = await run('openssl', ['x509', '-in', join(folder, 'fullchain.pem'), '-noout', '-subject'])
  expect(stdout).toContain('Keycast self-signed')
})

test('proxies that start together in a folder without a pair come to one', async () => {
  for (let round = 0; round < 2; round++) {
    const folder = join(newFolder(), 'certificates')
    const ends = await Promise.all([1, 2, 3].map(() => check(folder)))
    expect(ends.map(({ code }) => code)).toEqual([0, 0, 0])
    expect(ends.filter(({ said }) => said.includes('made a SELF-SIGNED'))).toHaveLength(1)
  }
})

test('an IPv6 address is one in the certificate too', async () => {
  const folder = newFolder()
  await check(folder, '::1', '127.0.0.1', 'example.org')
  const { stdout } = await run('openssl', ['x509', '-in', join(folder, 'fullchain.pem'), '-noout', '-text'])
  expect(stdout).toContain('IP Address:0:0:0:0:0:0:0:1, IP Address:127.0.0.1, DNS:example.org')
})
