#!/usr/bin/env node
// Runs this host's nginx in the foreground, with the template and the settings of the container image, in front of
// gateways given by address. It stops as the container does: gracefully, within PROXY_SHUTDOWN_TIMEOUT.
import { execFileSync, spawn } from 'node:child_process'
import { accessSync, constants, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { delimiter, join, resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const proxyFolder = fileURLToPath(new URL('../proxy/', import.meta.url))
const certificatesScript = fileURLToPath(new URL('certificates', import.meta.url))

const help = `Usage: node scripts/proxy.js [options]

Starts nginx with TLS in front of gateways on this or other hosts. Needs nginx 1.22 or later and openssl, not root.

  --gateway HOST:PORT   a gateway; give one for each (127.0.0.1:8080)
  --host ADDRESS        the address to listen on (127.0.0.1)
  --http-port PORT      redirects to HTTPS (8000)
  --https-port PORT     takes clients in (8443)
  --exempt CIDR         client addresses the limits per address do not count; may be given several times
  --certificates DIR    holds fullchain.pem and privkey.pem; a self-signed pair is made in an empty one
                        (DIRECTORY/certificates)
  --directory DIR       for configuration, certificate and logs, one for each proxy (proxy/run)
  --help

Further settings come from the environment: every PROXY_… of proxy/Dockerfile, with the defaults given there.
SIGHUP reloads the certificate and starts new workers; SIGTERM, SIGINT and SIGQUIT stop gracefully.
`

/** Thrown for what the person at the terminal can mend. */
class Refusal extends Error {}

/** @returns {string} the path of nginx, which often lies outside an ordinary user's PATH */
function findNginx() {
  const folders = `${process.env.PATH ?? ''}${delimiter}/usr/sbin${delimiter}/usr/local/sbin`.split(delimiter)
  for (const folder of folders) {
    try {
      accessSync(join(folder, 'nginx'), constants.X_OK)
      return join(folder, 'nginx')
    } catch {
      // the next folder
    }
  }
  throw new Refusal('nginx is missing: install it, on Debian with "apt-get install nginx-light"')
}

/** @returns {Record<string, string>} the defaults of the image, so that both run alike */
function imageSettings() {
  const dockerfile = readFileSync(join(proxyFolder, 'Dockerfile'), 'utf8')
  return Object.fromEntries(
    [...dockerfile.matchAll(/^ENV (PROXY_\w+)="(.*)"$/gm)].map(([, name, value]) => [name, value]),
  )
}

/** How many files this user's processes may open at most. */
function openFilesMax() {
  const limit = execFileSync('/bin/sh', ['-c', 'ulimit -Hn'], { encoding: 'utf8' }).trim()
  return limit === 'unlimited' ? Number.POSITIVE_INFINITY : Number(limit)
}

/** @param {string[]} args */
function readOptions(args) {
  try {
    return parseArgs({
      args,
      options: {
        gateway: { type: 'string', multiple: true, default: ['127.0.0.1:8080'] },
        host: { type: 'string', default: '127.0.0.1' },
        'http-port': { type: 'string', default: '8000' },
        'https-port': { type: 'string', default: '8443' },
        exempt: { type: 'string', multiple: true, default: [] },
        certificates: { type: 'string' },
        directory: { type: 'string', default: join(proxyFolder, 'run') },
        help: { type: 'boolean', default: false },
      },
    }).values
  } catch (error) {
    throw new Refusal(`${/** @type {Error} */ (error).message}\n\n${help}`)
  }
}

/**
 * The template's variables on this host.
 *
 * @param {ReturnType<typeof readOptions>} options
 * @returns {Record<string, string>}
 */
function hostSettings(options) {
  const directory = resolve(options.directory)
  const image = imageSettings()
  const openFiles = Math.min(Number(image.PROXY_OPEN_FILES), openFilesMax())
  return {
    ...image,
    PROXY_OPEN_FILES: String(openFiles),
    // Some files are no connections: logs, listening sockets, the workers' own.
    PROXY_WORKER_CONNECTIONS: String(Math.min(Number(image.PROXY_WORKER_CONNECTIONS), openFiles - 64)),
    PROXY_ACCESS_LOG: join(directory, 'access.log'),
    ...Object.fromEntries(Object.entries(process.env).filter(([name]) => name in image)),
    PROXY_GATEWAYS: options.gateway.map(address => `server ${address} max_fails=0;`).join(' '),
    PROXY_RESOLVER: '127.0.0.1', // never asked: addresses need no resolving
    PROXY_HOST: options.host,
    PROXY_HTTP_PORT: options['http-port'],
    PROXY_HTTPS_PORT: options['https-port'],
    PROXY_PUBLIC_PORT: options['https-port'],
    PROXY_EXEMPT: options.exempt.map(cidr => `${cidr} 1;`).join(' '),
    PROXY_CERTIFICATES: resolve(options.certificates ?? join(directory, 'certificates')),
  }
}

/** @param {Record<string, string>} settings @returns {string} what envsubst makes of the template in the container */
function renderTemplate(settings) {
  const template = readFileSync(join(proxyFolder, 'templates/nginx.conf.template'), 'utf8')
  return template.replace(/\$\{(PROXY_\w+)\}/g, (_, name) => settings[name])
}

async function main() {
  const options = readOptions(process.argv.slice(2))
  if (options.help) return console.log(help)
  const nginx = findNginx()
  const settings = hostSettings(options)
  const directory = resolve(options.directory)
  mkdirSync(directory, { recursive: true })
  try {
    execFileSync(certificatesScript, [settings.PROXY_CERTIFICATES, ...settings.PROXY_NAMES.split(' ')], {
      stdio: ['ignore', 'ignore', 'inherit'],
    })
  } catch {
    throw new Refusal('there is no certificate to serve with')
  }
  const configuration = join(directory, 'nginx.conf')
  writeFileSync(configuration, renderTemplate(settings))
  const pidFile = join(directory, 'nginx.pid')
  rmSync(pidFile, { force: true }) // left by one that was killed

  const server = spawn(nginx, ['-p', directory, '-e', 'stderr', '-c', configuration, '-g', 'daemon off;'], {
    stdio: ['ignore', 'ignore', 'inherit'],
    detached: true, // a Ctrl-C at the terminal reaches this process alone, which turns it into a graceful stop
  })
  let ended = false
  server.once('exit', (code, signal) => {
    ended = true
    if (signal) console.error(`proxy: nginx was ended by ${signal}`)
    process.exitCode = code ?? 1
  })
  for (const signal of /** @type {const} */ (['SIGTERM', 'SIGINT', 'SIGQUIT'])) {
    process.on(signal, () => server.kill('SIGQUIT'))
  }
  process.on('SIGHUP', () => server.kill('SIGHUP'))

  // Written once the ports are bound.
  while (!existsSync(pidFile) && !ended) await delay(20)
  if (ended) return
  console.log(
    `proxy: https://${settings.PROXY_HOST}:${settings.PROXY_HTTPS_PORT} in front of ${options.gateway.join(', ')}; logs in ${directory}`,
  )
}

try {
  await main()
} catch (error) {
  if (!(error instanceof Refusal)) throw error
  console.error(`proxy: ${error.message}`)
  process.exitCode = 1
}
