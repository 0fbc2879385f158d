// keycast smoke against a system that lets nobody in without a token, as an operator runs it after a deployment; and the
// viewers of keycast compose-check, which itself needs containers.
import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { SignJWT } from 'jose'
import { startViewers } from '../../cli/compose-check/viewers.ts'
import { readUrl } from '../../cli/support/client.ts'
import { answers, documentOf, startBackend } from '../support/backend.ts'
import { within } from '../support/deadline.ts'
import { PATIENCE, startSystem } from '../support/system.ts'

const JWT_SECRET = randomBytes(48).toString('base64')

const backend = await startBackend()
backend.on('/docs/1', answers.json(documentOf(1)))
backend.on('/docs/text', answers.content('a text', 'text/plain; charset=utf-8'))
backend.on('/list?status=open', answers.json(documentOf(1)))
const { gateways } = await startSystem({
  namespaces: {
    doc: { url: `${backend.origin}/docs/{id}`, timeout: PATIENCE },
    list: { url: `${backend.origin}/list`, query: ['status'], timeout: PATIENCE },
    room: { source: 'journal' },
  },
  journals: 1,
  access: { tokens: [{ secret: `\${JWT_SECRET}`, algorithms: ['HS256'] }] },
  env: { JWT_SECRET },
})

const token = await new SignJWT({ keys: { read: ['doc:*', 'list:', 'room:*'], publish: ['room:*'] } })
  .setProtectedHeader({ alg: 'HS256' })
  .setSubject('ann')
  .setIssuedAt()
  .setExpirationTime('1h')
  .sign(Buffer.from(JWT_SECRET))

const smoke = (given: string, key = 'doc:1'): Promise<{ code: number; text: string }> =>
  new Promise(resolve => {
    const script = fileURLToPath(new URL('../../cli/keycast.js', import.meta.url))
    const { origin } = new URL(gateways[0].url)
    const options = { env: { ...process.env, KEYCAST_TOKEN: given } }
    const words = [script, 'smoke', '--url', origin, '--key', key, '--no-change', '--timeout', '10']
    execFile(process.execPath, words, options, (error, stdout, stderr) =>
      resolve({ code: Number(error?.code ?? 0), text: stdout + stderr }),
    )
  })

test('with a token in KEYCAST_TOKEN every check passes, those of rooms and of HTTP too', async () => {
  expect(await smoke(token)).toMatchObject({ code: 0, text: expect.stringMatching(/all \d+ checks passed\n$/) })
})

test.each([
  ['is not JSON, whose type is a part of its version', 'doc:text'],
  ['has a query in its key', 'list:?status=open'],
])('every check passes for a value that %s', async (_, key) => {
  expect(await smoke(token, key)).toMatchObject({
    code: 0,
    text: expect.stringMatching(/all \d+ checks passed\n$/),
  })
})

test('a token that is refused is said at once', async () => {
  const { code, text } = await smoke('no.such.token')
  expect(code).toBe(1)
  expect(text).toMatch(/FAILED {2}a client is welcomed at \/ws {2}\(token_refused: /)
})

test('viewers of compose-check read the revision of what they are shown, and of what follows', async () => {
  const viewers = startViewers({ ...readUrl(gateways[0].url, false), token }, 2, ['doc:1', 'list:?status=open'])
  const { signal } = new AbortController()
  await within(viewers.reach(1, signal), 'the first revision')
  backend.on('/docs/1', answers.json(documentOf(2)))
  backend.on('/list?status=open', answers.json(documentOf(2)))
  await within(viewers.reach(2, signal), 'the second')
  expect(viewers.fallen()).toEqual([])
  viewers.stop()
})
