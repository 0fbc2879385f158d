// The recipes of docs/deploy/access.md, as they stand there: nginx that asks a backend, a page that is public, and every
// keycast.yaml, read as a gateway reads it.
import { execFileSync, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { SignJWT } from 'jose'
import WebSocket from 'ws'
import { parse } from 'yaml'
import { readAccess } from '../../services/gateway/access/policy-file.ts'
import { answers, documentOf, startBackend } from '../support/backend.ts'
import { atEnd, newFolder } from '../support/cleanup.ts'
import { eventually, within } from '../support/deadline.ts'
import { freePorts } from '../support/free-ports.ts'
import { ask } from '../support/http.ts'
import { writeConfig } from '../support/keycast-yaml.ts'
import { startSite } from '../support/sites.ts'
import { PATIENCE, startSystem } from '../support/system.ts'

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')
const page = read('docs/deploy/access.md')

const blocks = (language: string, from: string = page) =>
  Array.from(from.matchAll(/^ *```(\w*)\n(.*?)^ *```$/gms))
    .filter(([, named]) => named === language)
    .map(([, , text]) => text)

const JWT_SECRET = randomBytes(48).toString('base64')
const ORIGIN = 'https://page.example'

const folder = newFolder()

test.each(blocks('yaml').map((text, index) => [index + 1, text]))(
  'the access section of recipe %i is read beside the namespace article, and rooms',
  (index, text) => {
    const path = join(folder, `${index}.yaml`)
    writeFileSync(path, String(text))
    // Beside the one namespace that the page about a backend of one's own begins with; one recipe is about rooms.
    const { tokens, anonymous } = readAccess({
      path,
      env: { JWT_SECRET },
      origins: ORIGIN,
      namespaces: ['article', 'room', 'help'],
      profile: 'production',
    })
    expect(tokens.length + anonymous.read.length).toBeGreaterThan(0)
  },
)

const backend = await startBackend()
backend.on('/docs/mine', answers.json(documentOf(1)))
const documents = { url: `${backend.origin}/docs/{id}`, timeout: PATIENCE }
const namespaces = { article: documents, draft: documents }
const system = await startSystem({ namespaces, gateways: 0 })

/** A gateway whose keycast.yaml has the given access section. */
const startGateway = (access: object, env?: Record<string, string>) =>
  system.startGateway({ KEYCAST_CONFIG: writeConfig(namespaces, access), ...env })

const signed = (user: string) =>
  new SignJWT({ keys: { read: ['article:mine'] } })
    .setProtectedHeader({ alg: 'HS256' })
    .setSubject(user)
    .setIssuedAt()
    .setExpirationTime('1m')
    .sign(Buffer.from(JWT_SECRET))

/** The nginx of the recipe, in front of a gateway and of a backend that knows its own session cookie. */
async function startNginx(gatewayPort: number) {
  const api = await startSite(async ({ url, headers }, response) => {
    const isAnn = url === '/keycast-token' && headers.cookie === 'sid=of-ann'
    if (isAnn) response.writeHead(204, { 'x-keycast-token': await signed('ann') }).end()
    else response.writeHead(401).end()
  })
  const [port] = await freePorts(1)
  const [recipe] = blocks('nginx')
  mkdirSync(join(folder, 'nginx'))
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    name => `${name}_temp_path ${folder}/nginx/${name};`,
  )
  const config = join(folder, 'nginx.conf')
  writeFileSync(
    config,
    `daemon off; pid ${folder}/nginx.pid; error_log ${folder}/error.log;
    events {}
    http {
      access_log off; ${temporary.join(' ')}
      upstream api { server ${new URL(api).host}; }
      upstream keycast { server 127.0.0.1:${gatewayPort}; }
      server { listen 127.0.0.1:${port}; ${recipe} }
    }`,
  )
  const nginx = spawn('nginx', ['-c', config, '-e', join(folder, 'error.log')], {
    env: { PATH: `${process.env.PATH}:/usr/sbin` },
    stdio: 'ignore',
  })
  const exited = new Promise(resolve => nginx.once('close', resolve))
  atEnd(async () => {
    nginx.kill('SIGTERM')
    await within(exited, 'the end of nginx')
  })
  const answering = () =>
    ask(`http://127.0.0.1:${port}/`).then(
      () => true,
      () => false,
    )
  await eventually(answering, 'nginx answering')
  return `ws://127.0.0.1:${port}/ws`
}

/** @returns the status, or the welcome */
function upgrade(url: string, headers: Record<string, string>): Promise<any> {
  const socket = new WebSocket(url, { headers })
  atEnd(() => socket.terminate())
  const answered = new Promise((resolve, reject) => {
    socket.on('message', data => resolve(JSON.parse(data.toString())))
    socket.on('unexpected-response', (_, response) => resolve(response.statusCode))
    socket.on('error', reject)
  })
  return within(answered, 'an answer to the upgrade')
}

test("nginx asks the backend, by the backend's own session cookie, and passes its token on", async () => {
  const access = { tokens: [{ secret: `\${JWT_SECRET}`, algorithms: ['HS256'] }] }
  const { port } = await startGateway(access, { JWT_SECRET, GATEWAY_ORIGINS: ORIGIN })
  const url = await startNginx(port)
  const cookie = 'sid=of-ann'
  expect(await upgrade(url, { cookie, origin: ORIGIN })).toMatchObject({ type: 'welcome', user: 'ann' })
  expect(await upgrade(url, { cookie: 'sid=of-nobody', origin: ORIGIN })).toBe(401)
  expect(await upgrade(url, { origin: ORIGIN })).toBe(401)
  // A token of the client's own making does not get past nginx, and another site's page cannot use the cookie.
  expect(await upgrade(url, { authorization: `Bearer ${await signed('eve')}`, origin: ORIGIN })).toBe(401)
  expect(await upgrade(url, { cookie, origin: 'https://other.example' })).toBe(403)
})

test('what is public is read without a token, over both doors; what is not named stays closed', async () => {
  const { http } = await startGateway({ anonymous: { read: ['article:*'] } })
  expect((await ask(`${http}/v1/values/article:mine`)).status).toBe(200)
  expect((await ask(`${http}/v1/values/draft:mine`)).status).toBe(401)
})

test('the key that signs tokens is changed, step by step, and no token that is valid is refused', async () => {
  const [, recipe] = read('docs/deploy/upgrades.md').split('### The key that signs tokens\n')
  const [renew, drop] = blocks('', recipe).map(text => {
    const [inContainers, onHosts] = text.trim().split('\n')
    const [command] = onHosts.trim().replace('npx ', '').split(/ +#/)
    // The same verb, with the same arguments.
    expect(inContainers).toContain(command.replace('/srv/keycast/secrets', '/secrets'))
    return command.split(' ')
  })
  const secrets = join(folder, 'secrets')
  const run = ([name, verb, at, ...rest]: string[]) => {
    expect([name, verb, at]).toEqual(['keycast', 'secrets', '/srv/keycast/secrets'])
    execFileSync(process.execPath, ['cli/keycast.js', verb, secrets, ...rest], {
      cwd: new URL('../..', import.meta.url),
    })
  }
  run(['keycast', 'secrets', '/srv/keycast/secrets'])
  const secretOf = (file: string) => readFileSync(join(secrets, 'gateway', file), 'utf8')
  const tokenBy = (secret: string) =>
    new SignJWT({ keys: { read: ['article:mine'] } })
      .setProtectedHeader({ alg: 'HS256' })
      .setSubject('ann')
      .setIssuedAt()
      .setExpirationTime('1h')
      .sign(Buffer.from(secret))
  const statusAt = async ({ http }: { http: string }, token: string) =>
    (await ask(`${http}/v1/values/article:mine`, { headers: { authorization: `Bearer ${token}` } })).status

  const [keycastYaml] = blocks('yaml', recipe)
  const { access } = parse(keycastYaml)
  expect(parse(read('keycast.yaml')).access.tokens).toEqual(access.tokens)
  const { environment } = parse(read('docker-compose.yml'), { merge: true }).services.gateway
  expect(environment).toMatchObject({ JWT_SECRET: expect.any(String), JWT_SECRET_OLD_FILE: expect.any(String) })
  const env = {
    JWT_SECRET_FILE: join(secrets, 'gateway/jwt-secret'),
    JWT_SECRET_OLD_FILE: join(secrets, 'gateway/jwt-secret-old'),
  }
  const before = await startGateway(access, env)
  const old = await tokenBy(secretOf('jwt-secret'))
  expect(await statusAt(before, old)).toBe(200)

  run(renew)
  const during = await startGateway(access, env)
  const signedMeanwhile = await tokenBy(secretOf('jwt-secret-old'))
  for (const gateway of [before, during]) {
    for (const token of [old, signedMeanwhile]) expect(await statusAt(gateway, token)).toBe(200)
  }
  const renewed = await tokenBy(secretOf('jwt-secret'))
  expect(await statusAt(during, renewed)).toBe(200)

  run(drop)
  const after = await startGateway(access, env)
  expect(await statusAt(after, renewed)).toBe(200)
  expect(await statusAt(after, old)).toBe(401)
  expect(await statusAt(after, await tokenBy(''.padEnd(48, 'x')))).toBe(401)
})
