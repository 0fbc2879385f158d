// Drives a running system with the client library and prints each check: run it after a deployment.
import { once } from 'node:events'
import { type IncomingMessage, request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { connect, type Keycast, KeycastError, type ValueHandle, type ValueState } from '@keycast/client'
import { versionOf } from '@keycast/protocol'
import { WebSocket } from 'ws'
import { checkRooms } from './smoke/rooms.ts'
import { bearer, createChecks, readTimeout, readUrl, type Target as TargetOf } from './support/client.ts'
import { runCommand } from './support/command.ts'
import { keyPath } from './support/key-path.ts'

const usage = `Usage: keycast smoke [--url URL] [--key KEY] [--no-change] [--room ROOM] [--no-room]
       [--timeout SECONDS] [--insecure]

Connects to a running Keycast as a client, checks what a client relies on, and prints each check.

  --url URL          where clients connect                (default ws://127.0.0.1:8080; behind the proxy wss://HOST)
  --key KEY          a key that has a value               (default conversation:smoke, of the simulated backend)
  --no-change        do not wait for the key to change
  --room ROOM        a room to publish into               (default room:smoke, of the shipped keycast.yaml)
  --no-room          publish nothing
  --timeout SECONDS  for each check                       (default 20)
  --insecure         accept any certificate; on localhost any is accepted anyway

KEYCAST_TOKEN in the environment is the token, where keycast.yaml lets nobody in without one: it must grant reading KEY,
and reading and publishing into ROOM.

Exits with 0 when every check passed, with 1 when one failed, with 2 when the options are wrong.`

type Target = TargetOf & { key: string; changes: boolean; room: string | undefined; timeoutMs: number }
type Response = IncomingMessage & { body: Buffer }

async function smoke({ url, key, changes, room, timeoutMs, insecure, token }: Target) {
  const { check, conclude } = createChecks(timeoutMs)
  const client = openClient({ url, insecure, token })
  const { keycast } = client
  const doc = keycast.value(key)

  async function get(path: string, headers: Record<string, string> = {}): Promise<Response> {
    const request = url.protocol === 'wss:' ? requestHttps : requestHttp
    const { hostname, port } = url
    const all = { ...headers, ...bearer(token) }
    const sent = request({ hostname, port, path, headers: all, rejectUnauthorized: !insecure }).end()
    const [response] = await once(sent, 'response')
    const parts = []
    for await (const part of response) parts.push(part)
    return Object.assign(response, { body: Buffer.concat(parts) })
  }

  let version: string | undefined
  const isOpen = await check('a client is welcomed at /ws', async signal => {
    const { session } = await opened(keycast, signal)
    return `session ${session}`
  })
  if (isOpen) {
    await check(`a subscription to ${key} brings its value`, async signal => {
      const state = await reached(doc, state => state.version !== undefined || state.error !== undefined, signal)
      if (state.error) throw new Error(`${state.error.code}: ${state.error.message}`)
      version = state.version
      return `${state.sizeBytes} bytes`
    })
    await check('a get gives a value', async signal => {
      if ((await keycast.get(key, { signal })) === undefined) throw new Error('got nothing')
      return undefined
    })
    if (changes) {
      await check('a change is pushed', async signal => {
        const before = client.received('delta')
        const state = await reached(doc, state => state.version !== undefined && state.version !== version, signal)
        return `version ${state.version}${client.received('delta') > before ? ', as a delta' : ''}`
      })
    }
    await check('a key that breaks the grammar is refused', async signal => {
      const code = await keycast.get(`${key.split(':')[0]}:../../etc`, { signal }).then(
        () => 'a value',
        error => (error instanceof KeycastError ? error.code : String(error)),
      )
      if (code !== 'bad_key') throw new Error(`got ${code}`)
      return code
    })
    await check('after unsubscribe nothing of the key arrives', async signal => {
      doc.close()
      await client.unsubscribed(signal)
      const before = client.received('value') + client.received('delta')
      // Answered after whatever was sent before it.
      await keycast.get(key, { signal })
      const pushed = client.received('value') + client.received('delta') - before
      if (pushed > 1) throw new Error(`${pushed - 1} values came beside the answer to a get`)
      return undefined
    })
  }
  keycast.close()
  if (isOpen && room) await checkRooms({ url, insecure, token }, room, check)

  await check('GET /v1/values gives the value, and 304 for its ETag', async () => {
    const path = `/v1/values/${keyPath(key)}`
    const { statusCode, headers, body } = await get(path)
    if (statusCode !== 200) throw new Error(`HTTP ${statusCode}: ${body.toString().slice(0, 200)}`)
    if (headers.etag !== `"${versionOf(body, headers['content-type'])}"`)
      throw new Error(`the ETag ${headers.etag} does not match the content`)
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
    for (const path of ['/metrics', '/health/ready', `/v1/keys/${keyPath(key)}`]) {
      const { statusCode } = await get(path)
      if (statusCode !== 404) throw new Error(`${path} is answered with HTTP ${statusCode}, not 404`)
    }
    return undefined
  })
  return conclude()
}

function openClient({ url, insecure, token }: TargetOf) {
  /** The number of messages by type. */
  const counts = new Map<string, number>()
  const heard = new EventTarget()
  class Counting extends WebSocket {
    constructor(address: string, protocol: string) {
      super(address, protocol, { rejectUnauthorized: !insecure })
      this.addEventListener('message', ({ data }) => {
        const text = typeof data === 'string' ? data : new TextDecoder().decode(data as ArrayBuffer)
        const { type } = JSON.parse(text.split('\n', 1)[0])
        counts.set(type, (counts.get(type) ?? 0) + 1)
        heard.dispatchEvent(new Event(type))
      })
    }
  }
  return {
    keycast: connect(new URL('/ws', url), { WebSocket: Counting, token }),
    received: (type: string) => counts.get(type) ?? 0,
    unsubscribed: (signal: AbortSignal) => once(heard, 'ok', { signal }),
  }
}

function opened(keycast: Keycast, signal: AbortSignal): Promise<{ session: string }> {
  return new Promise((resolve, reject) => {
    const remove = keycast.on('state', state => {
      if (state.name === 'open') resolve(state)
      else if (state.name === 'closed') reject(new Error(`${state.code}: ${state.reason}`))
    })
    signal.addEventListener('abort', remove)
  })
}

/** The first state of a key that fits. */
function reached(doc: ValueHandle, fits: (state: ValueState) => boolean, signal: AbortSignal): Promise<ValueState> {
  return new Promise(resolve => {
    const remove = doc.on('change', state => {
      if (!fits(state)) return
      remove()
      resolve(state)
    })
    signal.addEventListener('abort', remove)
  })
}

const options = {
  url: { type: 'string', default: 'ws://127.0.0.1:8080' },
  key: { type: 'string', default: 'conversation:smoke' },
  'no-change': { type: 'boolean', default: false },
  room: { type: 'string', default: 'room:smoke' },
  'no-room': { type: 'boolean', default: false },
  timeout: { type: 'string', default: '20' },
  insecure: { type: 'boolean', default: false },
} as const

export const run = (args: string[]) =>
  runCommand(
    { name: 'keycast smoke', usage, options },
    ({ values: { url, key, room, timeout, insecure, ...rest } }) =>
      smoke({
        ...readUrl(url, insecure),
        key,
        changes: !rest['no-change'],
        room: rest['no-room'] ? undefined : room,
        timeoutMs: readTimeout(timeout),
        token: process.env.KEYCAST_TOKEN || undefined,
      }),
    args,
  )
