#!/usr/bin/env node
// Drives a running system as a client does and prints each check: run it after a deployment.
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { connect, createChecks, readTimeout, readUrl } from './support/client.js'
import { runCommand } from './support/command.js'

const usage = `Usage: node scripts/smoke.js [--url URL] [--key KEY] [--no-change] [--timeout SECONDS] [--insecure]

Connects to a running Keycast as a client, checks what a client relies on, and prints each check.

  --url URL          where clients connect                (default ws://127.0.0.1:8080; behind the proxy wss://HOST)
  --key KEY          a key that has a value               (default conversation:smoke, of the simulated backend)
  --no-change        do not wait for the key to change
  --timeout SECONDS  for each check                       (default 20)
  --insecure         accept any certificate; on localhost any is accepted anyway

Exits with 0 when every check passed, with 1 when one failed, with 2 when the options are wrong.`

/**
 * @typedef {import('./support/client.js').Target & { key: string, changes: boolean, timeoutMs: number }} Target
 * @typedef {import('node:http').IncomingMessage & { body: Buffer }} Response
 */

/** @param {Target} target */
async function smoke({ url, key, changes, timeoutMs, insecure }) {
  const { check, conclude } = createChecks(timeoutMs)

  /** @param {string} path @param {Record<string, string>} [headers] @returns {Promise<Response>} */
  async function get(path, headers = {}) {
    const request = url.protocol === 'wss:' ? requestHttps : requestHttp
    const { hostname, port } = url
    const sent = request({ hostname, port, path, headers, rejectUnauthorized: !insecure }).end()
    const [response] = await once(sent, 'response')
    const parts = []
    for await (const part of response) parts.push(part)
    return Object.assign(response, { body: Buffer.concat(parts) })
  }

  /** @type {Awaited<ReturnType<typeof connect>> | undefined} */
  let client
  /** @type {any} */
  let value

  const connected = await check('a client is welcomed at /ws', async () => {
    client = await connect({ url, insecure })
    const welcome = await client.next(({ type }) => type === 'welcome')
    return `session ${welcome.session}`
  })
  if (connected && client) {
    const { send, next } = client
    await check(`a subscription to ${key} brings its value`, async () => {
      send({ type: 'subscribe', id: 1, keys: [key] })
      await next(({ type, id }) => type === 'subscribed' && id === 1)
      value = await next(({ type, key: of }) => of === key && (type === 'value' || type === 'error'))
      if (value.type === 'error') throw new Error(`${value.code}: ${value.message}`)
      return `${value.bytes} bytes`
    })
    await check('a get with that version is answered current', async () => {
      send({ type: 'get', id: 2, key, version: value?.version })
      const answer = await next(({ id }) => id === 2)
      if (!['current', 'value'].includes(answer.type)) throw new Error(`got ${JSON.stringify(answer).slice(0, 200)}`)
      return answer.type === 'current' ? undefined : 'the value changed meanwhile'
    })
    if (changes) {
      await check('a change is pushed', async () => {
        const { version } = await next(
          ({ type, key: of, version }) => type === 'value' && of === key && version !== value.version,
        )
        return `version ${version}`
      })
    }
    await check('a key that breaks the grammar is refused', async () => {
      send({ type: 'get', id: 3, key: `${key.split(':')[0]}:../../etc` })
      const { code } = await next(({ id }) => id === 3)
      if (code !== 'bad_key') throw new Error(`got ${code}`)
      return code
    })
    await check('after unsubscribe nothing but the answer to a ping arrives', async () => {
      send({ type: 'unsubscribe', id: 4, keys: [key] })
      await next(({ type, id }) => type === 'ok' && id === 4)
      send({ type: 'ping', id: 5 })
      const answer = await next(() => true)
      if (answer.type !== 'pong') throw new Error(`got ${answer.type}`)
      return undefined
    })
    client.close()
  }

  await check('GET /v1/values gives the value, and 304 for its ETag', async () => {
    const path = `/v1/values/${key}`
    const { statusCode, headers, body } = await get(path)
    if (statusCode !== 200) throw new Error(`HTTP ${statusCode}: ${body.toString().slice(0, 200)}`)
    const version = createHash('sha256').update(body).digest().toString('base64url', 0, 16)
    if (headers.etag !== `"${version}"`) throw new Error(`the ETag ${headers.etag} does not match the content`)
    const again = await get(path, { 'if-none-match': String(headers.etag) })
    if (again.statusCode !== 304 && again.headers.etag === headers.etag) throw new Error(`HTTP ${again.statusCode}`)
    return `${body.length} bytes`
  })
  await check('the page at / has a content security policy', async () => {
    const { statusCode, headers } = await get('/')
    if (statusCode !== 200 || !headers['content-security-policy']) throw new Error(`HTTP ${statusCode}`)
    return undefined
  })
  await check('the internal paths cannot be reached here', async () => {
    for (const path of ['/metrics', '/health/ready', `/v1/keys/${key}`]) {
      const { statusCode } = await get(path)
      if (statusCode !== 404) throw new Error(`${path} is answered with HTTP ${statusCode}, not 404`)
    }
    return undefined
  })
  return conclude()
}

const options = /** @type {const} */ ({
  url: { type: 'string', default: 'ws://127.0.0.1:8080' },
  key: { type: 'string', default: 'conversation:smoke' },
  'no-change': { type: 'boolean', default: false },
  timeout: { type: 'string', default: '20' },
  insecure: { type: 'boolean', default: false },
})

await runCommand({ name: 'smoke', usage, options }, ({ values: { url, key, timeout, insecure, ...rest } }) =>
  smoke({ ...readUrl(url, insecure), key, changes: !rest['no-change'], timeoutMs: readTimeout(timeout) }),
)
