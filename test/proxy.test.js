// The proxy on a host: a real nginx with the template of the image, in front of stand-in gateways of a few lines.
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, rmSync, statSync } from 'node:fs'
import { request as requestPlainly } from 'node:http'
import { request as requestSecurely } from 'node:https'
import { join } from 'node:path'
import { connect as connectTls } from 'node:tls'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { eventually } from './support/deadline.js'
import { openSocket, pagePolicy, proxyScript, startProxy, startStandIn, temporaryFolder } from './support/proxy.js'

const run = promisify(execFile)
const certificatesScript = fileURLToPath(new URL('../scripts/certificates', import.meta.url))

/** What the tests share: two gateways, a proxy in front of both, and one with small limits in front of the first. */
/** @type {import('./support/proxy.js').StandIn} */ let first
/** @type {import('./support/proxy.js').StandIn} */ let second
/** @type {import('./support/proxy.js').Proxy} */ let proxy
/** @type {import('./support/proxy.js').Proxy} */ let limited

beforeAll(async () => {
  first = await startStandIn('first')
  second = await startStandIn('second')
  proxy = await startProxy([first.port, second.port], { env: { PROXY_SHUTDOWN_TIMEOUT: '1s' } })
  limited = await startProxy([first.port], {
    args: ['--exempt', '127.0.0.2/32'],
    env: { PROXY_CONNECTIONS_PER_ADDRESS: '3', PROXY_HANDSHAKES_PER_SECOND: '1', PROXY_HANDSHAKES_BURST: '5' },
  })
})

test('a self-signed ECDSA certificate is made at first start, said, and kept', async () => {
  expect(proxy.log()).toContain('SELF-SIGNED')
  const folder = join(proxy.directory, 'certificates')
  const key = join(folder, 'privkey.pem')
  const { stdout } = await run('openssl', ['x509', '-in', join(folder, 'fullchain.pem'), '-noout', '-text'])
  expect(stdout).toMatch(/ASN1 OID: prime256v1[\s\S]*CA:FALSE[\s\S]*DNS:localhost, IP Address:127.0.0.1/)
  expect(statSync(key).mode & 0o777).toBe(0o600)

  const before = readFileSync(key, 'utf8')
  const again = await startProxy([first.port], { args: ['--certificates', folder] })
  expect(again.log()).not.toContain('SELF-SIGNED')
  expect(readFileSync(key, 'utf8')).toBe(before)
  await again.stop()
})

test.each(/** @type {const} */ (['TLSv1.2', 'TLSv1.3']))('%s is spoken, and a session resumed', async version => {
  const fresh = await handshake({ minVersion: version, maxVersion: version })
  expect(fresh).toMatchObject({ protocol: version, reused: false })
  expect(fresh.cipher).toMatch(version === 'TLSv1.2' ? /^ECDHE-ECDSA-/ : /^TLS_/)
  const resumed = await handshake({ minVersion: version, maxVersion: version, session: fresh.session })
  expect(resumed).toMatchObject({ protocol: version, reused: true })
})

test('TLS 1.1 is refused', async () => {
  const old = handshake({ minVersion: 'TLSv1.1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' })
  await expect(old).rejects.toMatchObject({ code: expect.stringMatching(/ALERT_PROTOCOL_VERSION/) })
})

test('early data, which can be replayed, is not offered', async () => {
  const client = spawn('openssl', ['s_client', '-connect', `127.0.0.1:${proxy.httpsPort}`, '-tls1_3', '-ign_eof'])
  client.stdin.end('GET / HTTP/1.0\r\n\r\n')
  let output = ''
  client.stdout.on('data', chunk => {
    output += chunk
  })
  await once(client, 'close')
  expect(output).toContain('Max Early Data: 0')
})

test('a WebSocket passes through TLS, with its subprotocol and whole messages of 130 KB', async () => {
  const socket = await openSocket(proxy, { protocols: ['keycast.v1.json'] })
  expect(socket.protocol).toBe('keycast.v1.json')
  const body = 'x'.repeat(130_000)
  expect(await echo(socket, body)).toBe(body)
})

test('plain HTTP is redirected to the same place over HTTPS', async () => {
  const response = await request(`http://127.0.0.1:${proxy.httpPort}/v1/values/a:1?x=2`)
  expect(response.status).toBe(301)
  expect(response.headers.location).toBe(proxy.url('/v1/values/a:1?x=2'))
})

test("the page keeps its gateway's security headers", async () => {
  const { headers } = await request(proxy.url('/'))
  expect(headers).toMatchObject({ 'content-security-policy': pagePolicy, 'x-content-type-options': 'nosniff' })
})

test.each(['/v1/values/a:html', '/metrics'])('what comes from %s may do nothing in a browser', async path => {
  const { headers } = await request(proxy.url(path))
  expect(headers).toMatchObject({
    server: 'nginx', // and no version
    'content-security-policy': expect.stringContaining('sandbox'),
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
  })
})

test.each(['/', '/ws'])('what a client says about forwarding at %s is replaced', async path => {
  const forged = {
    'x-forwarded-for': '10.9.8.7',
    'x-forwarded-proto': 'gopher',
    'x-forwarded-host': 'evil.example',
    'x-real-ip': '10.9.8.7',
    'x-forwarded-port': '1087',
    'x-forwarded-user': 'admin',
    x_forwarded_for: '10.9.8.7',
    forwarded: 'for=10.9.8.7',
  }
  first.requests.length = 0
  second.requests.length = 0
  if (path === '/ws') await openSocket(proxy, { headers: forged })
  else await request(proxy.url(path), { headers: forged })
  const [{ headers }] = [...first.requests, ...second.requests]
  expect(headers).toMatchObject({
    host: `127.0.0.1:${proxy.httpsPort}`,
    'x-forwarded-for': '127.0.0.1',
    'x-forwarded-proto': 'https',
    'x-forwarded-host': `127.0.0.1:${proxy.httpsPort}`,
    'x-real-ip': '127.0.0.1',
  })
  expect(JSON.stringify(headers)).not.toMatch(/10\.9\.8\.7|gopher|evil|1087|admin/)
})

test.each([
  ['/', 200],
  ['/page.js', 200],
  ['/v1/values/conversation:42', 200],
  ['/v1/values/tick:a/b', 200],
  ['/metrics', 404],
  ['//metrics', 404],
  ['/health/ready', 404],
  ['/v1/keys/conversation:42', 404],
  ['/v1/refresh', 404],
  ['/v1/values/../keys/conversation:42', 404],
  ['/v1/values/%2e%2e/%2e%2e/metrics', 404],
  ['/v1/values/..%2f..%2fmetrics', 404],
  ['/ws/metrics', 404],
])('%s is answered with %i', async (path, status) => {
  expect((await request(proxy.url('/'), { path })).status).toBe(status)
})

test('gateways see neither other methods nor bodies, nor an upgrade outside /ws', async () => {
  first.requests.length = 0
  second.requests.length = 0
  expect((await request(proxy.url('/v1/values/a:1'), { method: 'POST', body: 'x' })).status).toBe(405)
  await request(proxy.url('/v1/values/a:2'), { headers: { connection: 'upgrade', upgrade: 'h2c' }, body: 'x' })
  const [{ url, headers }] = [...first.requests, ...second.requests]
  expect(url).toBe('/v1/values/a:2')
  expect(headers).not.toHaveProperty('upgrade')
  expect(headers).not.toHaveProperty('content-length')
})

test('one address may hold so many connections, an exempt one any number', async () => {
  await Promise.all([1, 2, 3].map(() => openSocket(limited)))
  await expect(openSocket(limited)).rejects.toThrow('429')
  await Promise.all(Array.from({ length: 12 }, () => openSocket(limited, { from: '127.0.0.2' })))
})

test('one address may make so many handshakes in a burst', async () => {
  for (let made = 0; made < 6; made++) {
    const socket = await openSocket(limited, { from: '127.0.0.3' })
    socket.close()
    await once(socket, 'close')
  }
  await expect(openSocket(limited, { from: '127.0.0.3' })).rejects.toThrow('429')
})

test('a reload leaves WebSockets open for a while and takes new ones at once', async () => {
  const workersBefore = proxy.workers()
  const old = await openSocket(proxy)
  const oldClosed = once(old, 'close')
  proxy.reload()
  // The new workers run by then: nginx tells the old ones last.
  const leaving = () => workersBefore.every(pid => proxy.log().includes(`${pid}#${pid}: gracefully shutting down`))
  await eventually(leaving, 'the leaving of the old workers')

  expect(await echo(old, 'still there')).toBe('still there')
  const fresh = await openSocket(proxy)
  await oldClosed
  await eventually(() => !proxy.workers().some(pid => workersBefore.includes(pid)), 'the end of the old workers')
  expect(await echo(fresh, 'and I')).toBe('and I')
})

test('when one of two gateways dies, those who connect do not notice', async () => {
  const dying = await startStandIn('dying')
  const staying = await startStandIn('staying')
  const pair = await startProxy([dying.port, staying.port], { env: { PROXY_SHUTDOWN_TIMEOUT: '1s' } })
  const before = await Promise.all(Array.from({ length: 10 }, () => openSocket(pair)))
  expect([dying.sockets(), staying.sockets()]).toEqual([5, 5])

  const lost = Promise.race(before.map(socket => once(socket, 'close')))
  dying.die()
  await lost
  await Promise.all(Array.from({ length: 20 }, () => openSocket(pair)))
  const pages = await Promise.all(Array.from({ length: 20 }, () => request(pair.url('/'))))
  expect(pages.map(({ body }) => body)).toEqual(Array(20).fill('staying'))
  expect(staying.sockets()).toBe(25)
})

test('a gateway that comes back takes all who come when the other one is gone', async () => {
  const gone = await startStandIn('first')
  const other = await startStandIn('second')
  const proxy = await startProxy([gone.port, other.port])
  const connectAll = () => Promise.all(Array.from({ length: 20 }, () => openSocket(proxy)))
  gone.die()
  await connectAll()
  expect(other.sockets()).toBe(20)

  const back = await startStandIn('first', gone.port)
  other.die()
  await connectAll()
  expect(back.sockets()).toBe(20)
})

test('a stop is graceful: nobody new, those there for a while, exit code 0', async () => {
  const stopping = await startProxy([first.port], { env: { PROXY_SHUTDOWN_TIMEOUT: '1s' } })
  const socket = await openSocket(stopping)
  const closed = once(socket, 'close')
  const stopped = stopping.stop()
  const refused = () =>
    request(stopping.url('/')).then(
      () => false,
      ({ code }) => code === 'ECONNREFUSED',
    )
  await eventually(refused, 'the closing of the port')
  expect(await echo(socket, 'still there')).toBe('still there')
  await closed
  expect(await stopped).toBe(0)
})

test('what the operator can mend is said in a sentence', async () => {
  /** @param {string[]} args @param {NodeJS.ProcessEnv} [env] */
  const complaint = (args, env) =>
    run(process.execPath, [proxyScript, ...args], { env }).then(
      () => 'nothing',
      error => error.stderr,
    )
  expect(await complaint(['--gatewy', 'x'])).toMatch(/^proxy: Unknown option '--gatewy'/)
  const directory = temporaryFolder()
  const certificates = join(directory, 'certificates')
  await run(certificatesScript, [certificates])
  rmSync(join(certificates, 'privkey.pem'))
  expect(await complaint(['--directory', directory])).toContain('privkey.pem is missing beside')
})

test.each([proxyScript, certificatesScript])('%s says how it is used', async script => {
  const { stdout } = await run(script, ['--help'])
  expect(stdout).toMatch(/^Usage: .*scripts\//)
})

/**
 * @param {import('node:tls').ConnectionOptions} options
 * @returns {Promise<{ protocol: string | null, cipher: string, reused: boolean, session: Buffer }>} with the session to
 *   resume, which in TLS 1.3 comes after the handshake
 */
function handshake(options) {
  return new Promise((resolve, reject) => {
    const socket = connectTls({ port: proxy.httpsPort, host: '127.0.0.1', rejectUnauthorized: false, ...options })
    const done = (/** @type {Buffer} */ session) => {
      resolve({
        protocol: socket.getProtocol(),
        cipher: socket.getCipher().name,
        reused: socket.isSessionReused(),
        session,
      })
      socket.destroy()
    }
    socket.once('session', done).once('error', reject)
    socket.once('secureConnect', () => {
      if (socket.isSessionReused()) done(Buffer.alloc(0))
    })
  })
}

/**
 * @param {string} url
 * @param {{ method?: string, headers?: Record<string, string>, body?: string, path?: string }} [options] `path` is sent
 *   as it is, dots and all
 * @returns {Promise<{ status: number | undefined, headers: import('node:http').IncomingHttpHeaders, body: string }>}
 */
function request(url, { body, ...options } = {}) {
  const send = url.startsWith('https:') ? requestSecurely : requestPlainly
  return new Promise((resolve, reject) => {
    send(url, { rejectUnauthorized: false, agent: false, ...options }, response => {
      let text = ''
      response.on('data', chunk => {
        text += chunk
      })
      response.on('end', () => resolve({ status: response.statusCode, headers: response.headers, body: text }))
    })
      .on('error', reject)
      .end(body)
  })
}

/** @param {import('ws').WebSocket} socket @param {string} text */
async function echo(socket, text) {
  socket.send(text)
  const closed = once(socket, 'close').then(() => Promise.reject(new Error('the WebSocket was closed')))
  const [answer] = await Promise.race([once(socket, 'message'), closed])
  return String(answer)
}
