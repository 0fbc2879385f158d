// The systemd units of deploy/systemd: systemd itself reads them without a complaint, and they agree with the services.
import { cpSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { common, readSettings } from '@keycast/service'
import { readSettings as readProxySettings } from '../../cli/proxy/settings.ts'
import { listingsOf, read } from '../../scripts/docs/markdown.ts'
import { settings as fetcherSettings } from '../../services/fetcher/settings.ts'
import { settings as gatewaySettings } from '../../services/gateway/settings.ts'
import { settings as journalSettings } from '../../services/journal/settings.ts'
import { newFolder } from '../support/cleanup.ts'
import { run } from '../support/run.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const source = join(root, 'deploy/systemd')
const services = [
  'keycast-fetcher.service',
  'keycast-journal.service',
  'keycast-gateway@8080.service',
  'keycast-proxy.service',
]

/** systemd's own figure, 0 to 10: a service without any restriction has 9.6. In tenths, as the option takes it. */
const EXPOSURE_MAX = '20'

let folder: string

/** The units as an installation has them, but for where Node and Keycast are: systemd looks whether both are there. */
beforeAll(() => {
  folder = newFolder()
  cpSync(source, folder, { recursive: true })
  for (const file of unitFiles(folder)) {
    const text = readFileSync(file, 'utf8')
    writeFileSync(file, text.replaceAll('/usr/bin/node', process.execPath).replaceAll('/opt/keycast', root))
  }
})

const unitFiles = (directory: string) =>
  readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => join(entry.parentPath, entry.name))

/** @param file in deploy/systemd @returns what the unit gives it, line by line */
const linesOf = (file: string, key: string): string[] =>
  readFileSync(join(source, file), 'utf8')
    .split('\n')
    .filter(line => line.startsWith(`${key}=`))
    .map(line => line.slice(key.length + 1))

test('systemd reads every unit without a complaint', async () => {
  const units = ['keycast.target', ...services].map(unit => join(folder, unit))
  // Of an unknown key it only warns, and exits with 0.
  expect(await run('systemd-analyze', ['verify', '--man=no', ...units])).toEqual({ stdout: '', stderr: '' })
})

test.each(services)('%s is hardened', async service => {
  await run('systemd-analyze', ['security', '--offline=true', `--threshold=${EXPOSURE_MAX}`, '--no-pager', service], {
    env: { PATH: process.env.PATH, SYSTEMD_UNIT_PATH: folder },
  })
})

test('systemd waits longer than a service takes to stop in order', () => {
  const [text] = linesOf('keycast-.service.d/common.conf', 'TimeoutStopSec')
  const [, proxySeconds] =
    /setting PROXY_SHUTDOWN_TIMEOUT (\d+)s/.exec(readFileSync(join(root, 'proxy/settings.sh'), 'utf8')) ?? []
  expect(text).toMatch(/^\d+s$/)
  expect(Number.parseInt(text, 10) * 1_000).toBeGreaterThan(common.shutdownGraceMs.default)
  expect(Number.parseInt(text, 10)).toBeGreaterThan(Number(proxySeconds))
})

test('a service whose worker the kernel ends goes on', () => {
  expect(linesOf('keycast-.service.d/common.conf', 'OOMPolicy')).toEqual(['continue'])
  for (const service of readdirSync(source).filter(name => name.endsWith('.service'))) {
    expect(linesOf(service, 'OOMPolicy')).toEqual([])
  }
})

test('the journal keeps its log where systemd lets it write, and stops after the gateways', () => {
  const [folder] = linesOf('keycast-journal.service', 'StateDirectory')
  expect(linesOf('keycast-journal.service', 'Environment')).toEqual([`JOURNAL_DATA=/var/lib/${folder}/log`])
  expect(linesOf('keycast-gateway@.service', 'After')[0].split(' ')).toContain('keycast-journal.service')
})

test.each([
  ['gateway', 'keycast-gateway@.service'],
  ['fetcher', 'keycast-fetcher.service'],
  ['journal', 'keycast-journal.service'],
])('the %s is started as in its image', (name, unit) => {
  const dockerfile = readFileSync(join(root, 'Dockerfile'), 'utf8')
  const commands = [...dockerfile.matchAll(/^CMD (.*)$/gm)].map(([, command]) => JSON.parse(command).slice(1))
  const [started] = linesOf(unit, 'ExecStart')
  expect(commands).toContainEqual(started.split(' ').slice(1))
  expect(started).toContain(`services/${name}/main.js`)
})

test('a gateway is given as much memory as its container, and more than pm2 lets it take', () => {
  const [, inCompose] = /18,000 sessions[\s\S]*?mem_limit: (\d+)m\n/.exec(read('docker-compose.yml')) ?? []
  expect(linesOf('keycast-gateway@.service', 'MemoryMax')).toEqual([`${inCompose}M`])
  const apps = createRequire(import.meta.url)('../../ecosystem.config.cjs').apps
  const { max_memory_restart: bytes } = apps.find(({ name }: { name: string }) => name === 'gateway')
  expect(Number(inCompose)).toBeGreaterThan(bytes / 1_024 ** 2)
  const shown = Math.floor(bytes / 1_024 ** 2).toLocaleString('en')
  for (const file of ['docker-compose.yml', 'deploy/systemd/keycast-gateway@.service', 'docs/deploy/one-host.md']) {
    expect(read(file)).toContain(`${shown} MiB`)
  }
})

test('every variable a unit sets is a setting', () => {
  const known = Object.values({ ...common, ...gatewaySettings, ...fetcherSettings, ...journalSettings }).map(
    ({ env }) => env,
  )
  const files = unitFiles(source).map(file => file.slice(source.length + 1))
  const given = files.flatMap(file => linesOf(file, 'Environment')).flatMap(line => line.split(' '))
  const names = given.map(each => each.split('=')[0])
  expect(names).toEqual(expect.arrayContaining(['GATEWAY_PORT', 'JOURNAL_DATA']))
  expect(names.filter(name => !known.includes(name))).toEqual(['NODE_ENV'])
})

test('the files of docs/deploy/systemd.md are read as they stand, and open the ports that clients use', () => {
  const files = Object.fromEntries(
    listingsOf(read('docs/deploy/systemd.md')).flatMap(listing =>
      [...listing.matchAll(/^cat > \/etc\/keycast\/(\S+) <<'END'\n([\s\S]*?)^END$/gm)].map(([, name, text]) => [
        name,
        text,
      ]),
    ),
  )
  expect(Object.keys(files)).toEqual(['proxy.env', 'gateway.env'])
  const file = join(folder, 'proxy.env')
  writeFileSync(file, files['proxy.env'])
  const proxy = readProxySettings({ options: {}, file, environment: {} }, folder)
  const { PROXY_HTTP_LISTEN_LINES, PROXY_HTTPS_LISTEN_LINES, PROXY_PUBLIC_PORT } = proxy
  for (const address of ['0.0.0.0', '[::]']) {
    expect(PROXY_HTTP_LISTEN_LINES).toContain(`listen ${address}:80 `)
    expect(PROXY_HTTPS_LISTEN_LINES).toContain(`listen ${address}:443 `)
  }
  expect(PROXY_PUBLIC_PORT).toBe('443')
  const env = Object.fromEntries(
    files['gateway.env']
      .trim()
      .split('\n')
      .map(line => line.split('=')),
  )
  expect(readSettings(gatewaySettings, { name: 'gateway', about: '', env })).toMatchObject({
    trustedProxies: '10.0.0.5',
  })
  expect(Object.keys(env)).toEqual(expect.arrayContaining(['GATEWAY_HOST', 'FETCHER_NODES', 'JOURNAL_NODES']))
})
