// Runs nginx on this host in the foreground, with the template and the settings of the container image. It stops as the
// container does, within PROXY_SHUTDOWN_TIMEOUT.
import { execFileSync, type StdioOptions, spawn } from 'node:child_process'
import { once } from 'node:events'
import { accessSync, constants, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { delimiter, join, resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { readSettings, renderTemplate } from './proxy/settings.ts'
import { type Given, runCommand } from './support/command.ts'

const certificatesScript = fileURLToPath(new URL('../scripts/certificates', import.meta.url))

const usage = `Usage: keycast proxy [options]

Runs nginx with TLS in front of gateways on this or other hosts. Needs nginx 1.22 or later and openssl, but not root;
with nginx 1.25.5 and its stream module one address cannot hold all connections.

  --gateway HOST:PORT   a gateway; once for each                 PROXY_GATEWAYS      (127.0.0.1:8080)
  --host ADDRESS        address to listen on; once for each      PROXY_HOST          (127.0.0.1)
  --http-port PORT      redirects to HTTPS                       PROXY_HTTP_PORT     (8000)
  --https-port PORT     serves clients                           PROXY_HTTPS_PORT    (8443)
  --public-port PORT    the HTTPS port that clients use, if      PROXY_PUBLIC_PORT   (as --https-port)
                        another is forwarded here
  --exempt CIDR         clients without limits; once for each    PROXY_EXEMPT        (none)
  --certificates DIR    holds fullchain.pem and privkey.pem; in  PROXY_CERTIFICATES  (DIRECTORY/certificates)
                        an empty one a self-signed pair is made
  --directory DIR       configuration, certificate and logs; each proxy needs its own (proxy/run)
  --settings FILE       lines of PROXY_…=value, read again at SIGHUP
  --help

Each option sets the variable beside it; proxy/settings.sh has further ones. Options override the file, and the file
overrides the environment.
SIGHUP reads settings and certificate again and starts new workers; SIGUSR1 reopens the logs; SIGTERM, SIGINT and
SIGQUIT stop gracefully.

Exits with nginx's own code, or with 2 when settings, certificate or nginx itself are missing or wrong.`

const options = {
  gateway: { type: 'string', multiple: true },
  host: { type: 'string', multiple: true },
  'http-port': { type: 'string' },
  'https-port': { type: 'string' },
  'public-port': { type: 'string' },
  exempt: { type: 'string', multiple: true },
  certificates: { type: 'string' },
  directory: { type: 'string', default: fileURLToPath(new URL('../proxy/run', import.meta.url)) },
  settings: { type: 'string' },
} as const

async function serve(values: Given<typeof options>['values']) {
  const nginx = findNginx()
  const directory = resolve(values.directory)
  const configuration = join(directory, 'nginx.conf')
  const pidFile = join(directory, 'nginx.pid')
  /** @param file of the configuration */
  const inDirectory = (file: string) => ['-p', directory, '-e', 'stderr', '-c', file]

  const given = {
    options: {
      PROXY_GATEWAYS: values.gateway?.join(' '),
      PROXY_HOST: values.host?.join(' '),
      PROXY_HTTP_PORT: values['http-port'],
      PROXY_HTTPS_PORT: values['https-port'],
      PROXY_PUBLIC_PORT: values['public-port'],
      PROXY_EXEMPT: values.exempt?.join(' '),
      PROXY_CERTIFICATES: values.certificates && resolve(values.certificates),
    },
    file: values.settings,
    environment: process.env,
  }
  /** @param file the configuration is written to it */
  const configure = (file: string) => {
    const settings = readSettings(given, directory, nginx)
    ensureCertificate(settings)
    writeFileSync(file, renderTemplate(settings))
    return settings
  }
  const reload = () => {
    const next = `${configuration}.new`
    try {
      const changed = configure(next)
      const stdio: StdioOptions = ['ignore', 'ignore', 'inherit']
      execFileSync(nginx, [...inDirectory(next), '-q', '-t'], { cwd: directory, stdio })
      renameSync(next, configuration)
      settings = changed
      server.kill('SIGHUP')
    } catch (error) {
      console.error(`proxy: not reloaded, nginx keeps its former settings: ${(error as Error).message}`)
    }
  }

  // nginx itself would wait PROXY_RELOAD_TIMEOUT for WebSockets to leave.
  const stop = () => {
    server.kill('SIGQUIT')
    const patienceMs = Number.parseInt(settings.PROXY_SHUTDOWN_TIMEOUT, 10) * 1_000
    setTimeout(() => server.kill('SIGTERM'), patienceMs).unref()
  }

  // Until nginx runs, the signal would end this process, or nginx: it comes to it later.
  let isReloadDue = false
  let onHangUp = () => {
    isReloadDue = true
  }
  process.on('SIGHUP', () => onHangUp())

  mkdirSync(directory, { recursive: true })
  refuseSecond(directory, pidFile)
  let settings = configure(configuration)
  // Left by one that was killed.
  const sockets = ['http', 'https', 'told-http', 'told-https'].map(name => join(directory, `${name}.sock`))
  for (const file of [pidFile, ...sockets]) rmSync(file, { force: true })
  if (settings.PROXY_STREAM !== 'on') console.error(`proxy: ${settings.PROXY_NO_STREAM}`)

  const server = spawn(nginx, [...inDirectory(configuration), '-g', 'daemon off;'], {
    cwd: directory, // of its sockets
    stdio: ['ignore', 'ignore', 'inherit'],
    detached: true, // Ctrl-C must reach this process alone, which turns it into a graceful stop
  })
  const exited = once(server, 'exit')
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGQUIT'] as const) {
    process.on(signal, stop)
  }
  // Would start Node's debugger, and end an nginx that does not listen to it yet, and opens its logs by itself.
  process.on('SIGUSR1', () => existsSync(pidFile) && server.kill('SIGUSR1'))

  // Written once the ports are bound.
  const running = () => server.exitCode === null && server.signalCode === null
  while (!existsSync(pidFile) && running()) await delay(20)
  if (running()) {
    const address = settings.PROXY_HOST.split(/ +/)[0]
    console.log(
      `proxy: https://${/^[^[].*:/.test(address) ? `[${address}]` : address}:${settings.PROXY_HTTPS_PORT} in front of ${settings.PROXY_GATEWAYS}; logs in ${directory}`,
    )
    onHangUp = reload
    if (isReloadDue) reload()
  }
  const [code, signal] = await exited
  if (signal) {
    console.error(`proxy: nginx was ended by ${signal}`)
    endWorkers(server.pid as number)
  }
  return code ?? 1
}

export const run = (args: string[]) =>
  runCommand({ name: 'keycast proxy', usage, options }, ({ values }) => serve(values), args)

/**
 * Workers outlive a master that was killed, and hold the ports: the next nginx would not start.
 *
 * @param master leader of the process group
 */
function endWorkers(master: number) {
  try {
    process.kill(-master, 'SIGKILL')
  } catch {
    // none is left
  }
}

/** @returns the path of nginx, which often lies outside an ordinary user's PATH */
function findNginx(): string {
  const folders = `${process.env.PATH ?? ''}${delimiter}/usr/sbin${delimiter}/usr/local/sbin`.split(delimiter)
  for (const folder of folders) {
    try {
      accessSync(join(folder, 'nginx'), constants.X_OK)
      return join(folder, 'nginx')
    } catch {
      // the next folder
    }
  }
  throw new Error('nginx is missing: install it, on Debian with "apt-get install nginx-light"')
}

/** @throws {Error} after the script said why */
function ensureCertificate({ PROXY_CERTIFICATES, PROXY_NAMES }: Record<string, string>) {
  try {
    execFileSync(certificatesScript, [PROXY_CERTIFICATES, ...PROXY_NAMES.split(/ +/)], {
      stdio: ['ignore', 'ignore', 'inherit'],
    })
  } catch {
    throw new Error('no certificate to serve with: see the lines above')
  }
}

/**
 * If this script was killed, its nginx still runs with the old settings and holds the ports.
 *
 * @throws {Error} tells how to end it
 */
function refuseSecond(directory: string, pidFile: string) {
  const pid = Number(contentOf(pidFile))
  const title = pid > 0 ? contentOf(`/proc/${pid}/cmdline`) : ''
  if (title.startsWith('nginx: master') && title.includes(` ${directory} `)) {
    throw new Error(`nginx ${pid} already runs in ${directory}. End it with: kill -QUIT ${pid}`)
  }
}

function contentOf(file: string) {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}
