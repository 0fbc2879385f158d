import { createHmac } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createPost } from './post.ts'
import { createSecrets } from './secrets.ts'

const SECRET = 'a secret of sixteen'
const OTHER = 'another secret that is long'
const AT = 1_700_000_000_500

const ends: (() => void)[] = []
afterEach(() => {
  for (const end of ends.splice(0)) end()
})

async function setup(answer: (request: IncomingMessage & { text: string }, response: ServerResponse) => void) {
  const server = createServer(async (request, response) => {
    let text = ''
    for await (const chunk of request) text += chunk
    answer(Object.assign(request, { text }), response)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const files: Record<string, string> = { one: `${SECRET}\n`, two: OTHER, short: 'secret' }
  const clock = { at: 0 }
  const read = async (path: string) => {
    if (files[path] === undefined) throw Object.assign(new Error('no such file'), { code: 'ENOENT' })
    return files[path]
  }
  const post = createPost({ secrets: createSecrets({ now: () => clock.at, read }), wallNow: () => AT })
  ends.push(post.close, () => server.close().closeAllConnections())
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const notify = { url: `${origin}/told`, secretFiles: ['one', 'two'], timeoutMs: 2_000 }
  return { post, notify, files, clock, origin }
}

test('a call is signed over its time and its body, with each secret', async () => {
  let seen: (IncomingMessage & { text: string }) | undefined
  const { post, notify } = await setup((request, response) => {
    seen = request
    response.writeHead(204).end()
  })
  const body = '{"key":"room:1","text":"grüße"}'
  expect(await post(notify, body)).toEqual({ kind: 'taken' })
  const signed = (secret: string) => createHmac('sha256', secret).update(`1700000000.${body}`).digest('hex')
  expect(seen).toMatchObject({ method: 'POST', url: '/told', text: body })
  expect(seen?.headers).toMatchObject({
    'content-type': 'application/json',
    'keycast-signature': `t=1700000000,v1=${signed(SECRET)},v1=${signed(OTHER)}`,
  })
})

test('a secret is replaced by its file, and stands while that cannot be read', async () => {
  const signatures: string[] = []
  const { post, notify, files, clock } = await setup((request, response) => {
    signatures.push(String(request.headers['keycast-signature']))
    response.end()
  })
  const one = { ...notify, secretFiles: ['one'] }
  await post(one, '{}')
  files.one = OTHER
  await post(one, '{}')
  clock.at += 5_000
  await post(one, '{}')
  delete files.one
  clock.at += 5_000
  await post(one, '{}')
  expect(signatures[1]).toBe(signatures[0])
  expect(signatures[2]).not.toBe(signatures[0])
  expect(signatures[3]).toBe(signatures[2])
})

test.each([
  ['absent', 'absent cannot be read (ENOENT)'],
  ['short', 'short holds no secret of 16 characters or more'],
])('nothing is sent unsigned: %s', async (file, why) => {
  let calls = 0
  const { post, notify } = await setup(() => calls++)
  expect(await post({ ...notify, secretFiles: [file] }, '{}')).toEqual({ kind: 'failed', why })
  expect(calls).toBe(0)
})

test.each([
  [200, 'taken'],
  [400, 'refused'],
  [404, 'refused'],
  [408, 'failed'],
  [429, 'failed'],
  [301, 'failed'],
  [500, 'failed'],
  [503, 'failed'],
])('status %i: %s', async (status, kind) => {
  const { post, notify } = await setup((_, response) => response.writeHead(status, { location: '/elsewhere' }).end())
  expect((await post(notify, '{}')).kind).toBe(kind)
})

test.each([
  ['7', 7_000],
  [new Date(AT + 9_500).toUTCString(), 10_000], // the header's Date has whole seconds
  ['99999999', 3_600_000],
  ['soon', undefined],
])('a backend says when to come again: %s', async (written, retryAfterMs) => {
  const { post, notify, origin } = await setup((_, response) =>
    response.writeHead(503, { date: new Date(AT).toUTCString(), 'retry-after': written }).end(),
  )
  expect(await post(notify, '{}')).toEqual({ kind: 'failed', why: `${origin} answered 503`, retryAfterMs })
})

test.each([
  ['is long', (response: ServerResponse) => response.end('x'.repeat(1_000_000))],
  ['never ends', (response: ServerResponse) => response.write('x')],
  ['breaks off', (response: ServerResponse) => response.write('x', () => response.destroy())],
  ['is not coded as it says', (response: ServerResponse) => response.end('x')],
])('the status stands, though the body %s', async (what, answer) => {
  const { post, notify } = await setup(({ url }, response) => {
    const coding = what.includes('coded') ? { 'content-encoding': 'gzip' } : {}
    answer(response.writeHead(url === '/taken' ? 200 : 422, coding))
  })
  const to = (path: string) => post({ ...notify, url: notify.url.replace('told', path), timeoutMs: 200 }, '{}')
  expect([(await to('taken')).kind, (await to('refused')).kind]).toEqual(['taken', 'refused'])
})

test('a backend that does not answer, or is not there, failed; no error shows the secret, nor one in the URL', async () => {
  const silent = await setup(() => {})
  const failing = await setup((_, response) => response.writeHead(500).end())
  const brief = { ...silent.notify, url: `${silent.notify.url}?key=${SECRET}`, timeoutMs: 50 }
  const gone = { ...silent.notify, url: `http://127.0.0.1:9/${SECRET}` }
  const outcomes = [
    await silent.post(brief, '{}'),
    await silent.post(gone, '{}'),
    await failing.post({ ...failing.notify, url: `${failing.notify.url}?key=${SECRET}` }, '{}'),
  ]
  expect(outcomes.map(({ kind }) => kind)).toEqual(['failed', 'failed', 'failed'])
  expect(JSON.stringify(outcomes)).not.toMatch(/secret/)
  expect(JSON.stringify(outcomes)).toMatch('ECONNREFUSED')
})
