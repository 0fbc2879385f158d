import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { readListenProblem } from './listen-problem.ts'
import { readSettings, setting } from './settings/settings.ts'

const settings = {
  host: setting.host({ env: 'GATEWAY_HOST', default: '127.0.0.1', doc: '' }),
  port: setting.port({ env: 'GATEWAY_PORT', default: 8080, doc: '' }),
  internalHost: setting.host({ env: 'GATEWAY_INTERNAL_HOST', default: '127.0.0.1', doc: '' }),
  internalPort: setting.port({ env: 'GATEWAY_INTERNAL_PORT', default: 8081, doc: '' }),
}

const problemWith = (env: Record<string, string> = {}) => {
  const config = readSettings(settings, { name: 'test', about: '', env })
  return readListenProblem(settings, config, [
    ['host', 'port'],
    ['internalHost', 'internalPort'],
  ])
}

/** Node's error. */
async function listen(host: string, port: number) {
  const server = createServer().listen(port, host)
  const [error] = await Promise.race([once(server, 'error'), once(server, 'listening')])
  return { server, error }
}

test('a port in use is named with its setting, and the other listener is not', async () => {
  const { server } = await listen('127.0.0.1', 0)
  const { port } = server.address() as AddressInfo
  const { error } = await listen('127.0.0.1', port)
  server.close()
  expect(problemWith({ GATEWAY_INTERNAL_PORT: String(port) })(error)).toBe(
    `GATEWAY_INTERNAL_PORT=${port}: 127.0.0.1:${port} is in use: stop what uses it, or set another port`,
  )
})

test('two settings that ask for one port are both named', () => {
  const error = Object.assign(new Error('listen'), { code: 'EADDRINUSE', address: '127.0.0.1', port: 8080 })
  expect(problemWith({ GATEWAY_INTERNAL_PORT: '8080' })(error)).toBe(
    'GATEWAY_PORT=8080 and GATEWAY_INTERNAL_PORT=8080: 127.0.0.1:8080 is in use: stop what uses it, or set another port',
  )
})

test('an address that this host has not is named with its setting', async () => {
  // RFC 5737: no host has it.
  const { error } = await listen('192.0.2.1', 8081)
  expect(problemWith({ GATEWAY_INTERNAL_HOST: '192.0.2.1' })(error)).toBe(
    'GATEWAY_INTERNAL_HOST=192.0.2.1: this host has no address 192.0.2.1: set one that it has, or 0.0.0.0 for all',
  )
})

test('a name without an address is named with its setting', () => {
  const error = Object.assign(new Error('getaddrinfo'), { code: 'ENOTFOUND', hostname: 'nowhere.invalid' })
  expect(problemWith({ GATEWAY_HOST: 'nowhere.invalid' })(error)).toBe(
    'GATEWAY_HOST=nowhere.invalid: no address of this name was found',
  )
})

test('a port that this user may not have is named with its setting', () => {
  const error = Object.assign(new Error('listen'), { code: 'EACCES', address: '127.0.0.1', port: 80 })
  expect(problemWith({ GATEWAY_PORT: '80' })(error)).toBe('GATEWAY_PORT=80: this user may not listen on 127.0.0.1:80')
})

test('an error of something else is left to its own words', () => {
  expect(problemWith()(new Error('no space left'))).toBeUndefined()
  expect(problemWith()('no error')).toBeUndefined()
  const elsewhere = Object.assign(new Error('listen'), { code: 'EADDRINUSE', address: '::1', port: 9 })
  expect(problemWith()(elsewhere)).toMatch(/^::1:9 is in use/)
})
