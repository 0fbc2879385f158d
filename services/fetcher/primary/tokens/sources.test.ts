import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readTokenFile, requestToken } from './sources.ts'

const folder = mkdtempSync(join(tmpdir(), 'token-'))
afterAll(() => rmSync(folder, { recursive: true }))

function fileOf(text: string) {
  const path = join(folder, 'token')
  writeFileSync(path, text)
  return path
}

test('a file holds the token, with or without a line break', async () => {
  expect(await readTokenFile(fileOf('abc.DEF-1_2~3+4/5==\n'))).toBe('abc.DEF-1_2~3+4/5==')
})

test.each(['', 'two words', 'a\nb', 'Bearer x', 'x\u0000'])(
  'a file with %j holds none, and the error does not show it',
  async text => {
    const path = fileOf(text)
    await expect(readTokenFile(path)).rejects.toThrow(`${path} holds no token`)
  },
)

const servers: (() => void)[] = []
afterEach(() => {
  for (const close of servers.splice(0)) close()
})

async function endpoint(answer: (request: IncomingMessage & { text: string }, response: ServerResponse) => void) {
  const server = createServer(async (request, response) => {
    let text = ''
    for await (const chunk of request) text += chunk
    answer(Object.assign(request, { text }), response)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  servers.push(() => server.close().closeAllConnections())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/token`
}

const bearer = (fields: object) => JSON.stringify({ access_token: 'tok', token_type: 'Bearer', ...fields })

test('a token endpoint is asked with the credentials of the client, and for the scope', async () => {
  let asked: (IncomingMessage & { text: string }) | undefined
  const url = await endpoint((request, response) => {
    asked = request
    response.end(bearer({ expires_in: 60 }))
  })
  const source = { url, client: 'key cast', secret: 'p:ä', scope: 'read all' }
  expect(await requestToken(source)).toEqual({ token: 'tok', livesMs: 60_000 })
  expect(asked).toMatchObject({ method: 'POST', text: 'grant_type=client_credentials&scope=read+all' })
  const credentials = Buffer.from((asked?.headers.authorization ?? '').slice('Basic '.length), 'base64').toString()
  expect(credentials).toBe('key%20cast:p%3A%C3%A4')
  expect(asked?.headers['content-type']).toMatch('application/x-www-form-urlencoded')
})

test('a token that does not say how long it lives is taken for one of five minutes', async () => {
  const url = await endpoint((_, response) => response.end(bearer({})))
  expect(await requestToken({ url, client: 'c', secret: 's' })).toEqual({ token: 'tok', livesMs: 300_000 })
})

test.each([
  [401, '{"error":"invalid_client"}', 'answered 401'],
  [302, '', 'answered 302'],
  [200, 'no JSON', 'no bearer token'],
  [200, 'null', 'no bearer token'],
  [200, '{"access_token":"tok","token_type":"mac"}', 'no bearer token'],
  [200, '{"access_token":"t o k","token_type":"bearer"}', 'holds no token'],
  [200, `{"access_token":"${'x'.repeat(100_000)}","token_type":"bearer"}`, 'no answer'],
])('an endpoint that answers %i %.20j gives none, and the error shows no secret', async (status, body, why) => {
  const url = await endpoint((_, response) => response.writeHead(status, { location: '/x' }).end(body))
  const error = await requestToken({ url, client: 'c', secret: 's3cret' }).catch(error => error)
  expect(error.message).toContain(why)
  expect(JSON.stringify([error, error.message, error.stack])).not.toMatch(/s3cret|xxxx/)
})
