// The proxy on a host: a real nginx with the template of the image, in front of stand-in gateways of a few lines.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { type ConnectionOptions, connect as connectTls } from 'node:tls'
import { eventually } from '../support/deadline.ts'
import { freePorts } from '../support/free-ports.ts'
import {
  echo,
  openSocket,
  pagePolicy,
  type RunningProxy,
  request,
  type StandIn,
  startProxy,
  startStandIn,
} from '../support/proxy.ts'
import { run } from '../support/run.ts'

/** The tests share two gateways, a proxy in front of both, and one with small limits in front of the first. */
let first: StandIn
let second: StandIn
let proxy: RunningProxy
let limited: RunningProxy

beforeAll(async () => {
  first = await startStandIn('first')
  second = await startStandIn('second')
  proxy = await startProxy([first.port, second.port])
  limited = await startProxy([first.port], {
    args: ['--exempt', '127.0.0.2/32'],
    env: { PROXY_CONNECTIONS_PER_ADDRESS: '3' },
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

test.each(['TLSv1.2', 'TLSv1.3'] as const)('%s is spoken, and a session resumed', async version => {
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

test.each(['X25519', 'P-256'])('keys are exchanged by %s', async ecdhCurve => {
  await expect(handshake({ ecdhCurve })).resolves.toMatchObject({ protocol: 'TLSv1.3' })
})

test.each(['P-384', 'P-521', 'X448', 'ffdhe2048', 'ffdhe8192'])(
  'keys are not exchanged by %s, which takes long',
  async curve => {
    const slow = handshake({ ecdhCurve: curve })
    await expect(slow).rejects.toMatchObject({ code: expect.stringMatching(/ALERT_HANDSHAKE_FAILURE/) })
  },
)

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
    'x-request-id': '1087',
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
    'x-request-id': expect.stringMatching(/^[0-9a-f]{32}$/),
  })
  expect(JSON.stringify(headers)).not.toMatch(/10\.9\.8\.7|gopher|evil|1087|admin/)
})

test.each([
  ['/', 200],
  ['/page.js', 200],
  ['/keycast.js', 200],
  ['/keycast/values/delta.js', 200],
  ['/keycast/../metrics', 404],
  ['/keycast/x.json', 404],
  ['/v1/values/conversation:42', 200],
  ['/v1/values/tick:a/b', 200],
  ['/v1/messages/room:42?after=7', 200],
  ['/metrics', 404],
  ['//metrics', 404],
  ['/health/ready', 404],
  ['/v1/keys/conversation:42', 404],
  ['/v1/refresh', 404],
  ['/v1/values/../keys/conversation:42', 404],
  ['/v1/values/%2e%2e/%2e%2e/metrics', 404],
  ['/v1/messages/../rooms/room:42', 404],
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

test('over HTTP/2 nothing is upgraded: the connection is that of all streams', async () => {
  first.requests.length = 0
  second.requests.length = 0
  const to = { port: proxy.httpsPort, host: '127.0.0.1', rejectUnauthorized: false, ALPNProtocols: ['h2'] }
  const socket = connectTls(to)
  const key = { 'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==', 'sec-websocket-version': '13' }
  const fields = {
    ':method': 'GET',
    ':scheme': 'https',
    ':path': '/ws',
    ':authority': 'a',
    upgrade: 'websocket',
    ...key,
  }
  // Node's own client refuses to send this. Each field as RFC 7541 section 6.2.2 has it, with a new name.
  const block = Object.entries(fields).map(([name, value]) => [
    0,
    name.length,
    ...Buffer.from(name),
    value.length,
    ...Buffer.from(value),
  ])
  const headers = Buffer.from(block.flat())
  socket.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
  socket.write(Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, headers.length, 1, 5, 0, 0, 0, 1, ...headers]))
  await eventually(() => first.requests.length + second.requests.length === 1, 'the request at a gateway')
  const [request] = [...first.requests, ...second.requests]
  expect(request.url).toBe('/ws')
  expect(request.headers).not.toHaveProperty('upgrade')
  socket.destroy()
})

test('a browser that asks whether a page may send a token is answered by a gateway', async () => {
  first.requests.length = 0
  second.requests.length = 0
  expect((await request(proxy.url('/v1/values/a:1'), { method: 'OPTIONS' })).status).toBe(200)
  expect([...first.requests, ...second.requests]).toHaveLength(1)
})

test("any page may read what nginx answers itself under /v1/, and of a gateway's answer what that says", async () => {
  const [nobody] = await freePorts(1)
  const alone = await startProxy([nobody], { env: { PROXY_REQUESTS_PER_SECOND: '1' } })
  const readBy = async (url: string) => {
    const { status, headers } = await request(url, { headers: { origin: 'https://any.example' } })
    return [status, headers['access-control-allow-origin']]
  }
  expect(await readBy(proxy.url('/v1/values/a:1'))).toEqual([200, undefined])
  expect(await readBy(alone.url('/'))).toEqual([502, undefined])
  const told = await Promise.all(Array.from({ length: 4 }, () => readBy(alone.url('/v1/values/a:1'))))
  expect(told).toEqual(
    expect.arrayContaining([
      [502, '*'],
      [429, '*'],
    ]),
  )
})

test('one address may hold so many connections, an exempt one any number', async () => {
  await Promise.all([1, 2, 3].map(() => openSocket(limited)))
  await expect(openSocket(limited)).rejects.toThrow('429')
  await Promise.all(Array.from({ length: 40 }, () => openSocket(limited, { from: '127.0.0.2' })))
})

test.each([
  '/v1/values/text:1',
  // In a query within a key dots are text. nginx resolves them, and takes this for /v1/stream.
  '/v1/values/text:1%3Fa=x/../../stream',
])('requests that one address leaves unanswered or unread leave connections for those of others: %s', async path => {
  const hanging = await startStandIn('hanging')
  hanging.hang()
  const narrow = await startProxy([hanging.port], { env: { PROXY_CONNECTIONS_PER_ADDRESS: '8' } })
  const asked = [1, 2, 3].map(() => request(narrow.url('/'), { path }))
  expect((await Promise.race(asked)).status).toBe(429)
  // The others are cut at the end.
  for (const each of asked) each.catch(() => {})
  await openSocket(narrow)
  await eventually(() => hanging.requests.length >= 3, 'the requests that went through')
  expect(hanging.requests.map(({ url }) => url.slice(0, 9)).sort()).toEqual(['/v1/value', '/v1/value', '/ws'])
})

test('bodies that one address never finishes leave room for those of others', async () => {
  const narrow = await startProxy([first.port], { env: { PROXY_CONNECTIONS_PER_ADDRESS: '32' } })
  const send = (localAddress: string) =>
    request(narrow.url('/v1/stream/send'), { method: 'POST', body: 'x', localAddress })
  const to = { port: narrow.httpsPort, host: '127.0.0.1', rejectUnauthorized: false }
  const slow = [1, 2].map(() => connectTls(to))
  const head = 'POST /v1/stream/send HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\nexpect: 100-continue\r\n\r\n'
  for (const socket of slow) socket.write(head)
  // nginx says "continue" once a body has its place: what is sent before might have the place of one of them.
  await Promise.all(slow.map(socket => once(socket, 'data')))
  expect((await send('127.0.0.1')).status).toBe(429)
  expect((await send('127.0.0.4')).status).toBe(200)
  expect((await request(narrow.url('/v1/values/text:1'))).status).toBe(200)
  for (const socket of slow) socket.destroy()
})

test('one address may make so many handshakes in a burst', async () => {
  const bursty = await startProxy([first.port], {
    env: { PROXY_HANDSHAKES_PER_SECOND: '1', PROXY_HANDSHAKES_BURST: '5' },
  })
  // All at once: one after the other they may take the seconds for which one more is granted each.
  const ends = await Promise.allSettled(Array.from({ length: 60 }, () => openSocket(bursty)))
  const refusals = ends.filter(each => each.status === 'rejected').map(({ reason }) => reason.message)
  expect(new Set(refusals)).toEqual(new Set([expect.stringContaining('429')]))
  expect(ends.length - refusals.length).toBeGreaterThanOrEqual(6)
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

test('a body that comes while a gateway is gone is announced to no other: the next request is read as one', async () => {
  const [nobody] = await freePorts(1)
  const pair = await startProxy([nobody, first.port], { env: { PROXY_WORKERS: '1' } })
  first.requests.length = 0
  const body = 'x'.repeat(500)
  await Promise.all(
    [1, 2].map(() => request(pair.url('/v1/values/a:1'), { headers: { 'content-length': '500' }, body })),
  )
  expect(first.requests).toContainEqual({ url: '/', headers: { host: 'gateway' } })
  const sent = await request(pair.url('/v1/stream/send'), { method: 'POST', body: 'x', localAddress: '127.0.0.4' })
  expect(sent).toMatchObject({ status: 200, body: 'first' })
})

test('when one of two gateways dies and the other one is slow for a moment, those who connect wait for it', async () => {
  const dying = await startStandIn('dying')
  const staying = await startStandIn('staying')
  const pair = await startProxy([dying.port, staying.port], { env: { PROXY_SHUTDOWN_TIMEOUT: '1s' } })
  dying.die()
  // As nginx looks for one that answers, for each of those whom it led to the other.
  staying.hang(2)
  await Promise.all([1, 2].map(() => openSocket(pair)))
  expect(staying.requests.filter(({ url }) => url === '/').length).toBeGreaterThan(1)
})

test.each(['/v1/values/a:1', '/ws'])('a request to %s that ends a gateway is sent to no other', async path => {
  const first = await startStandIn('first')
  const second = await startStandIn('second')
  const pair = await startProxy([first.port, second.port], { env: { PROXY_SHUTDOWN_TIMEOUT: '1s' } })
  first.dieOnRequest()
  second.dieOnRequest()
  const ask = () => (path === '/ws' ? openSocket(pair) : request(pair.url(path)))
  const said = await ask().then(
    answer => `answered ${'status' in answer ? answer.status : 'with a WebSocket'}`,
    error => error.message,
  )
  expect(said).toContain('502')
  expect(first.requests.length + second.requests.length).toBe(1)
})

test('what a gateway that hangs was asked goes to no other, while silent WebSockets stay', async () => {
  const hanging = await startStandIn('hanging')
  const staying = await startStandIn('staying')
  const pair = await startProxy([hanging.port, staying.port], { env: { PROXY_ANSWER_TIMEOUT: '10s' } })
  const sockets = await Promise.all([1, 2].map(() => openSocket(pair)))
  hanging.hang()
  const before = staying.requests.length
  const paths = ['/v1/values/a:1', '/v1/values/a:2', '/', '/page.js']
  const answers = await Promise.all(paths.map(path => request(pair.url(path))))
  expect(answers.map(({ status }) => status).sort()).toEqual([200, 200, 504, 504])
  expect(staying.requests.length - before).toBe(2)
  for (const socket of sockets) expect(await echo(socket, 'still there')).toBe('still there')
})

test('where no gateway is left, clients are told so', async () => {
  const [one, other] = await freePorts(2)
  const alone = await startProxy([one, other])
  expect((await request(alone.url('/'))).status).toBe(502)
  await expect(openSocket(alone)).rejects.toThrow('502')
  expect((await request(alone.url('/any-gateway'))).status).toBe(404)
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

/** @returns with the session to resume, which in TLS 1.3 comes after the handshake */
function handshake(
  options: ConnectionOptions,
): Promise<{ protocol: string | null; cipher: string; reused: boolean; session: Buffer }> {
  return new Promise((resolve, reject) => {
    const socket = connectTls({ port: proxy.httpsPort, host: '127.0.0.1', rejectUnauthorized: false, ...options })
    const done = (session: Buffer) => {
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
