// Compressed and plain viewers of the same keys: ws, a browser, and Python, which share no code with the compressor. Every
// value that they get hashes to the version that it came with.
import { spawn } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import WebSocket from 'ws'
import { answers, startBackend } from '../support/backend.ts'
import { launchChromium } from '../support/chromium.ts'
import { atEnd } from '../support/cleanup.ts'
import { resume, stall } from '../support/client.ts'
import { createConditions, eventually, within } from '../support/deadline.ts'
import { show } from '../support/figures.ts'
import { startSystem } from '../support/system.ts'

const CHANGES = 300

/** Changes that every viewer is sent compressed. */
const AWAITED = 20

const backend = await startBackend()
const { gateways } = await startSystem({
  namespaces: { doc: { url: `${backend.origin}/{id}`, refresh: 0, timeout: '10s', maxAge: '60s' } },
  env: { GATEWAY_COMPRESSION: 'true' },
})
const [gateway] = gateways

/** A document that is all new in each revision, and half as large compressed. */
const documentOf = (revision: number, bytes = 20_000) =>
  JSON.stringify({ revision, text: randomBytes(bytes / 2).toString('hex'), last: 'ü' })

async function change(id: string, revision: number, bytes?: number) {
  backend.on(`/${id}`, answers.json(documentOf(revision, bytes)))
  await gateway.refresh([`doc:${id}`])
}

const versionOf = (content: Buffer) => createHash('sha256').update(content).digest().toString('base64url', 0, 16)

interface Options {
  compressed: boolean
  /** Whether it speaks `keycast.v1.bytes`. */
  bytes?: boolean
}

/** A client that checks each value it is sent against its version. */
async function connect({ compressed, bytes = false }: Options) {
  const subprotocol = bytes ? 'keycast.v1.bytes' : 'keycast.v1.json'
  const socket = new WebSocket(gateway.url, subprotocol, { perMessageDeflate: compressed && { threshold: 0 } })
  atEnd(() => socket.terminate())
  const values: { revision: number; version: string }[] = []
  const answered: any[] = []
  const wrong: string[] = []
  const { look, until } = createConditions()
  socket.on('message', (message: Buffer, isBinary) => {
    const line = isBinary ? message.indexOf('\n') : -1
    const head = JSON.parse(message.toString('utf8', 0, isBinary ? line : undefined))
    if (head.type === 'value') {
      const content = isBinary
        ? message.subarray(line + 1)
        : message.subarray(message.indexOf(',"data":') + ',"data":'.length, -1)
      const { revision } = JSON.parse(content.toString())
      if (versionOf(content) !== head.version) wrong.push(`revision ${revision} is not ${head.version}`)
      if (head.id !== undefined) answered.push({ id: head.id, revision })
      else values.push({ revision, version: head.version })
    }
    look()
  })
  await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject))

  return {
    socket,
    values,
    answered,
    wrong,
    send: (message: object) => socket.send(JSON.stringify(message)),
    until,
    reaches(revision: number) {
      return until(() => values.at(-1)?.revision === revision, `revision ${revision}`)
    },
    /** All bytes that came from the wire. */
    bytesRead: () => (socket as any)._socket.bytesRead,
  }
}

const isRising = (revisions: number[]) =>
  revisions.every((revision, index) => index === 0 || revision > revisions[index - 1])

test('over hundreds of changes all viewers of a key see the same, and right, values', async () => {
  await change('mixed', 0)
  const plain = await connect({ compressed: false })
  const compressed = await Promise.all([1, 2, 3].map(() => connect({ compressed: true })))
  const bytes = await connect({ compressed: true, bytes: true })
  const all = [plain, ...compressed, bytes]
  expect(all.map(({ socket }) => socket.extensions)).toEqual(['', ...Array(4).fill('permessage-deflate')])
  for (const client of all) {
    client.send({ type: 'subscribe', keys: ['doc:mixed'] })
    await client.reaches(0)
  }
  for (let revision = 1; revision <= CHANGES; revision += 1) {
    await change('mixed', revision)
    await plain.reaches(revision)
    // Now and then somebody is waited for, else some changes overtake others.
    if (revision % 3 === 0) await compressed[revision % compressed.length].reaches(revision)
  }
  for (const client of all) await client.reaches(CHANGES)

  const versions = new Map(plain.values.map(({ revision, version }) => [revision, version]))
  expect(versions.size).toBe(CHANGES + 1)
  for (const { values, wrong } of all) {
    expect(wrong).toEqual([])
    expect(isRising(values.map(({ revision }) => revision))).toBe(true)
    for (const { revision, version } of values) expect(version).toBe(versions.get(revision))
  }

  // One that overtakes another is sent uncompressed: how many do is a matter of the machine.
  const [first] = compressed
  const before = { first: first.bytesRead(), plain: plain.bytesRead() }
  for (let revision = CHANGES + 1; revision <= CHANGES + AWAITED; revision += 1) {
    await change('mixed', revision)
    for (const client of all) await client.reaches(revision)
  }
  const perValue = Math.round((first.bytesRead() - before.first) / AWAITED)
  const plainPerValue = Math.round((plain.bytesRead() - before.plain) / AWAITED)
  show(
    `compression: ${first.values.length} of ${CHANGES + 1 + AWAITED} versions seen, ${perValue} bytes each for ${plainPerValue}; ` +
      `${await gateway.metric('keycast_gateway_compressed_messages_sent_total')} messages compressed`,
  )
  expect(perValue).toBeLessThan(plainPerValue * 0.8)
})

test('a compressed viewer that stops reading is sent the latest when it reads again', async () => {
  await change('slow', 0, 2_000_000)
  const plain = await connect({ compressed: false })
  const slow = await connect({ compressed: true })
  for (const client of [plain, slow]) {
    client.send({ type: 'subscribe', keys: ['doc:slow'] })
    await client.reaches(0)
  }
  stall(slow.socket)
  for (let revision = 1; revision <= 40; revision += 1) {
    await change('slow', revision, 500_000)
    await plain.reaches(revision)
  }
  resume(slow.socket)
  await slow.reaches(40)
  expect(slow.wrong).toEqual([])
  expect(slow.values.length).toBeLessThan(41)
  expect(isRising(slow.values.map(({ revision }) => revision))).toBe(true)
})

test.each([false, true])('gets are answered with their ids, compressed once that is done (bytes: %s)', async bytes => {
  await change(`get-${bytes}`, 7)
  const client = await connect({ compressed: true, bytes })
  const metric = 'keycast_gateway_compressed_messages_sent_total'
  const before = await gateway.metric(metric)
  let asked = 0
  await eventually(async () => {
    asked += 2
    client.send({ type: 'get', id: asked - 1, key: `doc:get-${bytes}` })
    client.send({ type: 'get', id: `${asked}`, key: `doc:get-${bytes}` })
    await client.until(() => client.answered.length === asked, `${asked} answers`)
    return (await gateway.metric(metric)) > before
  }, 'a compressed answer')
  expect(client.wrong).toEqual([])
  expect(client.answered.every(({ revision }) => revision === 7)).toBe(true)
  expect(client.answered.map(({ id }) => Number(id))).toEqual(Array.from({ length: asked }, (_, index) => index + 1))
})

/**
 * Runs the client in Python beside changes of a key, and gives what it says at its end.
 *
 * @param extensions offered
 */
async function runPython(id: string, extensions: string) {
  await change(id, 0)
  const script = fileURLToPath(new URL('../support/deflate-client.py', import.meta.url))
  const child = spawn('python3', [script, String(gateway.port), `doc:${id}`, '100', extensions])
  atEnd(() => child.kill('SIGKILL'))
  let output = ''
  let complaints = ''
  child.stdout.on('data', text => {
    output += text
  })
  child.stderr.on('data', text => {
    complaints += text
  })
  const ended = new Promise((resolve, reject) => {
    child.once('error', error =>
      reject(new Error(`this test needs Python 3 (apt-get install python3): ${error.message}`)),
    )
    child.once('close', code =>
      code === 0 ? resolve(undefined) : reject(new Error(`it ended with ${code}: ${complaints}`)),
    )
  })
  const subscribed = eventually(async () => output.includes('subscribed'), 'the subscription of the client in Python')
  await Promise.race([ended, subscribed])
  for (let revision = 1; revision <= 100; revision += 1) await change(id, revision)
  await within(ended, 'the end of the client in Python')
  return JSON.parse(output.trim().split('\n').at(-1) ?? '')
}

test('a client in Python, on its own zlib, reads every value', async () => {
  const seen = await runPython('python', 'permessage-deflate; client_max_window_bits')
  show(`compression: ${seen.compressed} of ${seen.values} values came compressed to Python`)
  expect(seen).toMatchObject({ revision: 100, wrong: 0, answers: 2 })
  expect(seen.accepted).toBe('permessage-deflate; server_no_context_takeover; client_no_context_takeover')
  expect(seen.compressed).toBeGreaterThan(0)
})

test('a client that can only inflate small windows is served uncompressed', async () => {
  const offer = 'permessage-deflate; server_max_window_bits=12; client_max_window_bits=12'
  expect(await runPython('window', offer)).toMatchObject({ accepted: '', compressed: 0, revision: 100, wrong: 0 })
})

test('Chromium negotiates it, and reads every value', async () => {
  const browser = await launchChromium()
  const page = await browser.newPage()
  await page.goto(gateway.http)
  await change('browser', 0)
  const compressedBefore = await gateway.metric('keycast_gateway_compressed_messages_sent_total')
  await page.evaluate(
    ([url, key]) =>
      new Promise(resolve => {
        const seen = { extensions: '', revisions: [] as number[], answers: 0, wrong: 0 }
        Object.assign(globalThis, { seen })
        const socket = new globalThis.WebSocket(url, 'keycast.v1.json')
        socket.onopen = () => socket.send(JSON.stringify({ type: 'subscribe', keys: [key] }))
        socket.onmessage = async ({ data }) => {
          const { type, id, version, data: value } = JSON.parse(data)
          if (type !== 'value') return
          const content = data.slice(data.indexOf(',"data":') + 8, -1)
          if (id === undefined) seen.revisions.push(value.revision)
          if (value.revision === 100 && id === undefined) socket.send(JSON.stringify({ type: 'get', id: 'é', key }))
          const hash = new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(content)))
          const base64 = btoa(String.fromCharCode(...hash.subarray(0, 16)))
          if (base64.replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '') !== version) seen.wrong += 1
          if (id === 'é') seen.answers += 1
          seen.extensions = socket.extensions
          resolve(undefined)
        }
      }),
    [gateway.url, 'doc:browser'],
  )
  for (let revision = 1; revision <= 100; revision += 1) await change('browser', revision)
  await page.waitForFunction(() => (globalThis as any).seen.answers === 1)
  const seen = await page.evaluate(() => (globalThis as any).seen)
  expect(seen.extensions).toContain('permessage-deflate')
  expect(seen.wrong).toBe(0)
  expect(isRising(seen.revisions)).toBe(true)
  expect(seen.revisions.at(-1)).toBe(100)
  expect(await gateway.metric('keycast_gateway_compressed_messages_sent_total')).toBeGreaterThan(compressedBefore)
  show(`compression: Chromium was sent ${seen.revisions.length} of 101 versions`)
})

test.each(['br', 'gzip'])('over HTTP a value comes in %s, compressed once for all who ask', async coding => {
  await change('http', 1)
  const kept = () => gateway.metric('keycast_gateway_compressions_total{result="kept"}')
  const before = await kept()
  const asked = Array.from({ length: 20 }, async () => {
    const answer = await fetch(`${gateway.http}/v1/values/doc:http`, { headers: { 'accept-encoding': coding } })
    expect([answer.status, answer.headers.get('content-encoding')]).toEqual([200, coding])
    expect(answer.headers.get('etag')).toBe(`W/"${versionOf(Buffer.from(await answer.arrayBuffer()))}"`)
  })
  await Promise.all(asked)
  expect((await kept()) - before).toBe(1)
})
