// Keys made by openssl and tokens signed by PyJWT: what other programs make is taken, for each kind of key.
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { answers, documentOf, startBackend } from '../support/backend.ts'
import { atEnd, newFolder } from '../support/cleanup.ts'
import { within } from '../support/deadline.ts'
import { run } from '../support/run.ts'
import { PATIENCE, startSystem } from '../support/system.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** A connection for each kind of key, in a Python that has to start, on a machine that may be busy. */
const PYTHON_MS = 60_000

const folder = newFolder()

/** Each with the arguments of `openssl genpkey`, and the prefix of its users. */
const kinds: Record<string, { genpkey: string[]; prefix: string }> = {
  ES256: { genpkey: ['-algorithm', 'EC', '-pkeyopt', 'ec_paramgen_curve:P-256'], prefix: 'ec|' },
  ES384: { genpkey: ['-algorithm', 'EC', '-pkeyopt', 'ec_paramgen_curve:P-384'], prefix: 'ec384|' },
  RS256: { genpkey: ['-algorithm', 'RSA', '-pkeyopt', 'rsa_keygen_bits:2048'], prefix: 'rsa|' },
  EdDSA: { genpkey: ['-algorithm', 'ED25519'], prefix: 'ed|' },
}

test('a Python client signs in with keys of every kind, reads, and renews in place', async () => {
  const signers = []
  const tokens = []
  for (const [algorithm, { genpkey, prefix }] of Object.entries(kinds)) {
    const file = join(folder, `${algorithm}.pem`)
    const publicKey = join(folder, `${algorithm}.pub.pem`)
    await run('openssl', ['genpkey', ...genpkey, '-out', file])
    await run('openssl', ['pkey', '-in', file, '-pubout', '-out', publicKey])
    signers.push({ algorithm, file })
    tokens.push({ publicKey, algorithms: [algorithm], prefix })
  }
  const secret = join(folder, 'secret')
  writeFileSync(secret, randomBytes(48).toString('base64'))
  signers.push({ algorithm: 'HS256', file: secret })
  tokens.push({ secret: `\${JWT_SECRET}`, algorithms: ['HS256'] })

  const backend = await startBackend()
  backend.on('/docs/mine', answers.json(documentOf(1)))
  const system = await startSystem({
    namespaces: { doc: { url: `${backend.origin}/docs/{id}`, timeout: PATIENCE } },
    access: { tokens },
    env: { JWT_SECRET_FILE: secret },
  })

  const program = join(root, 'clients/python/.venv/bin/python')
  const child = spawn(program, [join(root, 'test/support/sign-and-connect.py')], { stdio: ['pipe', 'pipe', 'pipe'] })
  atEnd(() => child.kill('SIGKILL'))
  child.stdin.end(JSON.stringify({ url: system.gateways[0].url, key: 'doc:mine', signers }))
  const finished = Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  const [printed, complaints] = await within(finished, 'the end of the Python client', PYTHON_MS)
  if (!printed) throw new Error(complaints)

  const prefixes = {
    ...Object.fromEntries(Object.entries(kinds).map(([name, { prefix }]) => [name, prefix])),
    HS256: '',
  }
  expect(JSON.parse(printed)).toEqual(
    Object.entries(prefixes).map(([algorithm, prefix]) => ({
      algorithm,
      welcome: expect.objectContaining({ type: 'welcome', user: `${prefix}ann`, expiresInMs: expect.any(Number) }),
      value: 'value',
      renewed: { type: 'authed', id: 2, user: `${prefix}ann`, expiresInMs: expect.any(Number) },
      other: 'other_user',
      expired: 'token_refused',
      again: 'value',
    })),
  )
})
