// The client library against a whole Keycast: an application always ends with the backend's content, whatever happens.
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { type ConnectOptions, connect, type Keycast } from '@keycast/client'
import { SignJWT } from 'jose'
import { WebSocketServer } from 'ws'
import { answers, type Backend, startBackend } from '../support/backend.ts'
import { atEnd } from '../support/cleanup.ts'
import { within } from '../support/deadline.ts'
import { show } from '../support/figures.ts'
import { type NamespaceSettings, writeConfig } from '../support/keycast-yaml.ts'
import { PATIENCE, type System, startSystem } from '../support/system.ts'
import { WebSocket } from '../support/websocket.ts'

let backend: Backend
let system: System

let namespaces: Record<string, NamespaceSettings>

beforeAll(async () => {
  backend = await startBackend()
  namespaces = { doc: { url: `${backend.origin}/doc/{id}`, refresh: '100ms', timeout: PATIENCE } }
  system = await startSystem({ namespaces })
})

/** A conversation that grows: what is new is small beside the whole. */
const conversation = (revision: number) => ({
  revision,
  lines: Array.from(
    { length: 40 },
    (_, n) => `line ${n} of what was said: ${n === revision % 40 ? revision : 'hello'}`,
  ),
})

const publish = (id: string, revision: number) =>
  backend.on(`/doc/${id}`, answers.json(JSON.stringify(conversation(revision))))

/** A client whose next connection goes wherever `route` leads then, as through a load balancer. */
function startClient(route: { url: string }, options: ConnectOptions = {}) {
  const counts = { deltas: 0, values: 0, connections: 0 }
  const sent: any[] = []
  class Routed extends WebSocket {
    constructor(_: string, protocol: string) {
      super(route.url, protocol, { perMessageDeflate: false })
      counts.connections += 1
      this.addEventListener('message', ({ data }) => {
        if (typeof data === 'string') return
        const bytes = Buffer.from(data as ArrayBuffer)
        const { type, id } = JSON.parse(bytes.toString('utf8', 0, bytes.indexOf(10)))
        if (type === 'delta') counts.deltas += 1
        else if (id === undefined) counts.values += 1
      })
    }
    send(text: any) {
      sent.push(JSON.parse(text))
      super.send(text)
    }
  }
  const keycast = connect('ws://somewhere/ws', {
    WebSocket: Routed,
    // Waits that are short by chance: how long they are is tested elsewhere.
    environment: { random: () => Math.random() / 10 },
    ...options,
  })
  atEnd(() => keycast.close())
  return { keycast, counts, sent }
}

/** Follows a key, and fails where a revision goes back or a content is not whole. */
function follow(keycast: Keycast, key: string) {
  const handle = keycast.value(key)
  const revisions: number[] = []
  const problems: string[] = []
  const waiters = new Set<() => void>()
  handle.on('change', ({ value, version }) => {
    if (version === undefined) return
    const last = revisions.at(-1) ?? -1
    if (value.revision < last) problems.push(`${key} went back from ${last} to ${value.revision}`)
    if (JSON.stringify(value) !== JSON.stringify(conversation(value.revision))) problems.push(`${key} is not whole`)
    if (value.revision > last) revisions.push(value.revision)
    for (const wake of waiters) wake()
  })
  return {
    handle,
    revisions,
    problems,
    async reaches(revision: number) {
      const met = new Promise(resolve => {
        const wake = () => (revisions.at(-1) ?? -1) >= revision && resolve(undefined)
        waiters.add(wake)
        wake()
      })
      await within(met, () => `revision ${revision} of ${key}, which is at ${revisions.at(-1)},`)
    },
  }
}

async function stateOf(keycast: Keycast, name: string) {
  const met = new Promise(resolve => keycast.on('state', state => state.name === name && resolve(undefined)))
  await within(met, `the connection being ${name}`)
}

test('every change arrives, most as a delta; a get and other content come, too', async () => {
  const { keycast, counts } = startClient(system.gateways[0])
  publish('1', 0)
  const followed = follow(keycast, 'doc:1')
  await followed.reaches(0)
  for (let revision = 1; revision <= 20; revision += 1) {
    publish('1', revision)
    await followed.reaches(revision)
  }
  expect(followed.revisions).toEqual(Array.from({ length: 21 }, (_, n) => n))
  expect(followed.problems).toEqual([])
  expect(counts.deltas).toBeGreaterThan(10)
  show(`21 versions: ${counts.values} whole, ${counts.deltas} as deltas`)

  expect(await keycast.get('doc:1')).toEqual(conversation(20))
  backend.on('/doc/text', answers.content('héllo', 'text/plain; charset=utf-8'))
  backend.on('/doc/image', answers.content(Buffer.from([0, 255, 10]), 'image/png'))
  expect(await keycast.get('doc:text')).toBe('héllo')
  expect([...(await keycast.get('doc:image'))]).toEqual([0, 255, 10])
  await expect(keycast.get('doc:absent')).rejects.toMatchObject({ code: 'not_found', key: 'doc:absent' })
  await expect(keycast.get('nowhere:1')).rejects.toMatchObject({ code: 'unknown_namespace' })
  keycast.close()
})

test('a gateway that is killed and replaced loses nothing: keys are resumed by version, and none goes back', async () => {
  let gateway = await system.startGateway()
  const route = { url: gateway.url }
  const { keycast, counts, sent } = startClient(route)
  const ids = Array.from({ length: 10 }, (_, n) => `killed-${n}`)
  for (const id of ids) publish(id, 0)
  const followed = ids.map(id => follow(keycast, `doc:${id}`))
  for (const one of followed) await one.reaches(0)

  for (let round = 1; round <= 3; round += 1) {
    for (const id of ids) publish(id, round * 10)
    for (const one of followed) await one.reaches(round * 10)
    await gateway.process.kill()
    await stateOf(keycast, 'waiting')
    // Every second key changes while nobody is connected.
    for (const [n, id] of ids.entries()) if (n % 2) publish(id, round * 10 + 5)
    gateway = await system.startGateway()
    route.url = gateway.url
    await stateOf(keycast, 'open')
    for (const [n, one] of followed.entries()) await one.reaches(round * 10 + (n % 2 ? 5 : 0))
    const resumed = sent.findLast(({ type }) => type === 'subscribe')
    const held = { version: expect.any(String), order: expect.any(Number) }
    expect(resumed.keys).toEqual(ids.map(id => ({ key: `doc:${id}`, ...held })))
  }
  for (const id of ids) publish(id, 99)
  for (const one of followed) await one.reaches(99)
  expect(followed.flatMap(({ problems }) => problems)).toEqual([])
  for (const { handle } of followed) expect(handle.state).toMatchObject({ stale: false, error: undefined })
  show(`${counts.connections} connections, ${counts.values} values whole, ${counts.deltas} deltas`)
  keycast.close()
})

test('a gateway that is stopped is left as it asks, and the next one goes on from what is held', async () => {
  const stopped = await system.startGateway()
  const route = { url: stopped.url }
  const { keycast, sent } = startClient(route)
  publish('moved', 1)
  const followed = follow(keycast, 'doc:moved')
  await followed.reaches(1)
  route.url = system.gateways[0].url
  const left = new Promise(resolve => keycast.on('state', ({ name }) => name === 'connecting' && resolve(undefined)))
  stopped.process.signal('SIGTERM')
  await within(left, 'a new connection')
  await stateOf(keycast, 'open')
  publish('moved', 2)
  await followed.reaches(2)
  expect(sent.filter(({ type }) => type === 'subscribe')).toMatchObject([
    { keys: ['doc:moved'] },
    { keys: [{ key: 'doc:moved', version: expect.any(String) }] },
  ])
  expect(followed).toMatchObject({ revisions: [1, 2], problems: [] })
  keycast.close()
})

const command = fileURLToPath(new URL('../../packages/client/bin/keycast.js', import.meta.url))

test.each(['SIGINT', 'SIGTERM'] as const)('the command prints what it sees, until %s', async signal => {
  const [{ url }] = system.gateways
  const id = `shown-${signal}`
  publish(id, 1)
  const child = spawn(process.execPath, [command, 'watch', `doc:${id}`, '--url', url], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  atEnd(() => child.kill('SIGKILL'))
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]()
  /** The first line of a revision. There are others where the value is stale for a while. */
  async function lineOf(revision: number) {
    for (;;) {
      const { value: line, done } = await within(lines.next(), `a line of revision ${revision}`)
      if (done) throw new Error(`the command ended before revision ${revision}`)
      const shown = JSON.parse(line)
      if (shown.value?.revision === revision) return shown
    }
  }
  expect(await lineOf(1)).toMatchObject({ key: `doc:${id}`, value: conversation(1), stale: false })
  publish(id, 2)
  expect(await lineOf(2)).toMatchObject({ key: `doc:${id}`, value: conversation(2) })
  child.kill(signal)
  expect(await within(once(child, 'close'), 'the end of the command')).toEqual([0, null])
})

test('the command ends where the gateway does not answer its close', async () => {
  const mute = new WebSocketServer({ host: '127.0.0.1', port: 0 })
  atEnd(() => {
    for (const socket of mute.clients) socket.terminate()
    mute.close()
  })
  mute.on('connection', socket => socket.pause())
  await once(mute, 'listening')
  const url = `ws://127.0.0.1:${(mute.address() as AddressInfo).port}/ws`
  const child = spawn(process.execPath, [command, 'get', 'doc:1', '--timeout', '1', '--url', url], {
    stdio: 'ignore',
  })
  atEnd(() => child.kill('SIGKILL'))
  expect(await within(once(child, 'close'), 'the end of the command')).toEqual([1, null])
})

test('tokens are renewed again and again without a change lost; one that is refused ends the client', async () => {
  const JWT_SECRET = randomBytes(48).toString('base64')
  const access = { tokens: [{ secret: `\${JWT_SECRET}`, algorithms: ['HS256'] }] }
  const closed = await system.startGateway({
    KEYCAST_CONFIG: writeConfig(namespaces, access),
    JWT_SECRET,
  })
  let read = ['doc:*']
  let given = 0
  const token = () => {
    given += 1
    const nowSeconds = Math.floor(Date.now() / 1_000)
    const jwt = new SignJWT({ keys: { read } }).setProtectedHeader({ alg: 'HS256' }).setSubject('ann')
    return jwt
      .setIssuedAt(nowSeconds)
      .setExpirationTime(nowSeconds + 3)
      .sign(Buffer.from(JWT_SECRET))
  }
  const { keycast, counts } = startClient(closed, { token })
  for (const id of ['mine', 'other']) publish(id, 0)
  const mine = follow(keycast, 'doc:mine')
  const other = follow(keycast, 'doc:other')
  await mine.reaches(0)
  await other.reaches(0)
  expect(keycast.state).toMatchObject({ name: 'open', user: 'ann' })
  for (let revision = 1; given < 4; revision += 1) {
    publish('mine', revision)
    await mine.reaches(revision)
  }
  expect(counts.connections).toBe(1)
  expect(mine.problems).toEqual([])

  read = ['doc:mine']
  await within(
    new Promise(resolve => other.handle.on('change', ({ error }) => error?.code === 'forbidden' && resolve(undefined))),
    'the end of what is no longer granted',
  )
  const last = mine.revisions.at(-1) ?? 0
  publish('mine', last + 1)
  await mine.reaches(last + 1)

  const stranger = startClient(closed, { token: 'nonsense' })
  await stateOf(stranger.keycast, 'closed')
  expect(stranger.keycast.state).toMatchObject({ code: 'token_refused' })
})
