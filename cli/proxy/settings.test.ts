import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readSettings, renderTemplate } from './settings.ts'

const directory = mkdtempSync(join(tmpdir(), 'keycast-proxy-settings-'))
const file = join(directory, 'settings')
afterAll(() => rmSync(directory, { recursive: true }))

const read = (given?: Partial<Parameters<typeof readSettings>[0]>) =>
  readSettings({ options: {}, file: undefined, environment: {}, ...given }, '/srv/proxy', 'nginx')

/** @returns what is said of settings that cannot be used */
function complaint(environment: Record<string, string>): string {
  try {
    read({ environment })
    return 'nothing'
  } catch (error) {
    return (error as Error).message
  }
}

test('an option overrides the file, the file the environment, and that the default', () => {
  const environment = {
    PROXY_HTTP_PORT: '1001',
    PROXY_HTTPS_PORT: '1002',
    PROXY_CERTIFICATES: '/live',
    PROXY_GATEWAYS: '10.0.0.1:80',
    PROXY_EXEMPT: '10.0.0.0/8 192.0.2.7',
  }
  writeFileSync(file, '# of this host\nPROXY_HTTPS_PORT=1003\nPROXY_GATEWAYS="10.0.0.2:80 10.0.0.3:80"\n')
  expect(read({ environment, file, options: { PROXY_GATEWAYS: '10.0.0.4:80', PROXY_HOST: undefined } })).toMatchObject({
    PROXY_HOST: '127.0.0.1',
    PROXY_HTTP_PORT: '1001',
    PROXY_HTTPS_PORT: '1003',
    PROXY_PUBLIC_PORT: '1003',
    PROXY_CERTIFICATES: '/live',
    PROXY_GATEWAYS: '10.0.0.4:80',
    PROXY_EXEMPT_LINES: ' 10.0.0.0/8 1; 192.0.2.7 1;',
  })
  expect(read({ environment: { ...environment, PROXY_PUBLIC_PORT: '443' } })).toMatchObject({
    PROXY_PUBLIC_PORT: '443',
  })
})

test('an empty setting counts as not given', () => {
  const environment = { PROXY_WORKER_CONNECTIONS: '', PROXY_HOST: '', PROXY_HSTS: '' }
  expect(read({ environment })).toEqual(read())
})

test('a file with an unknown setting is refused', () => {
  writeFileSync(file, 'PROXY_GATEWAY=10.0.0.1:80\n')
  expect(() => read({ file })).toThrow('the proxy has no setting PROXY_GATEWAY')
})

test.each([
  ['PROXY_GATEWAYS', '10.0.0.5'],
  ['PROXY_GATEWAYS', 'server 10.0.0.5:80;'],
  ['PROXY_RESOLVER', 'docker'],
  ['PROXY_HOST', '*'],
  ['PROXY_HTTP_PORT', '0'],
  ['PROXY_CERTIFICATES', 'certificates'],
  ['PROXY_NAMES', 'a;b'],
  ['PROXY_NAMES_ONLY', 'yes'],
  ['PROXY_TRUSTED', '10.0.0.0/33'],
  ['PROXY_TRUSTED', '10.0.0.256'],
  ['PROXY_TRUSTED', 'fe80::/129'],
  ['PROXY_PROTOCOL', 'v2'],
  ['PROXY_HANDSHAKES_PER_SECOND', 'abc'],
  ['PROXY_HANDSHAKES_BURST', '-1'],
  ['PROXY_REQUESTS_PER_SECOND', '1.5'],
  ['PROXY_CONNECTIONS_PER_ADDRESS', '0'],
  ['PROXY_EXEMPT', '10.0.0.0/8 1;'],
  ['PROXY_ANSWER_TIMEOUT', '5'],
  ['PROXY_SHUTDOWN_TIMEOUT', '10'],
  ['PROXY_WORKER_CONNECTIONS', 'many'],
  ['PROXY_OPEN_FILES', '1e5'],
  ['PROXY_HSTS', "max-age=1' always; return 200 'x"],
  ['PROXY_ACCESS_LOG', '/var/log/a"b'],
  ['PROXY_REQUESTS_PER_SECOND', '1\n2'],
])('%s=%s is refused by its name', (name, value) => {
  expect(complaint({ [name]: value })).toContain(`  ${name} must be `)
})

test('every setting that is wrong is named at once', () => {
  const said = complaint({ PROXY_HTTP_PORT: '99999', PROXY_EXEMPT: 'nonsense', PROXY_HANDSHAKES_BURST: 'x' })
  expect(said.match(/PROXY_\w+(?= must)/g)).toEqual(['PROXY_HTTP_PORT', 'PROXY_HANDSHAKES_BURST', 'PROXY_EXEMPT'])
})

test('the PROXY protocol needs a trusted balancer', () => {
  expect(complaint({ PROXY_PROTOCOL: 'on' })).toContain('PROXY_PROTOCOL must be off while PROXY_TRUSTED names no')
})

test('gateways given by name are followed where there is a name server to ask', () => {
  const gateways = { PROXY_GATEWAYS: 'gateway:8080 10.0.0.5:8080 [fd00::5]:8080' }
  const named = read({ environment: { ...gateways, PROXY_RESOLVER: '127.0.0.11' } })
  expect(named.PROXY_GATEWAY_LINES).toBe(
    ' server gateway:8080 resolve max_fails=0; server 10.0.0.5:8080 max_fails=0; server [fd00::5]:8080 max_fails=0;',
  )
  expect(renderTemplate(named)).toContain('  resolver 127.0.0.11 valid=5s ipv6=off;')
  const once = read({ environment: gateways })
  expect(once.PROXY_GATEWAY_LINES).not.toContain('resolve')
  expect(renderTemplate(once)).not.toMatch(/^ *resolver /m)
})

test('the limit of open files follows the connections of a worker', () => {
  const { PROXY_OPEN_FILES } = read({ environment: { PROXY_WORKER_CONNECTIONS: '1000' } })
  expect(PROXY_OPEN_FILES).toBe('1384')
})

test('nothing of the template stays unfilled', () => {
  expect(renderTemplate(read())).not.toMatch(/undefined|\$\{PROXY_\w+\}/)
})

test('the image has envsubst fill in every line of the templates', () => {
  const image = (file: string) => readFileSync(new URL(`../../proxy/${file}`, import.meta.url), 'utf8')
  const templates = image('nginx.conf.template') + image('stream.conf.template')
  const [, named] = /envsubst "\$\((.*)\)" /.exec(image('start.sh')) ?? []
  const filled = execFileSync('/bin/sh', ['-euc', named], { encoding: 'utf8', env: { ...process.env, ...read() } })
  expect(filled.split('\n')).toEqual(expect.arrayContaining(templates.match(/\$\{PROXY_\w+\}/g) ?? []))
})

const builtWith = '--with-stream_realip_module --modules-path=MODULES'
test.each([
  ['off', '1.22.1', `${builtWith} --with-stream`],
  ['off', '1.25.4', `${builtWith} --with-stream`],
  ['on', '1.25.5', `${builtWith} --with-stream`],
  ['on', '1.30.6 (Debian)', `--with-stream ${builtWith}`],
  ['on', '2.0.0', `${builtWith} --with-stream`],
  ['off', '1.30.6', '--with-stream'],
  ['off', '1.30.6', builtWith],
  ['off', '1.30.6', `${builtWith}/none --with-stream=dynamic`],
  ['on', '1.30.6', `${builtWith} --with-stream=dynamic`],
])('connections of an address are counted: %s with nginx %s, built with %s', (counted, version, built) => {
  const modules = join(directory, 'modules')
  mkdirSync(modules, { recursive: true })
  writeFileSync(join(modules, 'ngx_stream_module.so'), '')
  const settings = readWith(`nginx/${version}\nconfigure arguments: ${built.replace('MODULES', modules)}`)
  const isModule = counted === 'on' && built.includes('dynamic')
  expect(settings).toMatchObject({
    PROXY_STREAM: counted,
    PROXY_MODULES_LINE: isModule ? `load_module "${modules}/ngx_stream_module.so";` : '',
    PROXY_ANSWERS_PER_ADDRESS: '1024',
    PROXY_BODIES_PER_ADDRESS: '256',
    PROXY_OPEN_PER_ADDRESS: '5136',
  })
  const listens = counted === 'on' ? /listen unix:https.sock ssl;/ : /listen 127.0.0.1:8443 ssl backlog=4096;/
  expect(settings.PROXY_LISTEN_LINES).toMatch(listens)
  expect(renderTemplate(settings).includes('limit_conn addresses 5136;')).toBe(counted === 'on')
})

const quick = 'X25519:prime256v1'
const quickAfterQuantum = '?X25519MLKEM768:?X25519:prime256v1'
test.each([
  [quick, 'OpenSSL 3.0.15 3 Sep 2024'],
  [quick, 'OpenSSL 1.1.1w  11 Sep 2023'],
  [quick, 'OpenSSL 3.5.7 9 Jun 2026 (running with OpenSSL 3.0.22 25 Aug 2026)'],
  [quick, 'LibreSSL 4.0.0'],
  [quickAfterQuantum, 'OpenSSL 3.5.7 9 Jun 2026'],
  [quickAfterQuantum, 'OpenSSL 3.0.22 25 Aug 2026 (running with OpenSSL 3.6.1 1 Oct 2026)'],
  [quickAfterQuantum, 'OpenSSL 4.0.0 14 Apr 2026'],
])('keys are exchanged by %s where nginx is built with %s', (groups, tls) => {
  const settings = readWith(`nginx/1.30.6\nbuilt with ${tls}\nTLS SNI support enabled`)
  expect(renderTemplate(settings)).toContain(`    ssl_ecdh_curve ${groups};\n`)
})

/** @param version as this nginx says it */
function readWith(version: string) {
  const nginx = join(directory, 'nginx')
  writeFileSync(nginx, `#!/bin/sh\nprintf '%s\\n' 'nginx version: ${version}' >&2\n`, { mode: 0o755 })
  return readSettings({ options: {}, file: undefined, environment: {} }, '/srv/proxy', nginx)
}
