import { execFile } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs, promisify } from 'node:util'
import { decodeJwt, decodeProtectedHeader, jwtVerify } from 'jose'
import { makeToken, options } from './token.ts'

const run = promisify(execFile)

const script = fileURLToPath(new URL('keycast.js', import.meta.url))
const SECRET = 'a secret of more than 32 bytes, it is'

const folder = mkdtempSync(join(tmpdir(), 'keycast-token-'))
const file = (name: string) => join(folder, name)
const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
beforeAll(() => {
  writeFileSync(file('secret'), `${SECRET}\n`)
  writeFileSync(file('short'), 'short')
  writeFileSync(file('private.pem'), privateKey.export({ type: 'pkcs8', format: 'pem' }))
  writeFileSync(file('public.pem'), publicKey.export({ type: 'spki', format: 'pem' }))
})
afterAll(() => rmSync(folder, { recursive: true }))

const make = async (args: string[], env: Record<string, string> = { JWT_SECRET: SECRET }) =>
  makeToken(parseArgs({ args, options }).values, env, file('made'))

test('a token says who brings it, what it grants and until when, signed with the secret', async () => {
  const args = ['--sub', 'ann', '--read', 'room:*', '--read', 'user:{sub}', '--publish', 'room:7', '--ttl', '30m']
  const { payload, protectedHeader } = await jwtVerify(await make(args), Buffer.from(SECRET))
  expect(protectedHeader).toEqual({ alg: 'HS256', typ: 'JWT' })
  expect(payload).toEqual({
    sub: 'ann',
    iat: expect.any(Number),
    exp: Number(payload.iat) + 1_800,
    jti: expect.any(String),
    keys: { read: ['room:*', 'user:{sub}'], publish: ['room:7'] },
  })
})

test('the secret may lie in a file, named by an option or the environment', async () => {
  const byOption = await make(['--sub', 'ann', '--secret-file', file('secret')], {})
  const byEnvironment = await make(['--sub', 'ann'], { JWT_SECRET_FILE: file('secret') })
  for (const token of [byOption, byEnvironment]) {
    expect((await jwtVerify(token, Buffer.from(SECRET))).payload.keys).toBeUndefined()
  }
})

test('without any of these the secret that npm start made signs', async () => {
  const token = await makeToken({ sub: 'ann' }, {}, file('secret'))
  await jwtVerify(token, Buffer.from(SECRET))
})

test('a private key signs with the algorithm it is for, and the other claims are put in', async () => {
  const args = ['--sub', 'ann', '--key', file('private.pem'), '--kid', 'k', '--issuer', 'i', '--audience', 'a']
  const token = await make([...args, '--join', 'room:7', '--claim', 'rights'], {})
  await jwtVerify(token, publicKey, { issuer: 'i', audience: 'a' })
  expect(decodeProtectedHeader(token)).toEqual({ alg: 'ES256', typ: 'JWT', kid: 'k' })
  expect(decodeJwt(token)).toMatchObject({ rights: { join: ['room:7'] } })
})

test.each([
  [[], 'name the user with --sub'],
  [['--sub', 'ann', '--read', 'room'], '--read "room" has no namespace'],
  [['--sub', 'ann', '--ttl', 'soon'], '--ttl soon: must be a duration'],
  [['--sub', 'ann', '--ttl', '0'], '--ttl 0: must be a duration'],
  [['--sub', 'ann', '--secret-file', file('short')], 'the secret has 5 bytes'],
  [['--sub', 'ann', '--secret-file', file('absent')], 'absent cannot be read: ENOENT'],
  [['--sub', 'ann', '--alg', 'ES256'], '--alg ES256 needs a private key'],
  [['--sub', 'ann', '--key', file('secret')], 'holds no private key in PEM'],
  [['--sub', 'ann', '--key', file('public.pem')], 'it holds a public one, which cannot sign'],
  [['--sub', 'ann', '--key', file('private.pem'), '--alg', 'RS256'], 'is not for RS256: it is for ES256'],
  [['--sub', 'ann', '--key', file('private.pem'), '--secret-file', file('secret')], 'not both'],
  [['--sub', 'ann', '--colour', 'blue'], '--colour'],
])('%j is refused, and what is wrong said', async (args, why) => {
  await expect(make(args)).rejects.toThrow(why)
})

test('without anything to sign with it says what to set, and with too much what to unset', async () => {
  await expect(make(['--sub', 'ann'], {})).rejects.toThrow('set JWT_SECRET')
  const both = make(['--sub', 'ann'], { JWT_SECRET: SECRET, JWT_SECRET_FILE: file('secret') })
  await expect(both).rejects.toThrow('JWT_SECRET and JWT_SECRET_FILE are both set: unset one')
})

test('run, it prints the token and nothing else', async () => {
  const { stdout, stderr } = await run(process.execPath, [script, 'token', '--sub', 'ann'], {
    env: { JWT_SECRET: SECRET },
  })
  expect(stderr).toBe('')
  expect(stdout).toMatch(/^[\w-]+\.[\w-]+\.[\w-]+\n$/)
})

test('run wrongly, it says so and ends with 2', async () => {
  await expect(run(process.execPath, [script, 'token'], { env: {} })).rejects.toMatchObject({
    code: 2,
    stdout: '',
    stderr: 'keycast token: name the user with --sub; --help says more\n',
  })
})
