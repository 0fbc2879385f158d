// The proxy for its operator: settings, logs, reloads, stops, and load balancers in front of it.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { type ClientHttp2Session, connect as connectHttp2 } from 'node:http2'
import { Agent, get } from 'node:https'
import { connect as connectTcp } from 'node:net'
import { join } from 'node:path'
import { Duplex } from 'node:stream'
import { connect as connectTls } from 'node:tls'
import { fileURLToPath } from 'node:url'
import { atEnd, newFolder } from '../support/cleanup.ts'
import { eventually } from '../support/deadline.ts'
import { freePorts } from '../support/free-ports.ts'
import { ofNode } from '../support/node-process.ts'
import { isAlive, killAtEnd, killNow } from '../support/processes.ts'
import {
  echo,
  openSocket,
  proxyCommand,
  type RunningProxy,
  request,
  type StandIn,
  startProxy,
  startStandIn,
} from '../support/proxy.ts'
import { run } from '../support/run.ts'

const certificatesScript = fileURLToPath(new URL('../../scripts/certificates', import.meta.url))

/** The tests share two gateways, a proxy in front of the first, and one there that has balancers before it. */
let first: StandIn
let second: StandIn
let proxy: RunningProxy
let balanced: RunningProxy

beforeAll(async () => {
  first = await startStandIn('first')
  second = await startStandIn('second')
  proxy = await startProxy([first.port], { env: { PROXY_SHUTDOWN_TIMEOUT: '1s' } })
  // Two balancers, one behind the other.
  balanced = await startProxy([first.port], {
    env: { PROXY_TRUSTED: '127.0.0.1 127.0.0.9/32', PROXY_CONNECTIONS_PER_ADDRESS: '3' },
  })
})

test('of IPv6 addresses, those of one /64 share the limits; of IPv4 addresses each has its own', async () => {
  const openFrom = (client: string) => openSocket(balanced, { headers: { 'x-forwarded-for': client } })
  await Promise.all([1, 2, 3].map(number => openFrom(`2001:db8:0:a:${number}::${number}`)))
  await expect(openFrom('2001:db8:0:a::4')).rejects.toThrow('429')
  await Promise.all([1, 2, 3].map(number => openFrom(`2001:db8:0:b::${number}`)))
  // More than one address may hold: a balancer's connections are those of many.
  const numbers = Array.from({ length: 15 }, (_, index) => index + 1)
  await Promise.all(numbers.map(number => openFrom(`192.0.2.${number}`)))
  await Promise.all(numbers.map(number => openFrom(`::ffff:198.51.100.${number}`)))
})

test('behind balancers the client is the last address that is none of theirs', async () => {
  first.requests.length = 0
  await request(balanced.url('/'), { headers: { 'x-forwarded-for': '10.9.8.7, 192.0.2.7, 127.0.0.9' } })
  expect(first.requests[0].headers).toMatchObject({ 'x-forwarded-for': '192.0.2.7', 'x-real-ip': '192.0.2.7' })
  await eventually(
    async () => (await balanced.requests(1)).some(({ remote }) => remote === '192.0.2.7'),
    'a line of the client in the log',
  )
})

test('a balancer that has ended TLS is answered over HTTP, as it says; nobody else is', async () => {
  const overHttps = { 'x-forwarded-proto': 'https', 'x-forwarded-for': '192.0.2.7' }
  first.requests.length = 0
  expect(await request(`http://127.0.0.1:${balanced.httpPort}/`, { headers: overHttps })).toMatchObject({ status: 200 })
  expect(first.requests[0].headers).toMatchObject({ 'x-forwarded-proto': 'https', 'x-forwarded-for': '192.0.2.7' })
  const plain = { 'x-forwarded-proto': 'http', 'x-forwarded-for': '192.0.2.7' }
  expect((await request(`http://127.0.0.1:${balanced.httpPort}/`, { headers: plain })).status).toBe(301)

  const stranger = { headers: overHttps, localAddress: '127.0.0.5' }
  expect((await request(`http://127.0.0.1:${balanced.httpPort}/`, stranger)).status).toBe(301)
  first.requests.length = 0
  await request(balanced.url('/'), stranger)
  expect(first.requests[0].headers).toMatchObject({ 'x-forwarded-for': '127.0.0.5' })
})

test('a balancer that passes TLS through tells the client by the PROXY protocol', async () => {
  const told = await startProxy([first.port], { env: { PROXY_PROTOCOL: 'on', PROXY_TRUSTED: '127.0.0.1' } })
  first.requests.length = 0
  const tcp = connectTcp(told.httpsPort, '127.0.0.1')
  tcp.write('PROXY TCP4 192.0.2.7 198.51.100.1 4711 443\r\n')
  const socket = connectTls({ socket: tcp, rejectUnauthorized: false })
  socket.write('GET / HTTP/1.0\r\nHost: a\r\n\r\n')
  await once(socket.resume(), 'end')
  expect(first.requests[0].headers).toMatchObject({ 'x-forwarded-for': '192.0.2.7' })
})

test.each(['http', 'https'])('/proxy-health over %s needs no gateway, and is not logged', async scheme => {
  const [nobody] = await freePorts(1)
  const alone = await startProxy([nobody], { env: { PROXY_NAMES_ONLY: 'on' } })
  expect((await request(alone.url('/'))).status).toBe(502)
  const url = { http: `http://127.0.0.1:${alone.httpPort}/proxy-health`, https: alone.url('/proxy-health') }[scheme]
  expect(await request(url ?? '', { headers: { host: 'balancer.example' } })).toMatchObject({
    status: 200,
    body: 'ok\n',
  })
  expect((await alone.requests(1)).map(({ path }) => path)).toEqual(['/'])
})

test('with PROXY_NAMES_ONLY requests to other hosts are refused, on both ports', async () => {
  const env = { PROXY_NAMES_ONLY: 'on', PROXY_NAMES: 'keycast.example *.viewers.example 127.0.0.1' }
  const named = await startProxy([first.port], { env })
  const plainUrl = `http://127.0.0.1:${named.httpPort}/`
  for (const host of ['keycast.example', 'keycast.example:443', 'a.viewers.example', '127.0.0.1']) {
    expect((await request(named.url('/'), { headers: { host } })).status).toBe(200)
    expect((await request(plainUrl, { headers: { host } })).status).toBe(301)
  }
  for (const host of ['evil.example', 'keycast.example.evil.example', '127.0.0.2']) {
    expect((await request(named.url('/'), { headers: { host } })).status).toBe(421)
    expect((await request(plainUrl, { headers: { host } })).status).toBe(421)
  }
})

test('it listens on several addresses, IPv6 among them', async () => {
  const both = await startProxy([first.port], { args: ['--host', '127.0.0.1', '--host', '::1'] })
  for (const host of ['127.0.0.1', '[::1]']) {
    expect((await request(`https://${host}:${both.httpsPort}/`)).status).toBe(200)
    const { headers } = await request(`http://${host}:${both.httpPort}/`)
    expect(headers.location).toBe(`https://${host}:${both.httpsPort}/`)
  }
})

test.each([
  ['/nothing', 404],
  ['/v1/values/a:1', 429],
])('a client that asks for %s without end fills no log: %i', async (path, status) => {
  const env = { PROXY_REQUESTS_PER_SECOND: '1' }
  const flooded = await startProxy([first.port], { env })
  const agent = new Agent({ keepAlive: true, maxSockets: 1, rejectUnauthorized: false })
  const ask = () =>
    new Promise((resolve, reject) => {
      const headers = { 'user-agent': 'x'.repeat(4_000) }
      get(flooded.url(path), { agent, headers }, response => {
        response.resume().on('end', () => resolve(response.statusCode))
      }).on('error', reject)
    })
  const answers = new Set<unknown>()
  for (let asked = 0; asked < 600; asked++) answers.add(await ask())
  agent.destroy()
  expect(answers).toContain(status)
  const lines = await flooded.requests(9)
  // Those within the limit are logged, each second one: how many seconds it took is a matter of the machine.
  expect(lines.filter(({ gateway }) => gateway === '').length).toBeLessThan(60)
  for (const { userAgent } of lines) expect(userAgent.length).toBeLessThanOrEqual(256)
  for (const line of lines.filter(({ gateway }) => gateway === ''))
    expect(JSON.stringify(line).length).toBeLessThan(500)
  expect(flooded.log()).not.toContain('limiting requests')
})

test.each([
  ['bodies that are too long', 413, { 'content-length': '2000' }],
  ['a method that is none', 405, { ':method': 'X'.repeat(3_000) }],
  ['a path of two lines', 404, { ':path': `/%0A${'x'.repeat(3_000)}` }],
  ['a path of control characters, each six in JSON,', 404, { ':path': `/${'%01'.repeat(1_300)}` }],
])('over HTTP/2, where each costs a client some bytes, %s fill no log either: %i', async (_, status, headers) => {
  const flooded = await startProxy([first.port])
  const answers = new Set<unknown>()
  let sessions = 0
  let session: ClientHttp2Session | undefined
  for (let asked = 0; asked < 600; asked++) {
    if (!session || session.closed) {
      session = connectHttp2(flooded.url('/'), { rejectUnauthorized: false })
      sessions++
    }
    const stream = session.request(headers, { endStream: false })
    const [answer] = await once(stream, 'response')
    answers.add(answer[':status'])
    stream.close()
  }
  session?.destroy()
  expect([...answers]).toEqual([status])
  expect(sessions).toBe(6)
  const lines = (await flooded.requests(9)).map(line => line as { method: string; path: string })
  expect(lines.length).toBeLessThan(60)
  for (const { method, path } of lines) expect([method.length <= 32, path.length <= 2_048]).toEqual([true, true])
  for (const line of lines) expect(JSON.stringify(line).length).toBeLessThan(700)
  expect(flooded.log().length).toBeLessThan(10_000)
})

test('TLS handshakes that clients break fill no log: of a request that no gateway takes it says why', async () => {
  const [nobody] = await freePorts(1)
  const flooded = await startProxy([nobody])
  const begun = Buffer.concat([await clientHello(), Buffer.from([21, 3, 3, 0, 2, 2, 226])])
  for (let broken = 0; broken < 100; broken++) {
    const socket = connectTcp(flooded.httpsPort, '127.0.0.1').on('error', () => {})
    socket.resume().write(begun)
    await once(socket, 'close')
  }
  expect((await request(flooded.url('/v1/values/a:1'))).status).toBe(502)
  await eventually(() => flooded.log().includes('/v1/values/a:1'), 'the failure in the log')
  expect(flooded.log()).not.toContain('SSL_do_handshake')
})

/** The first bytes of a TLS client. */
const clientHello = () =>
  new Promise<Buffer>(resolve => {
    const socket = new Duplex({ read() {}, write: (bytes, _, done) => done(resolve(bytes) as undefined) })
    connectTls({ socket })
    atEnd(() => socket.destroy())
  })

test('the log tells a request by its id, and what each gateway asked had to say', async () => {
  const [nobody] = await freePorts(1)
  const logging = await startProxy([nobody, first.port])
  first.requests.length = 0
  const userAgent = 'a "quoted" browser'
  const origin = 'https://page.example'
  await Promise.all(
    [1, 2].map(() => request(logging.url('/v1/values/a:1?token=x'), { headers: { 'user-agent': userAgent, origin } })),
  )
  const lines = await logging.requests(2)
  expect(lines).toContainEqual({
    time: expect.any(String),
    requestId: expect.any(String),
    remote: '127.0.0.1',
    host: `127.0.0.1:${logging.httpsPort}`,
    method: 'GET',
    path: '/v1/values/a:1',
    status: 200,
    bytesSent: expect.any(Number),
    seconds: expect.any(Number),
    gateway: `127.0.0.1:${nobody} : 127.0.0.1:${first.port}`,
    gatewayStatus: '502 : 200',
    gatewaySeconds: expect.stringMatching(/^[0-9.]+ : [0-9.]+$/),
    tls: 'TLSv1.3',
    origin,
    userAgent,
  })
  expect(lines.map(({ requestId }) => requestId).sort()).toEqual(
    // The other request asks which gateway answers, and holds nothing of the client's.
    first.requests.flatMap(({ url, headers }) => (url === '/' ? [] : [headers['x-request-id']])).sort(),
  )
  expect(first.requests).toContainEqual({ url: '/', headers: { host: 'gateway' } })
})

test('the log that was moved away is opened anew on SIGUSR1', async () => {
  const log = join(proxy.directory, 'access.log')
  renameSync(log, `${log}.1`)
  proxy.reopenLogs()
  // Its workers write into the new one as soon as each has heard of it.
  const isThere = async () => {
    await request(proxy.url('/page.js'))
    return existsSync(log) && readFileSync(log, 'utf8') !== ''
  }
  await eventually(isThere, 'a line in a new log')
  expect(await proxy.requests(1)).toContainEqual(expect.objectContaining({ path: '/page.js' }))
})

test('a reload takes new WebSockets at once, and leaves those of before open', async () => {
  const reloaded = await startProxy([first.port], { env: { PROXY_SHUTDOWN_TIMEOUT: '1s' } })
  const workersBefore = reloaded.workers()
  const old = await openSocket(reloaded)
  reloaded.reload()
  // The new workers run by then: nginx tells the old ones last.
  const leaving = () => workersBefore.every(pid => reloaded.log().includes(`${pid}#${pid}: gracefully shutting down`))
  await eventually(leaving, 'the leaving of the old workers')

  expect(await echo(old, 'still there')).toBe('still there')
  const fresh = await openSocket(reloaded)
  old.close()
  await eventually(() => !reloaded.workers().some(pid => workersBefore.includes(pid)), 'the end of the old workers')
  expect(await echo(fresh, 'and I')).toBe('and I')
})

test('a reload leaves the WebSockets of before open no longer than it may', async () => {
  const reloaded = await startProxy([first.port], { env: { PROXY_SHUTDOWN_TIMEOUT: '1s', PROXY_RELOAD_TIMEOUT: '3s' } })
  const workersBefore = reloaded.workers()
  const closed = once(await openSocket(reloaded), 'close')
  const reloadedAt = Date.now()
  reloaded.reload()
  await closed
  // Not after the time a stop has, which is shorter.
  expect(Date.now() - reloadedAt).toBeGreaterThan(2_000)
  await eventually(() => !reloaded.workers().some(pid => workersBefore.includes(pid)), 'the end of the old workers')
})

test('a reload reads the settings file again: who connects then comes to the gateways it names', async () => {
  const file = join(newFolder(), 'settings')
  writeFileSync(file, `PROXY_GATEWAYS=127.0.0.1:${first.port}\n`)
  const filed = await startProxy([], { args: ['--settings', file] })
  const workersBefore = filed.workers()
  expect((await request(filed.url('/'))).body).toBe('first')
  writeFileSync(file, `# both\nPROXY_GATEWAYS="127.0.0.1:${second.port} 127.0.0.1:${second.port}"\n`)
  filed.reload()
  await eventually(async () => (await request(filed.url('/'))).body === 'second', 'an answer of the other gateway')
  // The new workers answer while the old ones still leave.
  await eventually(() => !filed.workers().some(pid => workersBefore.includes(pid)), 'the end of the old workers')

  // One that is wrong changes nothing, neither now nor for a reload that nginx is told of by somebody else.
  const rendered = join(filed.directory, 'nginx.conf')
  const before = readFileSync(rendered, 'utf8')
  const workers = filed.workers()
  for (const [line, complaint] of [
    ['PROXY_GATEWAYS=127.0.0.1', 'PROXY_GATEWAYS must be'],
    ['PROXY_GATEWAYS=gateway.invalid:8080', 'host not found in upstream'],
    ['PROXY_GATEWAY=127.0.0.1:80', 'no setting PROXY_GATEWAY'],
  ]) {
    writeFileSync(file, line)
    filed.reload()
    await eventually(() => filed.log().includes(complaint), `"${complaint}"`)
  }
  await eventually(() => filed.log().match(/not reloaded/g)?.length === 3, 'the third refusal')
  expect(readFileSync(rendered, 'utf8')).toBe(before)
  expect(filed.workers()).toEqual(workers)
  expect((await request(filed.url('/'))).body).toBe('second')
})

test('SIGHUP while it starts ends nothing: it is read again once nginx runs', async () => {
  const directory = join(newFolder(), 'proxy')
  const [httpPort, httpsPort] = (await freePorts(2)).map(String)
  const ports = ['--gateway', `127.0.0.1:${first.port}`, '--http-port', httpPort, '--https-port', httpsPort]
  const child = spawn(process.execPath, [...proxyCommand, '--directory', directory, ...ports], { env: { ...ofNode } })
  const exited = once(child, 'exit')
  atEnd(() => child.kill('SIGTERM') && exited)
  let said = ''
  child.stderr.on('data', text => (said += text))
  // It has begun: it makes the folder, then a certificate.
  await eventually(() => existsSync(directory), 'its folder', { everyMs: 1 })
  child.kill('SIGHUP')
  await eventually(
    () => said.includes('reconfiguring'),
    () => `a reload in ${said}`,
  )
  expect((await request(`https://127.0.0.1:${httpsPort}/`)).status).toBe(200)
})

test('where nginx itself is killed its workers end as well, and the next one has their ports', async () => {
  const killed = await startProxy([first.port])
  const workers = killed.workers()
  const socket = await openSocket(killed)
  const closed = once(socket, 'close')
  process.kill(killed.masterPid, 'SIGKILL')
  await closed
  await eventually(() => !workers.some(isAlive), 'the end of the workers')
  await eventually(() => killed.log().includes('nginx was ended by SIGKILL'), 'the end of nginx being said')
  const next = await startProxy([first.port], { after: killed })
  expect((await request(next.url('/'))).status).toBe(200)
})

test('after the script was killed, the nginx it left is named, with how to end it', async () => {
  const killed = await startProxy([first.port])
  killAtEnd(() => killNow(-killed.masterPid)) // a group of its own
  await killed.kill()
  const { httpPort, httpsPort, directory, masterPid } = killed
  const again = ['--directory', directory, '--http-port', String(httpPort), '--https-port', String(httpsPort)]
  expect(await complaint(again)).toMatchObject({
    code: 2,
    stderr: `keycast proxy: nginx ${masterPid} already runs in ${directory}. End it with: kill -QUIT ${masterPid}\n`,
  })
  expect((await request(killed.url('/'))).status).toBe(200)

  process.kill(masterPid, 'SIGQUIT')
  await eventually(() => !isAlive(masterPid), 'the end of nginx')
  const next = await startProxy([first.port], { after: killed })
  expect((await request(next.url('/'))).status).toBe(200)
})

test('a stop is graceful: nobody new, those there may stay until they leave, exit code 0', async () => {
  const stopping = await startProxy([first.port], { env: { PROXY_SHUTDOWN_TIMEOUT: '120s' } })
  const socket = await openSocket(stopping)
  const stopped = stopping.stop()
  const refused = () =>
    request(stopping.url('/')).then(
      () => false,
      ({ code }) => code === 'ECONNREFUSED',
    )
  await eventually(refused, 'the closing of the port')
  expect(await echo(socket, 'still there')).toBe('still there')
  socket.close()
  expect(await stopped).toBe(0)
})

test('a stop is over soon where a client stays', async () => {
  const stopping = await startProxy([first.port], { env: { PROXY_SHUTDOWN_TIMEOUT: '1s' } })
  const closed = once(await openSocket(stopping), 'close')
  const stopped = stopping.stop()
  await closed
  expect(await stopped).toBe(0)
})

test('an nginx that cannot count connections by address serves, and its proxy says what is missing', async () => {
  const { stdout } = await run('sh', ['-c', 'PATH=$PATH:/usr/sbin command -v nginx'])
  const folder = newFolder()
  const old = 'nginx version: nginx/1.22.1\nconfigure arguments: --with-stream'
  const script = `#!/bin/sh\n[ "$1" != -V ] || exec printf '${old}'\nexec ${stdout.trim()} "$@"\n`
  writeFileSync(join(folder, 'nginx'), script, { mode: 0o755 })
  const older = await startProxy([first.port], { env: { PATH: `${folder}:${process.env.PATH}` } })
  expect(older.log()).toContain('one address may hold all connections')
  expect((await request(older.url('/'))).status).toBe(200)
})

test('Prometheus is told how many clients are connected, and how many fit', async () => {
  const [metricsPort] = await freePorts(1)
  const env = { PROXY_METRICS_PORT: String(metricsPort), PROXY_WORKERS: '2', PROXY_WORKER_CONNECTIONS: '100' }
  const watched = await startProxy([first.port], { env })
  await Promise.all([1, 2, 3].map(() => openSocket(watched)))
  const { status, headers, body } = await request(`http://127.0.0.1:${metricsPort}/metrics`)
  expect(status).toBe(200)
  expect(headers['content-type']).toBe('text/plain; version=0.0.4')
  // Three WebSockets and this request.
  expect(body).toContain('keycast_proxy_connections_open 4\n')
  expect(body).toContain('keycast_proxy_connections{state="writing"} 4\n')
  expect(body).toContain('keycast_proxy_connections_max 100\n')
  expect((await request(`http://127.0.0.1:${metricsPort}/`)).status).toBe(404)
  // It is no page for the public.
  expect((await request(watched.url('/metrics'))).status).toBe(404)
})

test('an answer names the request as the log does', async () => {
  const named = await startProxy([first.port])
  const { headers } = await request(named.url('/'))
  const [{ requestId }] = await named.requests(1)
  expect(headers['x-request-id']).toBe(requestId)
})

test('what the operator can mend is said in a sentence, with exit code 2', async () => {
  expect(await complaint(['--gatewy', 'x'])).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/^keycast proxy: Unknown option '--gatewy'/),
  })
  const directory = newFolder()
  expect(await complaint(['--directory', directory, '--https-port', '99999', '--exempt', 'nonsense'])).toEqual({
    code: 2,
    stderr:
      'keycast proxy: settings that cannot be used:\n' +
      '  PROXY_HTTPS_PORT must be a whole number from 1 to 65535, not "99999"\n' +
      '  PROXY_PUBLIC_PORT must be a whole number from 1 to 65535, not "99999"\n' +
      '  PROXY_EXEMPT must be addresses or networks such as 10.0.0.0/8, separated by spaces, not "nonsense"\n',
  })
  const certificates = join(directory, 'certificates')
  await run(certificatesScript, [certificates])
  rmSync(join(certificates, 'privkey.pem'))
  expect(await complaint(['--directory', directory])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('privkey.pem is missing beside'),
  })
})

test.each([
  [process.execPath, [...proxyCommand, '--help']],
  [certificatesScript, ['--help']],
])('%s %j says how it is used', async (program, args) => {
  const { stdout } = await run(program, args)
  expect(stdout).toMatch(/^Usage: /)
})

/** The message about refused options. */
function complaint(args: string[]) {
  return run(process.execPath, [...proxyCommand, ...args], { env: { ...ofNode } }).then(
    () => 'nothing',
    ({ code, stderr }) => ({ code, stderr }),
  )
}
