// keycast.yaml changes while all services run: viewers who may read before and after notice nothing, and those who may not
// are told.
import { createHash, randomBytes } from 'node:crypto'
import { mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { SignJWT } from 'jose'
import { answers, documentOf, startBackend } from '../support/backend.ts'
import { connect } from '../support/client.ts'
import { eventually } from '../support/deadline.ts'
import { ask } from '../support/http.ts'
import { configText, type NamespaceSettings } from '../support/keycast-yaml.ts'
import { PATIENCE, startSystem } from '../support/system.ts'

/** A machine that does nothing else carries a thousand. */
const VIEWERS = 100
const CHANGES = 100
const KEYS = ['doc:1', 'doc:2', 'slow:3', 'calm:4']

const JWT_SECRET = randomBytes(48).toString('base64')
const OTHER_SECRET = randomBytes(48).toString('base64')

const backend = await startBackend()
const moved = await startBackend()
const revisions = new Map<string, number>()
for (const id of ['1', '2', '3', '4', 'x']) {
  for (const [origin, path] of [
    [backend, `/docs/${id}`],
    [backend, `/v2/${id}`],
    [moved, `/docs/${id}`],
  ] as const) {
    // Another value each time it is asked, and the same name for it at every place: an ETag says nothing elsewhere.
    origin.on(path, (request, response) => {
      const revision = (revisions.get(id) ?? 0) + 1
      revisions.set(id, revision)
      answers.json(documentOf(revision))(request, response)
    })
  }
}

const base: Record<string, NamespaceSettings> = {
  doc: { url: `${backend.origin}/docs/{id}`, refresh: '200ms', timeout: PATIENCE },
  slow: { url: `${backend.origin}/docs/{id}`, refresh: '1s', timeout: PATIENCE },
  calm: { url: `${backend.origin}/docs/{id}`, refresh: 0, timeout: PATIENCE },
  room: { source: 'journal', members: 'named' },
}
const everything = ['doc:*', 'slow:*', 'calm:*', 'room:*']
const signers = [{ secret: [`\${JWT_SECRET}`, `\${OTHER_SECRET}`], algorithms: ['HS256'] }]
const access = { anonymous: { read: everything }, tokens: signers }
const withGone = { ...base, gone: { url: `${backend.origin}/docs/{id}` } }
const accessToGone = { ...access, anonymous: { read: [...everything, '*:x'] } }

const env = { JWT_SECRET, OTHER_SECRET }
const system = await startSystem({ namespaces: base, access, gateways: 2, fetchers: 2, journals: 1, env })
const { configPath, journal } = system
const services = [
  ...system.gateways.map(({ process }) => process),
  ...system.fetchers.map(({ process }) => process),
  journal.process(),
]
const metricsOf = [
  ...system.gateways.map(({ internal }) => `${internal}/metrics`),
  ...[...system.fetchers.map(({ process }) => process), journal.process()].map(
    ({ listening }) => `http://127.0.0.1:${listening.metricsPort}/metrics`,
  ),
]

const hashOf = (text: string) => createHash('sha256').update(text).digest('hex').slice(0, 12)

/** As editors do: another file takes its place. */
function write(text: string) {
  writeFileSync(`${configPath}.new`, text)
  renameSync(`${configPath}.new`, configPath)
  return hashOf(text)
}

async function isInForce(hash: string) {
  const all = await Promise.all(metricsOf.map(async url => (await ask(url)).body.toString()))
  return all.every(body => body.includes(`_config_info{hash="${hash}"} 1`))
}

/** Every service has it, in an order that is another each time. */
async function change(namespaces: Record<string, NamespaceSettings>, given: object = access) {
  const hash = write(configText(namespaces, given))
  for (const { signal } of [...services].sort(() => Math.random() - 0.5)) signal('SIGHUP')
  await eventually(() => isInForce(hash), `the configuration ${hash}`)
}

const variant = (n: number): Record<string, NamespaceSettings> => ({
  ...base,
  doc: {
    url: [`${backend.origin}/docs/{id}`, `${backend.origin}/v2/{id}`, `${moved.origin}/docs/{id}`][n % 3],
    refresh: ['200ms', '1s', '6s'][n % 3],
    timeout: PATIENCE,
    headers: { 'x-n': String(n) },
  },
  slow: { ...base.slow, refresh: ['1s', '300ms', 0, '10s'][n % 4] },
  calm: { ...base.calm, refresh: [0, '500ms'][n % 2], timeout: [PATIENCE, '30s'][n % 2] },
  [`extra-${n % 7}`]: { url: `${backend.origin}/docs/{id}` },
})

async function viewer(url: string) {
  const client = await connect(url)
  const problems: string[] = []
  const messages: number[] = []
  client.socket.on('message', data => {
    const message = JSON.parse(data.toString())
    if (message.type === 'error' || message.type === 'stale' || message.type === 'gap') problems.push(data.toString())
    if (message.type === 'message') messages.push(message.data)
  })
  await client.subscribe([...KEYS, 'room:1'])
  for (const key of KEYS) await client.reaches(key, 1)
  return { ...client, problems, messages }
}

async function publish(data: number) {
  const message = { key: 'room:1', messageId: `message-of-room-${data}`, data }
  const { status } = await system.gateways[0].call('/v1/publish', message)
  expect(status).toBe(200)
}

const signed = (secret: string) =>
  new SignJWT({ keys: { read: ['doc:*'] } })
    .setProtectedHeader({ alg: 'HS256' })
    .setSubject('ann')
    .setIssuedAt()
    .setExpirationTime('1h')
    .sign(Buffer.from(secret))

test('through a hundred changes nobody who may read before and after sees an error, a gap or an older value', async () => {
  const urls = system.gateways.map(({ url }) => url)
  const viewers = await Promise.all(Array.from({ length: VIEWERS }, (_, n) => viewer(urls[n % urls.length])))
  for (let n = 0; n < CHANGES; n++) {
    await change(variant(n))
    await publish(n)
  }
  await change(base)
  await system.gateways[0].refresh(['calm:4'])
  const reached = new Map(KEYS.map(key => [key, (revisions.get(key.slice(-1)) ?? 0) + 1]))
  await system.gateways[0].refresh(['calm:4', 'slow:3'])
  for (const each of viewers) {
    for (const key of KEYS) await each.reaches(key, reached.get(key) as number)
    await each.until(() => each.messages.length === CHANGES, 'every message')
    expect(each.messages).toEqual(Array.from({ length: CHANGES }, (_, n) => n))
    expect(each.problems).toEqual([])
    each.close()
  }
})

test('who loses access is told, and the others go on', async () => {
  await change(withGone, accessToGone)
  const client = await connect(system.gateways[0].url)
  await client.subscribe(['doc:1', 'slow:3', 'gone:x'])
  for (const key of ['doc:1', 'slow:3', 'gone:x']) await client.reaches(key, 1)
  await change(base, { ...access, anonymous: { read: ['doc:*'] } })
  await client.until(() => client.of('slow:3').error && client.of('gone:x').error, 'the ends of both')
  expect(client.of('slow:3').error).toMatchObject({ code: 'unauthenticated', subscribed: false })
  expect(client.of('gone:x').error).toMatchObject({ subscribed: false })
  expect(await client.request({ type: 'get', key: 'slow:3' })).toMatchObject({ code: 'unauthenticated' })
  await client.reaches('doc:1', (client.of('doc:1').revision ?? 0) + 1)

  await change(withGone, accessToGone)
  await client.subscribe(['gone:x'])
  await client.until(() => client.of('gone:x').error === undefined, 'the value again')
  await change(base, accessToGone)
  await client.until(() => client.of('gone:x').error, 'the end of a namespace')
  expect(client.of('gone:x').error).toMatchObject({ code: 'unknown_namespace', subscribed: false })

  // Back again, it has the rules of now, for the keys of before as well.
  await change({ ...base, gone: { url: `${moved.origin}/docs/{id}` } }, accessToGone)
  const asked = backend.asked.length
  await client.subscribe(['gone:x'])
  await moved.until(() => moved.askedFor('/docs/x').length > 1, 'fetches from the other backend')
  expect(backend.asked.slice(asked).filter(({ path }) => path === '/docs/x')).toEqual([])
})

test('a session ends when nobody may have signed its token any more, and no other does', async () => {
  const noGone = { ...access, anonymous: { read: ['slow:*'] } }
  await change(base, noGone)
  const [kept, lost] = await Promise.all([connect(system.gateways[0].url), connect(system.gateways[0].url)])
  await kept.request({ type: 'auth', token: await signed(JWT_SECRET) })
  await lost.request({ type: 'auth', token: await signed(OTHER_SECRET) })
  await Promise.all([kept, lost].map(client => client.subscribe(['doc:1'])))
  await change(base, { ...noGone, tokens: [{ secret: [`\${JWT_SECRET}`], algorithms: ['HS256'] }] })
  expect((await lost.gone()).code).toBe(4003)
  await kept.reaches('doc:1', (kept.of('doc:1').revision ?? 0) + 1)
})

test('a file that cannot be used changes nothing, is named in the log, and a good one after it is taken over by itself', async () => {
  await change(base, { anonymous: { read: ['doc:*'] } })
  const client = await connect(system.gateways[0].url)
  await client.subscribe(['doc:1'])
  const bad = { ...base, doc: { url: 'no url', refresh: '1 fortnight' } }
  const counted = () => system.gateways[0].metric('keycast_gateway_config_refused_total')
  const before = await counted()
  const hash = write(configText(bad, { anonymous: { read: ['doc:*'] } }))
  const refusals = () => services.map(({ log }) => log().filter(({ config, why }) => config === hash && why))
  await eventually(() => refusals().every(lines => lines.length === 1), 'the refusal of every service')
  for (const [line] of refusals()) expect(line.why).toContain('namespaces.doc.refresh')
  expect(await counted()).toBe(before + 1)
  await client.reaches('doc:1', (client.of('doc:1').revision ?? 0) + 1)

  write(configText({ ...base, doc: { ...base.doc, per: 'user', credentials: 'viewer' } as any }))
  await eventually(
    () => services[0].log().some(({ why }) => why?.includes('namespaces.doc.per cannot change while services run')),
    'the refusal of what cannot change',
  )

  // As Kubernetes mounts a ConfigMap: a link to a link to a folder, of which the middle one is replaced.
  const folder = dirname(configPath)
  const text = configText(base, { anonymous: { read: ['doc:*', 'slow:*'] } })
  mkdirSync(join(folder, 'data-1'))
  writeFileSync(join(folder, 'data-1', 'keycast.yaml'), text)
  symlinkSync('data-1', join(folder, 'data'))
  symlinkSync(join('data', 'keycast.yaml'), `${configPath}.link`)
  renameSync(`${configPath}.link`, configPath)
  await eventually(() => isInForce(hashOf(text)), 'the linked file')
  const next = configText(base, { anonymous: { read: ['doc:*', 'slow:*', 'calm:*'] } })
  mkdirSync(join(folder, 'data-2'))
  writeFileSync(join(folder, 'data-2', 'keycast.yaml'), next)
  symlinkSync('data-2', join(folder, 'data.next'))
  renameSync(join(folder, 'data.next'), join(folder, 'data'))
  await eventually(() => isInForce(hashOf(next)), 'the next linked file')
})
