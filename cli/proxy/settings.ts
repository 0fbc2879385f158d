// The proxy's settings on a host: those of the image, with defaults that suit a host, and the template filled in with them.
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseEnv } from 'node:util'

const proxyFolder = fileURLToPath(new URL('../../proxy/', import.meta.url))
const settingsScript = join(proxyFolder, 'settings.sh')

/** Settings by name; an empty one counts as not given. */
type Given = Record<string, string | undefined>

interface SettingsGiven {
  /** From the command line; they go first. */
  options: Given
  /** Lines of NAME=value; they go before the environment. */
  file: string | undefined
  environment: Given
}

/**
 * @param directory the proxy's own
 * @param nginx the program that is to run
 * @returns every variable of the template
 * @throws {Error} names every setting that cannot be used
 */
export function readSettings(
  { options, file, environment }: SettingsGiven,
  directory: string,
  nginx = 'nginx',
): Record<string, string> {
  const given = { ...known(environment), ...present(fileSettings(file)), ...present(options) }
  const chosen = {
    PROXY_GATEWAYS: '127.0.0.1:8080',
    PROXY_RESOLVER: 'off',
    PROXY_HOST: '127.0.0.1',
    PROXY_HTTP_PORT: '8000',
    PROXY_HTTPS_PORT: '8443',
    PROXY_METRICS_HOST: '127.0.0.1',
    PROXY_METRICS_PORT: '0',
    PROXY_PUBLIC_PORT: given.PROXY_HTTPS_PORT ?? '8443',
    PROXY_CERTIFICATES: join(directory, 'certificates'),
    PROXY_ACCESS_LOG: join(directory, 'access.log'),
    ...given,
  }
  const script = '. "$0"; exec env -0'
  try {
    const output = execFileSync('/bin/sh', ['-euc', script, settingsScript], {
      encoding: 'utf8',
      env: { PATH: process.env.PATH, NGINX: nginx, ...chosen },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const lines = output.split('\0').filter(Boolean)
    return Object.fromEntries(lines.map(line => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]))
  } catch (error) {
    throw new Error((error as { stderr?: string }).stderr?.trim() || String(error))
  }
}

/** @returns what envsubst makes of the template in the container */
export function renderTemplate(settings: Record<string, string>): string {
  const files = ['nginx.conf.template', ...(settings.PROXY_STREAM === 'on' ? ['stream.conf.template'] : [])]
  const template = files.map(file => readFileSync(join(proxyFolder, file), 'utf8')).join('')
  return template.replace(/\$\{(PROXY_\w+)\}/g, (_, name) => settings[name])
}

/** @throws {Error} where it cannot be read, or names what is no setting */
function fileSettings(file: string | undefined): Given {
  if (file === undefined) return {}
  const settings = parseEnv(readFileSync(file, 'utf8'))
  const unknown = Object.keys(settings).filter(name => !names().includes(name))
  if (unknown.length > 0) throw new Error(`${file}: the proxy has no setting ${unknown.join(', ')}`)
  return settings
}

function known(environment: Given): Record<string, string> {
  return present(Object.fromEntries(names().map(name => [name, environment[name]])))
}

function names() {
  return [...readFileSync(settingsScript, 'utf8').matchAll(/^setting (PROXY_\w+)/gm)].map(([, name]) => name)
}

function present(given: Given): Record<string, string> {
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined && value !== '')) as Record<
    string,
    string
  >
}
